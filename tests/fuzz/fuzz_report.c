/* Any bytes as a report, or, by the first byte, as what comes through a pipe of
 * reports. What is accepted is written as itself, and comes through again. */
#include "report.h"

#include <fcntl.h>
#include <unistd.h>

#include "fuzz.h"

FUZZ_RECORD(one, struct report, report_record)

/* Each report goes on through a pipe. */
struct passing {
    struct report_sink next;
    size_t n;
};

static void pass(void *self, const struct report *report)
{
    struct passing *const passing = self;
    must(report->kind >= 0 && report->kind < REPORT_N_KINDS);
    passing->n++;
    if (passing->next.put != NULL)
        passing->next.put(passing->next.self, report);
}

static void stream(const uint8_t *data, size_t size)
{
    report_pipe *pipe = NULL;
    const int in = open(fuzz_file("in", data, size), O_RDONLY | O_CLOEXEC);
    const int out = open(fuzz_file("out", "", 0), O_RDWR | O_CLOEXEC);
    must(in >= 0 && out >= 0);
    must(report_pipe_create(&pipe, out) == LS_OK);
    struct passing first = {report_pipe_sink(pipe), 0};
    struct passing second = {{NULL, NULL}, 0};
    const int status = report_drain(in, (struct report_sink){pass, &first});
    must(status == LS_OK || status == LS_EPROTO || status == LS_ELIMIT);
    must(lseek(out, 0, SEEK_SET) == 0);
    must(report_drain(out, (struct report_sink){pass, &second}) == LS_OK);
    must(first.n == second.n);
    report_pipe_destroy(&pipe);
    must(close(in) == 0 && close(out) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] % 2 == 0)
        one(data + 1, size - 1);
    else if (size > 0)
        stream(data + 1, size - 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 1);
}
