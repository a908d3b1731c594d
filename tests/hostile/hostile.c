/* Attackers against a world of three processes:
 *
 *   hostile none|plain|curve HOSTILE_NODE [CASE]
 *
 * With CASE only attacks whose number is CASE. It judges by what the nodes say
 * of themselves: whatever is done to them, their events flow on both ways,
 * nobody is lost or rejoins, memory stays bounded, and who did it is counted
 * and named. What only authentication stops is skipped in mode none, by its
 * name; what is known to get through is an "expected failure". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attacks.h"
#include "foe.h"

static void (*const attacks[])(struct siege *siege) = {
    attack_strangers, attack_old_protocol, attack_never_ready,
    attack_hearsay,   attack_unsubscribe,  attack_presence,
    attack_verdict,   attack_window,       attack_deaf,
    attack_topics,    attack_finish,       attack_figures,
    attack_old_life,  attack_addresses,    attack_address_of_two,
    attack_squat,     attack_up,           attack_mutants,
};

/* Reliable events and values, both of one name, went on all the while. */
static void judge_stream(struct siege *siege)
{
    static const char *const kinds[] = {"plain", "sure", "latest"};
    case_begin(siege, "reliable and latest on one name: nothing is lost");
    for (size_t i = 0; i < N_HONEST; i++)
        (void)process_ask(siege, &siege->nodes[i], "hush");
    for (uint32_t from = 1; from <= N_HONEST; from++)
        for (uint32_t to = 1; to <= N_HONEST; to++)
            for (size_t k = 0; k < 3 && to != from; k++) {
                char emitted[32];
                (void)snprintf(emitted, sizeof emitted, "emitted_%s", kinds[k]);
                const uint64_t n = figure(siege->nodes[from - 1].line, emitted);
                struct process *node = &siege->nodes[to - 1];
                char hushed[LINE_MAX_];
                memcpy(hushed, node->line, sizeof hushed);
                if (strncmp(process_ask(siege, node,
                                        "await %s%" PRIu32 " %" PRIu64,
                                        kinds[k], from, n),
                            "figures", 7) != 0)
                    case_fails(siege,
                               "node %" PRIu32 " has not heard the last "
                               "\"%s\" of node %" PRIu32 ": %s",
                               to, kinds[k], from, node->line);
                memcpy(node->line, hushed, sizeof hushed);
            }
    uint64_t wrong = 0, n = 0;
    for (size_t i = 0; i < N_HONEST; i++) {
        wrong +=
            figure(process_ask(siege, &siege->nodes[i], "figures"), "wrong");
        n += figure(siege->nodes[i].line, "emitted_sure");
    }
    if (wrong != 0)
        case_fails(siege, "%" PRIu64 " came out of order", wrong);
    else
        printf("ok %s: %s (%" PRIu64 " reliable ones)\n", siege->mode_name,
               siege->name, n);
}

int main(int argc, char **argv)
{
    static struct siege siege;
    if (argc < 3) {
        fputs("usage: hostile none|plain|curve HOSTILE_NODE [CASE]\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    const size_t n = sizeof attacks / sizeof *attacks;
    if (siege_begin(&siege, argv[1], argv[2])) {
        for (size_t i = 0; i < n && siege_stands(&siege); i++)
            if (argc < 4 || strtoul(argv[3], NULL, 10) == i)
                attacks[i](&siege);
        printf("elsewhere %s: a clock that goes back: base.simulation_host\n",
               argv[1]);
        if (siege_stands(&siege)) {
            judge_stream(&siege);
            attack_accusers(&siege);
        }
    }
    siege_end(&siege);
    printf("%s: %u failures, %u expected\n", argv[1], siege.failures,
           siege.n_expected);
    return siege.failures == 0 ? 0 : 1;
}
