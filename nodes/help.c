#include "help.h"

#include <string.h>

#include "lockstep/config.h"

static const char overview[] =
    "lockstep - many processes, one step at a time\n"
    "\n"
    "  lockstep run configs/cartpole.yaml     start every node here and watch\n"
    "  lockstep check configs/cartpole.yaml   is the file right? what would "
    "run?\n"
    "  lockstep node job.yaml --id 2          one node: in a container, on a "
    "host\n"
    "  lockstep sim configs/barrier.yaml      does it hold, whatever goes "
    "wrong?\n"
    "\n"
    "A job is one YAML file: which nodes there are, how they find each other,\n"
    "and what they train. Begin with a copy of configs/cartpole.yaml and\n"
    "change it:\n"
    "\n"
    "  lockstep run mine.yaml --set nodes.1.count=5    try another value\n"
    "  lockstep run mine.yaml --seed 7 --json          for a script\n"
    "\n"
    "More: lockstep help run | node | check | sim | faults | config\n"
    "      lockstep --version\n"
    "      LS_LOG=info lockstep run …       what the nodes do, line by line\n"
    "\n"
    "Exit codes: 0 done, 1 the run failed, 2 usage, 69 a peer was not to be\n"
    "reached, 75 try again (an address is in use), 78 the configuration is\n"
    "wrong, 124 out of time, 128+n ended by signal n (Ctrl-C: 130).\n";

static const char on_run[] =
    "lockstep run CONFIG - start every node of a job here, and watch it\n"
    "\n"
    "  lockstep run configs/cartpole.yaml\n"
    "  lockstep run configs/cartpole.yaml --seed 7\n"
    "  lockstep run configs/cartpole.yaml --as threads       under a debugger\n"
    "  lockstep run configs/cartpole.yaml --json | jq -c .   for a script\n"
    "  lockstep run configs/cartpole.yaml --set collector.steps=128 \\\n"
    "                                     --set nodes.1.count=5\n"
    "\n"
    "  --seed N          the seed of everything random in it\n"
    "  --set key=value   put a value in the place of the file's; keys are\n"
    "                    joined by dots, items of a list go by number\n"
    "  --out DIR         where the weights go; default out/JOB\n"
    "  --as processes    each node in a process of its own (the default)\n"
    "  --as threads      all nodes in this one; the results are the same\n"
    "  --as sim          all nodes in one thread, on a simulated network, "
    "with\n"
    "                    a clock of its own: the same run from the same seed,\n"
    "                    event for event; for debuggers and for faults\n"
    "  --faults F        with --as sim: what goes wrong; lockstep help faults\n"
    "  --event-log FILE  with --as sim: every event in it, a line each\n"
    "  --nodes N         so many of the first kind of node in the file\n"
    "  --timeout S       give up after S seconds, with exit 124\n"
    "  --json            an event per line on stdout, the summary last\n"
    "\n"
    "The summary is written to stdout, all else to stderr. When a node fails,\n"
    "the run says which and why, with its last lines, and ends the others.\n"
    "Ctrl-C ends the run and leaves nothing behind; a second one at once.\n";

static const char on_node[] =
    "lockstep node CONFIG --id N - one node of a job, here\n"
    "\n"
    "For containers and for several hosts: everyone has the same file, and\n"
    "each starts its own node, in any order.\n"
    "\n"
    "  nodes:\n"
    "    - {role: learner, host: learner}                # id 0\n"
    "    - {role: collector, count: 3, host: \"box{id}\"}  # ids 1, 2, 3\n"
    "    - {role: evaluator, host: learner}              # id 4\n"
    "\n"
    "  learner$  lockstep node job.yaml --id 0\n"
    "  box1$     lockstep node job.yaml --id 1\n"
    "\n"
    "`host` is the name under which the others reach a node. Without it, say\n"
    "where to attach; one member of a mesh is enough to find all:\n"
    "\n"
    "  lockstep node job.yaml --id 3 --attach tcp://127.0.0.1:21500\n"
    "\n"
    "  --id N            which node of the file; lockstep check lists them\n"
    "  --bind E          where to listen:\n"
    "                      tcp://127.0.0.1:21500        this port\n"
    "                      tcp://127.0.0.1:21500-21999  the first free one\n"
    "                      ipc:///run/user/1000/a.ipc   a socket file\n"
    "  --advertise E     what the others dial, where that is not the same\n"
    "  --attach E        a peer's endpoint; may be given several times\n"
    "  --generation N    it is the N-th restart of this node: a learner goes\n"
    "                    on from its checkpoint, a collector explores anew\n"
    "  --seed, --set, --out, --json   as for run; seed and settings must be\n"
    "                    the same everywhere: nodes that differ refuse each\n"
    "                    other\n";

static const char on_check[] =
    "lockstep check CONFIG - is the file right, and what would run?\n"
    "\n"
    "  lockstep check configs/cartpole.yaml\n"
    "  lockstep check configs/cartpole.yaml --set world.topology=star\n"
    "  lockstep check configs/cartpole.yaml --json | jq .nodes\n"
    "\n"
    "Reads the file, loads its plugin, lets the plugin read its own sections,\n"
    "and prints the nodes with their ids, roles and endpoints. Nothing is\n"
    "started. Every problem is shown at once, with line and column; exit 78.\n";

static const char on_sim[] =
    "lockstep sim CONFIG - run members under one schedule of faults after the\n"
    "other, and see whether what is promised holds\n"
    "\n"
    "  lockstep sim configs/barrier.yaml                       100 seeds\n"
    "  lockstep sim configs/barrier.yaml --seeds 10000 --nodes 9\n"
    "  lockstep sim configs/barrier.yaml --faults cuts\n"
    "  lockstep sim configs/barrier.yaml --faults configs/faults/storm.yaml\n"
    "  lockstep sim configs/barrier.yaml --seed 4711 --event-log 4711.log\n"
    "\n"
    "Each seed is a run of the whole cluster in one thread, in virtual time.\n"
    "Members do what `sim: {epochs: 15, pace_ms: 250, events: 1}` of the\n"
    "configuration says: so many epochs, before each a pause of up to pace_ms\n"
    "and so many reliable events to the others; one that fails begins again.\n"
    "Watched is that\n"
    "\n"
    "  early    nobody leaves an epoch before everyone has entered it\n"
    "  all      when one leaves an epoch, so do all who entered it\n"
    "  named    who fails by another says by whom\n"
    "  bound    no wait outlasts its deadline, and after the last fault all\n"
    "           get through\n"
    "  events   a reliable event is got once, in order, or its sender told\n"
    "  queues   what is under way stays below a bound\n"
    "  end      nothing is left\n"
    "\n"
    "A violation ends the sweep: exit 1, with the seed, the promise, the last\n"
    "events, and the command that runs it again. docs/debugging.md goes on\n"
    "from there.\n"
    "\n"
    "  --seeds N         how many; default 100\n"
    "  --first S         the first one; default 0\n"
    "  --seed S          this one alone\n"
    "  --faults F        what goes wrong; default all; lockstep help faults\n"
    "  --event-log FILE  every event, a line each\n"
    "  --nodes N, --set key=value, --json   as for run\n"
    "  --sabotage WHAT   break the barrier on purpose, to see it found:\n"
    "                      no-retransmit         nothing is asked twice\n"
    "                      ack-without-epoch     an answer counts in any "
    "epoch\n"
    "                      count-instead-of-set  answers are counted, not who\n"
    "                                            gave them\n"
    "                      one-phase, eager      who hears of all, or has\n"
    "                                            entered, leaves\n";

static const char on_faults[] =
    "--faults F - what goes wrong in a simulation: a name, or a file\n"
    "\n"
    "  none      nothing, 50 us from node to node; the default of run\n"
    "  lossy     messages are lost, doubled, late and overtaken\n"
    "  cuts      links are cut, one way or both, and reset\n"
    "  pauses    nodes stand still, as by SIGSTOP; clocks are wrong\n"
    "  crashes   nodes are killed, and come back\n"
    "  all       all of these; the default of sim\n"
    "\n"
    "A file has any of three parts:\n"
    "\n"
    "  network:                     between all nodes\n"
    "    delay_ms: 20               at least\n"
    "    jitter_ms: 5               up to so much more\n"
    "    loss: 0.05                 so many of the messages\n"
    "    duplicate: 0.01            come twice\n"
    "    reorder: 0.1               may be overtaken\n"
    "    bytes_per_s: 1000000       0: no limit\n"
    "  random:                      up to so many, drawn from the seed\n"
    "    cuts: {count: 3, one_way: 0.5, length_ms: 4000}\n"
    "    resets: 5                  connections break; they come back\n"
    "    pauses: {count: 2, length_ms: 3000}\n"
    "    kills: 2\n"
    "    restart_ms: 500            a killed node comes back; 0: never\n"
    "    skew: {offset_ms: 100, drift: 0.001}     clocks are ahead, and drift\n"
    "    within_s: 3                all begin before\n"
    "  script:                      at seconds from the beginning\n"
    "    - {at: 1.5, cut: 0 > 2, for_ms: 800}     from 0 to 2, not back\n"
    "    - {at: 2, cut: 1 - all}                  1 from all others\n"
    "    - {at: 5, heal: 1 - all}\n"
    "    - {at: 6, reset: 0 - 1}\n"
    "    - {at: 7, pause: 2, for_ms: 3000}        or resume: 2 later\n"
    "    - {at: 8, kill: 3, for_ms: 500}          or restart: 3 later\n"
    "    - {at: 9, shape: 0 > 1, network: {delay_ms: 200}, for_ms: 1000}\n"
    "\n"
    "Nodes go by their ids. More in configs/faults.\n";

static const char on_config[] =
    "The configuration of a job; only `nodes` must be there, and `plugin`\n"
    "unless all nodes are members\n"
    "\n"
    "  job: cartpole            names the job; nodes of others are refused\n"
    "  seed: 0                  everything random follows from it\n"
    "  plugin: cartpole         a name, or a path from this file's folder\n"
    "  out: out/cartpole        where the weights go; default out/JOB\n"
    "  world:\n"
    "    topology: mesh         or star: the learner in the middle\n"
    "    transport: tcp         or ipc, or inproc (--as threads only)\n"
    "    ports: 21500-21999     free ones are taken from here\n"
    "    start_timeout_s: 10    for all nodes to be there\n"
    "    step_timeout_s: 60     for any wait within an iteration\n"
    "    heartbeat_ms: 250\n"
    "    silence_ms: 2000       after it a peer is lost\n"
    "    insecure: false        true: allow tcp beyond this machine\n"
    "  nodes:\n"
    "    - role: learner        exactly one\n"
    "    - {role: collector, count: 3}\n"
    "    - role: evaluator      each item may also say: id, labels, and for\n"
    "                           `lockstep node` host or bind, advertise, "
    "attach\n"
    "                           and what becomes of the run if it fails:\n"
    "      policy: fail         the run fails; or go_on: it goes on without;\n"
    "                           or restart: the node is started again\n"
    "      max_restarts: 3      each node, then the run fails\n"
    "      backoff_ms: 100      before a restart; doubles up to 10 s\n"
    "  learner: {checkpoint_every: 10}   updates; for its own restart only\n"
    "  collector: {envs: 8, steps: 64}   environments each; steps of each per\n"
    "                           iteration\n"
    "  evaluator: {episodes: 20, solved: 475, every: 1}\n"
    "  stop: {env_step: 1000000, minutes: 10}   also ends the run\n"
    "  barrier: {epochs: 100, timeout_ms: 60000, failures: 0, pace_ms: 0,\n"
    "            events: 0}     reliable ones, each before each epoch\n"
    "                           of members, which are alone in a job:\n"
    "                           - {role: member, count: 5}\n"
    "  sim: {epochs: 15, pace_ms: 250, events: 1}   of members in `lockstep "
    "sim`\n"
    "  env: {…}                 the plugin's own\n"
    "  policy: {…}              the plugin's own\n";

static const struct topic {
    const char *name;
    const char *text;
} topics[] = {
    {"run", on_run}, {"node", on_node},     {"check", on_check},
    {"sim", on_sim}, {"faults", on_faults}, {"config", on_config},
};
#define N_TOPICS (sizeof topics / sizeof topics[0])

int help_print(FILE *to, const char *topic)
{
    if (topic == NULL) {
        fputs(overview, to);
        return LS_OK;
    }
    const char *names[N_TOPICS];
    for (size_t i = 0; i < N_TOPICS; i++) {
        names[i] = topics[i].name;
        if (strcmp(topic, topics[i].name) == 0) {
            fputs(topics[i].text, to);
            return LS_OK;
        }
    }
    const char *nearest = ls_nearest(topic, names, N_TOPICS);
    return ls_error(
        LS_EINVAL, "there is no help on \"%s\"%s%s%s", topic,
        nearest != NULL ? "; did you mean \"" : "",
        nearest != NULL ? nearest : "",
        nearest != NULL ? "\"?" : ": run, node, check, sim, faults, config");
}

void help_print_short(FILE *to)
{
    fputs("lockstep run CONFIG      start every node of a job here\n"
          "lockstep check CONFIG    is the file right? what would run?\n"
          "lockstep sim CONFIG      does it hold, whatever goes wrong?\n"
          "lockstep --help          more, with examples\n",
          to);
}
