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
    "\n"
    "A job is one YAML file: which nodes there are, how they find each other,\n"
    "and what they train. Begin with a copy of configs/cartpole.yaml and\n"
    "change it:\n"
    "\n"
    "  lockstep run mine.yaml --set nodes.1.count=5    try another value\n"
    "  lockstep run mine.yaml --seed 7 --json          for a script\n"
    "\n"
    "More: lockstep help run | node | check | config\n"
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

static const char on_config[] =
    "The configuration of a job; only `plugin` and `nodes` must be there\n"
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
    "  collector: {envs: 8, steps: 64}   environments each; steps of each per\n"
    "                           iteration\n"
    "  evaluator: {episodes: 20, solved: 475, every: 1}\n"
    "  stop: {env_step: 1000000, minutes: 10}   also ends the run\n"
    "  env: {…}                 the plugin's own\n"
    "  policy: {…}              the plugin's own\n";

static const struct topic {
    const char *name;
    const char *text;
} topics[] = {
    {"run", on_run},
    {"node", on_node},
    {"check", on_check},
    {"config", on_config},
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
    return ls_error(LS_EINVAL, "there is no help on \"%s\"%s%s%s", topic,
                    nearest != NULL ? "; did you mean \"" : "",
                    nearest != NULL ? nearest : "",
                    nearest != NULL ? "\"?" : ": run, node, check, config");
}

void help_print_short(FILE *to)
{
    fputs("lockstep run CONFIG      start every node of a job here\n"
          "lockstep check CONFIG    is the file right? what would run?\n"
          "lockstep --help          more, with examples\n",
          to);
}
