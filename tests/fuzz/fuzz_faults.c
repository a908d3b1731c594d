/* Any text as a file of faults for three nodes: what is accepted is drawn from
 * a few seeds, in order, and says only what is possible. */
#include "faults.h"

#include "fuzz.h"

static bool is_end(uint32_t id)
{
    return id < 3 || id == FAULT_ALL;
}

static void draw(const struct faults *faults, const struct plan *plan,
                 uint64_t seed)
{
    struct ls_rng rng;
    struct fault *list = NULL;
    size_t n = 0;
    char text[128];
    int64_t offset_ns = 0;
    double drift = 0;
    ls_rng_seed(&rng, seed, 0);
    must(faults_draw(faults, plan, &rng, &list, &n) == LS_OK);
    for (size_t i = 0; i < n; i++) {
        must(list[i].kind < FAULT_N_KINDS && list[i].at >= 0);
        must(i == 0 || list[i - 1].at <= list[i].at);
        must(is_end(list[i].from) && is_end(list[i].to));
        must(list[i].length_ns >= 0);
        (void)faults_is_undone(list, n, i);
        faults_print(&list[i], text, sizeof text);
        must(text[0] != '\0');
    }
    free(list);
    faults_draw_skew(faults, &rng, &offset_ns, &drift);
    must(offset_ns >= 0 && drift >= -0.1 && drift <= 0.1);
}

static struct plan *three_nodes(void)
{
    static struct plan plan;
    ls_config *config = NULL;
    if (plan.path != NULL)
        return &plan;
    must(ls_config_parse(&config, "job.yaml",
                         "nodes: [{role: member, count: 3}]") == LS_OK);
    must(plan_read(&plan, &config, "job.yaml") == LS_OK);
    must(plan.n_nodes == 3);
    return &plan;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct faults faults;
    const struct plan *const plan = three_nodes();
    const int status =
        faults_load(&faults, fuzz_file("faults.yaml", data, size), plan);
    must(status != LS_ENOENT);
    for (uint64_t seed = 0; status == LS_OK && seed < 3; seed++)
        draw(&faults, plan, seed);
    if (status == LS_ECONFIG && faults.config != NULL)
        must(ls_config_report(faults.config)[0] != '\0');
    faults_fini(&faults);
    return 0;
}
