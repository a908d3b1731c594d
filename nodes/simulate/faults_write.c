/* Faults as a file that says the same to the nanosecond. */
#include <inttypes.h>
#include <stdio.h>

#include "faults.h"

/* A number of the file is multiplied and cut off, so half of a nanosecond is
 * added that is cut off again. */
static void write_time(FILE *out, const char *key, int64_t ns, int64_t unit)
{
    const double half = ns < 0 ? -0.5 : 0.5;
    if (ns % unit == 0)
        (void)fprintf(out, "%s: %" PRId64, key, ns / unit);
    else
        (void)fprintf(out, "%s: %.10f", key,
                      ((double)ns + half) / (double)unit);
}

static void write_path(FILE *out, const struct ls_network_path *path)
{
    (void)fputs("{", out);
    write_time(out, "delay_ms", path->delay_ns, LS_NS_PER_MS);
    write_time(out, ", jitter_ms", path->jitter_ns, LS_NS_PER_MS);
    (void)fprintf(out,
                  ", loss: %.17g, duplicate: %.17g, reorder: %.17g, "
                  "bytes_per_s: %" PRIu64 "}",
                  path->loss, path->duplicate, path->reorder,
                  path->bytes_per_s);
}

static void write_id(FILE *out, uint32_t id)
{
    if (id == FAULT_ALL)
        (void)fputs("all", out);
    else
        (void)fprintf(out, "%" PRIu32, id);
}

static void write_fault(FILE *out, const struct fault *fault)
{
    write_time(out, "  - {at", fault->at, LS_NS_PER_S);
    (void)fprintf(out, ", %s: ", fault_names[fault->kind]);
    write_id(out, fault->from);
    if (fault->kind < FAULT_PAUSE) {
        (void)fputs(fault->both ? " - " : " > ", out);
        write_id(out, fault->to);
    }
    if (fault->kind == FAULT_SHAPE) {
        (void)fputs(", network: ", out);
        write_path(out, &fault->path);
    }
    if (fault->kind == FAULT_STRANGER && fault->length_ns != 0)
        write_time(out, ", for_ms", fault->length_ns, LS_NS_PER_MS);
    if (fault->kind == FAULT_CLOCK)
        write_time(out, ", by_ms", fault->length_ns, LS_NS_PER_MS);
    (void)fputs("}\n", out);
}

void faults_write(const struct faults *faults, FILE *out)
{
    (void)fputs("network: ", out);
    write_path(out, &faults->path);
    (void)fputs("\nrandom: {skew: {", out);
    write_time(out, "offset_ms", faults->random.offset_ns, LS_NS_PER_MS);
    (void)fprintf(out, ", drift: %.17g}}\n", faults->random.drift);
    if (faults->n_script > 0)
        (void)fputs("script:\n", out);
    for (size_t i = 0; i < faults->n_script; i++)
        write_fault(out, &faults->script[i]);
}
