/* tape_format.h - the bytes of a recording: docs/recording-format.md. */
#ifndef LOCKSTEP_TAPE_FORMAT_H
#define LOCKSTEP_TAPE_FORMAT_H

#include "lockstep/record.h"

#include "tape.h"

#define TAPE_MAGIC      "LSRECORD"
#define TAPE_MAGIC_SIZE (sizeof TAPE_MAGIC - 1)
#define TAPE_VERSION    1u
/* Magic, version, bytes of the map, bytes of the file, XXH3 of what follows. */
#define TAPE_HEADER 32u

enum tape_kind { TAPE_EMITS = 1, TAPE_HANDLES = 2, TAPE_END = 3 };

#define TAPE_TO_ALL UINT32_MAX

/* Of a record, before its name and, if it emits, its data. */
#define TAPE_HEAD 24u
struct tape_head {
    uint8_t kind;
    uint16_t name_size;
    uint32_t peer;
    uint64_t size; /* of the data */
    uint64_t hash; /* XXH3 of the data; 0 in what is handled */
};
void tape_head_write(unsigned char out[TAPE_HEAD],
                     const struct tape_head *head);
/* The record at the beginning of `size` bytes; `length`: all of its bytes.
 * false: there is no whole one. */
bool tape_head_read(struct tape_head *out, const unsigned char *data,
                    size_t size, uint64_t *length);

void tape_put32(unsigned char *at, uint32_t value);
void tape_put64(unsigned char *at, uint64_t value);
uint32_t tape_get32(const unsigned char *at);
uint64_t tape_get64(const unsigned char *at);

/* The map of a file. */
extern const struct ls_record tape_about_record;

#endif
