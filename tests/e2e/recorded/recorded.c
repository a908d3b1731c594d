/* recorded FOLDER [ITERATIONS]: writes recordings of a run of one learner and
 * four collectors there, on clocks of their own, in which collector 3 works 30
 * ms in env_step and the others 10. With more iterations than 40, steps are
 * short, for a page with many spans. */
#include "profile_story.h"

#include "lockstep/file.h"

static int write_file(const char *folder, const struct ls_trace_file *file)
{
    char path[512], temporary[520];
    void *data;
    size_t size;
    int status = ls_trace_encode(file, &data, &size);
    if (status != LS_OK)
        return status;
    (void)snprintf(path, sizeof path, "%s/node-%u.lstrace", folder,
                   (unsigned)file->node);
    (void)snprintf(temporary, sizeof temporary, "%s.part", path);
    const struct ls_file_part part = {data, size};
    status = ls_file_replace(path, temporary, &part, 1, false);
    free(data);
    return status;
}

int main(int argc, char **argv)
{
    static struct story story;
    const uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 40;
    const int64_t work = n > 40 ? STORY_MS : 10 * STORY_MS;
    const int64_t works[STORY_NODES] = {work, work, work, 3 * work, work};
    int64_t at = 0;
    if (argc < 2)
        return 2;
    story_begin(&story, STORY_NODES, 1);
    for (uint64_t i = 0; i < n; i++) {
        if (n <= 40 || i % 100 == 0)
            story_beat(&story, at);
        story_add(&story, 3, LS_TRACE_SEND, "weights <of> \"3\"", at, at + 1000,
                  i + 1, LS_TRACE_NOBODY);
        story_add(&story, 0, LS_TRACE_RECEIVE, "weights <of> \"3\"", at + 90000,
                  at + 95000, i + 1, 3);
        at = story_iteration(&story, i, at, works);
    }
    story_beat(&story, at);
    for (size_t i = 0; i < STORY_NODES; i++) {
        if (write_file(argv[1], &story.files[i]) != LS_OK) {
            (void)fprintf(stderr, "%s\n", ls_error_text());
            return 1;
        }
        ls_trace_clear(&story.files[i]);
    }
    return 0;
}
