/* sample.h - what is told of a piece of training data; the data itself lies in
 * a store, under data_id.
 *
 * Collectors announce data to the coordinator, which is cut into one sample or
 * several; its replay buffer draws them, the learner is told which were drawn
 * and answers with new priorities. On the wire it is a flat map, read strictly:
 * every field is there, of its type and within its range, and there is no
 * other.
 * Thread: serial. */
#ifndef LOCKSTEP_SAMPLE_H
#define LOCKSTEP_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "lockstep/record.h"
#include "safe_name.h"

#define SAMPLE_PRIORITY_MAX 1e30
#define SAMPLE_PLAIN        "none"
/* Whatever is counted: what a peer or a journal says is no larger, so that
 * nothing that is added to it overflows. */
#define SERVICE_COUNT_MAX (INT64_C(1) << 53)

/* Names are those of safe_name.h; numbers are not negative. */
struct sample {
    char data_id[SAFE_NAME_MAX + 1];
    char task_id[SAFE_NAME_MAX + 1];    /* the collector work */
    char buffer_id[SAFE_NAME_MAX + 1];  /* of the learner work */
    char compressor[SAFE_NAME_MAX + 1]; /* of the data: SAMPLE_PLAIN; what a
                                         * coordinator gets with another one it
                                         * refuses */
    char object_ref[SAFE_NAME_MAX + 1]; /* ""; the wire may leave it out */
    int64_t policy_iter;    /* of the learner, when the policy was written */
    int64_t policy_version; /* of the policy that made the data */
    int64_t env_id;
    int64_t unroll_len; /* steps, 1 to UINT32_MAX */
    int64_t parts;      /* samples that the data is cut into, all alike; divides
                         * unroll_len and size */
    double priority;    /* 0 to SAMPLE_PRIORITY_MAX */
    int64_t cur_episode, cur_sample, cur_step; /* of the collector work */
    int64_t size; /* of the data in the store, in bytes */
    /* Not on the wire; 0 when read. A sample that is one part of several:
     * sample_part(). */
    bool split;
    int64_t part;
    uint32_t home; /* id of the node that keeps the data */
};

/* One of the samples that data is cut into. whole: as it was announced. */
void sample_part(const struct sample *whole, int64_t part, struct sample *out);
/* Where its bytes are in the data. */
uint64_t sample_at(const struct sample *sample);
uint64_t sample_bytes(const struct sample *sample);

/* A sample as a replay buffer gives it out. */
struct drawn_sample {
    struct sample sample;
    int64_t slot;
    char unique_id[SAFE_NAME_MAX + 1];
    int64_t staleness; /* versions that its policy was behind when drawn */
};

struct priority_update {
    int64_t slot;
    char unique_id[SAFE_NAME_MAX + 1];
    double priority; /* as a sample's */
};

/* As a map with the names above. Both ends are of one version, so a key that is
 * no field is refused. */
extern const struct ls_record sample_record;

#endif
