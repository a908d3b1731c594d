/* siege.h - three honest nodes, each a process (node.c), and what they say of
 * themselves. All waits have a deadline; attackers are looked after meanwhile.
 * What is wrong is printed, and counted in `failures`. */
#ifndef HOSTILE_SIEGE_H
#define HOSTILE_SIEGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lockstep/node.h"
#include "lockstep/security.h"

#define N_HONEST  3
#define FIRST_FOE 60 /* ids of attackers that are members: have keys */
#define N_FOES    60
#define LINE_MAX_ 4096
#define WAIT_MS   30000
#define LOOK_MS   20 /* at attackers, while a node is waited for */
#define UNGUARDED "needs authentication"

struct foe;

struct process {
    pid_t pid; /* 0: ended */
    int in, out;
    char log[128]; /* the file of its standard error */
    char line[LINE_MAX_], rest[2 * LINE_MAX_];
    size_t n_rest;
    uint32_t id;
    uint64_t incarnation;
    char endpoint[LS_ENDPOINT_MAX + 1];
    char before[LINE_MAX_]; /* its figures when the case began */
};

struct siege {
    enum ls_security_mode mode;
    const char *mode_name, *program;
    char folder[64], secret[128], false_keys[128];
    void *zctx;
    ls_security *security;       /* that of members; curve: of node FIRST_FOE */
    ls_security *false_security; /* plain: another secret */
    struct process nodes[N_HONEST];
    struct foe *foes; /* that are open */
    uint32_t next_id; /* of a foe */
    uint64_t seed;
    const char *name;                       /* of the case */
    unsigned failures, n_expected, n_wrong; /* the last: when it began */
    int64_t began_ms;
    bool expected; /* the case is known to fail */
};

int64_t now_ms(void);

/* Returns whether the world was formed. */
bool siege_begin(struct siege *siege, const char *mode, const char *program);
void siege_end(struct siege *siege);
/* Whether all nodes still answer: where one does not, nothing more is to be
 * learned than what its log says, which siege_end() shows. */
bool siege_stands(struct siege *siege);

/* A process of the honest program; its arguments end with NULL. */
bool process_start(struct siege *siege, struct process *process, uint32_t id,
                   const char *const *arguments);
/* Read the line that tells where it is. */
bool process_at(struct siege *siege, struct process *process);
/* The next line; "" when there is none within the time. Borrow: until the next
 * one. */
const char *process_line(struct siege *siege, struct process *process);
__attribute__((format(printf, 3, 4))) const char *
process_ask(struct siege *siege, struct process *process, const char *format,
            ...);
/* Wait until it has ended; kill it when it does not. Returns its exit code, or
 * 128 and the signal. */
int process_end(struct process *process);
bool process_logged(const struct process *process, const char *words);

/* Of a line of figures; UINT64_MAX: it has no such figure. */
uint64_t figure(const char *line, const char *key);

/* A case begins; it ends when events flow on and all is well: all that the
 * nodes say is judged. */
void case_begin(struct siege *siege, const char *name);
void case_end(struct siege *siege);
void case_skip(const struct siege *siege, const char *name, const char *why);
__attribute__((format(printf, 2, 3))) void case_fails(struct siege *siege,
                                                      const char *format, ...);
/* That a node has counted so many refusals of this kind since the case began,
 * and names one with these words. */
void case_refused(struct siege *siege, struct process *node, const char *kind,
                  uint64_t n, const char *words);
/* Whether it names one so. */
bool case_names(struct siege *siege, struct process *node, const char *kind,
                const char *words);
/* Wait until a figure of it has grown by so much since the case began. */
bool case_grows(struct siege *siege, struct process *node, const char *key,
                uint64_t by);

#endif
