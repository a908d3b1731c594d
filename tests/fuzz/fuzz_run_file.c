/* Any text as the file that says where the nodes of a run listen. What is
 * accepted is written and read again as the same. */
#include "run_file.h"

#include "fuzz.h"

static void same(const struct run_file *a, const struct run_file *b)
{
    must(a->pid == b->pid && a->hash == b->hash && a->place == b->place &&
         a->n_nodes == b->n_nodes);
    for (size_t i = 0; i < a->n_nodes; i++) {
        must(a->nodes[i].id == b->nodes[i].id);
        must(strcmp(a->nodes[i].endpoint, b->nodes[i].endpoint) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run_file file, again;
    char *const text =
        fuzz_text((const uint8_t *)fuzz_folder(), strlen(fuzz_folder()));
    const struct plan plan = {.folder = text};
    (void)fuzz_file(RUN_FILE_NAME, data, size);
    if (run_file_read(&file, &plan) == LS_OK) {
        must(file.pid > 0);
        must(run_file_write(&plan, &file) == LS_OK);
        must(run_file_read(&again, &plan) == LS_OK);
        same(&file, &again);
    }
    free(text);
    return 0;
}
