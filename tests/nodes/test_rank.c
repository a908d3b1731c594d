/* Which node a process is, as its launcher's environment says. */
#include "rank.h"

#include <stdlib.h>

#include "plan_reading.h"
#include "test.h"

static const char *const names[] = {"LOCKSTEP_NODE_ID",
                                    "LOCKSTEP_WORLD_SIZE",
                                    "RANK",
                                    "WORLD_SIZE",
                                    "LOCAL_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "PMI_RANK",
                                    "PMI_SIZE",
                                    "MPI_LOCALNRANKS",
                                    "SLURM_PROCID",
                                    "SLURM_NTASKS",
                                    "SLURM_NNODES",
                                    "JOB_COMPLETION_INDEX"};

/* "RANK=2 WORLD_SIZE=5", and nothing else of these. */
static void set_environment(const char *text)
{
    char copy[256], *rest = copy, *word;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
    (void)snprintf(copy, sizeof copy, "%s", text);
    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        assert_int_equal(setenv(word, value, 1), 0);
    }
}

/* Five nodes whose ids begin at 10. */
#define TENS                                                                   \
    "plugin: p\n"                                                              \
    "nodes:\n"                                                                 \
    "  - {role: learner, id: 10}\n"                                            \
    "  - {role: collector, id: 11, count: 3}\n"                                \
    "  - {role: evaluator, id: 14}\n"

TEST(each_launcher_says_it_in_its_own_way)
{
    static const struct {
        const char *environment, *from;
        size_t index;
        bool apart;
    } cases[] = {
        {"LOCKSTEP_NODE_ID=12", "LOCKSTEP_NODE_ID", 2, false},
        {"LOCKSTEP_NODE_ID=12 LOCKSTEP_WORLD_SIZE=5", "LOCKSTEP_NODE_ID", 2,
         false},
        {"RANK=2 WORLD_SIZE=5", "RANK", 2, false},
        {"RANK=2 WORLD_SIZE=5 LOCAL_WORLD_SIZE=5", "RANK", 2, false},
        {"RANK=2 WORLD_SIZE=5 LOCAL_WORLD_SIZE=1", "RANK", 2, true},
        {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=5 "
         "OMPI_COMM_WORLD_LOCAL_SIZE=5",
         "OMPI_COMM_WORLD_RANK", 0, false},
        {"OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=5 "
         "OMPI_COMM_WORLD_LOCAL_SIZE=3",
         "OMPI_COMM_WORLD_RANK", 4, true},
        {"PMI_RANK=3 PMI_SIZE=5 MPI_LOCALNRANKS=5", "PMI_RANK", 3, false},
        {"SLURM_PROCID=1 SLURM_NTASKS=5 SLURM_NNODES=1", "SLURM_PROCID", 1,
         false},
        {"SLURM_PROCID=1 SLURM_NTASKS=5 SLURM_NNODES=5", "SLURM_PROCID", 1,
         true},
        {"JOB_COMPLETION_INDEX=4", "JOB_COMPLETION_INDEX", 4, true},
        /* An empty one is none. */
        {"LOCKSTEP_NODE_ID= PMI_RANK=1 PMI_SIZE=5", "PMI_RANK", 1, false},
        /* Those that say the same; and what an outer job leaves behind. */
        {"RANK=1 WORLD_SIZE=5 LOCKSTEP_NODE_ID=11", "LOCKSTEP_NODE_ID", 1,
         false},
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=5 SLURM_PROCID=0 "
         "SLURM_NTASKS=1 JOB_COMPLETION_INDEX=7",
         "OMPI_COMM_WORLD_RANK", 2, false},
    };
    struct plan plan;
    read_good(&plan, TENS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rank rank;
        set_environment(cases[i].environment);
        assert_ok(rank_read(&rank, &plan));
        assert_string_equal(rank.from, cases[i].from);
        assert_int_equal(rank.index, cases[i].index);
        assert_int_equal(rank.apart, cases[i].apart);
    }
    plan_fini(&plan);
}

TEST(what_cannot_be_is_named)
{
    static const struct {
        const char *environment, *text;
    } cases[] = {
        {"RANK=2", "RANK is set, and WORLD_SIZE is not"},
        {"RANK=2 WORLD_SIZE=4",
         "WORLD_SIZE=4: job.yaml has 5 nodes, and each must be started"},
        {"LOCKSTEP_NODE_ID=12 LOCKSTEP_WORLD_SIZE=6",
         "LOCKSTEP_WORLD_SIZE=6: job.yaml has 5 nodes"},
        {"RANK=5 WORLD_SIZE=5", "RANK=5: job.yaml has 5 nodes, so it is 0 to "
                                "4"},
        {"JOB_COMPLETION_INDEX=5", "JOB_COMPLETION_INDEX=5: "},
        {"LOCKSTEP_NODE_ID=2", "LOCKSTEP_NODE_ID=2: "},
        {"RANK=two WORLD_SIZE=5", "RANK=two: expected a whole number"},
        {"RANK=-1 WORLD_SIZE=5", "RANK=-1: expected a whole number"},
        {"RANK=1 WORLD_SIZE=5x", "WORLD_SIZE=5x: expected a whole number"},
        {"RANK=4294967296 WORLD_SIZE=5", "expected a whole number"},
        {"RANK=1 WORLD_SIZE=5 PMI_RANK=2 PMI_SIZE=5",
         "RANK=1 is node 11, and PMI_RANK=2 is node 12: unset one of them, or "
         "say --id N"},
        {"LOCKSTEP_NODE_ID=11 RANK=1 WORLD_SIZE=4", "WORLD_SIZE=4: "},
    };
    struct plan plan;
    struct rank rank;
    read_good(&plan, TENS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_environment(cases[i].environment);
        assert_fails(rank_read(&rank, &plan), LS_EINVAL);
        assert_error_has(cases[i].text);
    }
    set_environment("WORLD_SIZE=5 SLURM_NTASKS=5");
    assert_fails(rank_read(&rank, &plan), LS_ENOENT);
    assert_error_has("which node?");
    plan_fini(&plan);
}
