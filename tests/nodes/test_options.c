/* The command line: what is understood, and what is said otherwise. */
#include "options.h"
#include "plan.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 24

/* A line cut at blanks, as a shell would. */
struct line {
    char text[512];
    char *argv[WORDS_MAX];
    int argc;
};

static void cut(struct line *line, const char *text)
{
    assert_true(strlen(text) < sizeof line->text);
    memcpy(line->text, text, strlen(text) + 1);
    line->argc = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line->text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        assert_true(line->argc < WORDS_MAX);
        line->argv[line->argc++] = word;
    }
}

static void parse(struct line *line, const char *text, struct options *out)
{
    cut(line, text);
    if (options_parse(out, line->argc, line->argv) != LS_OK)
        fail_msg("%s: %s", text, ls_error_text());
}

TEST(run_takes_its_options_in_any_order)
{
    struct line line;
    struct options options;
    parse(&line,
          "lockstep run --seed 7 a.yaml --as threads --json --timeout=1.5 "
          "--set a.b=c=d --set x= --out there",
          &options);
    assert_int_equal(options.command, COMMAND_RUN);
    assert_string_equal(options.config, "a.yaml");
    assert_string_equal(options.seed, "7");
    assert_string_equal(options.out, "there");
    assert_int_equal(options.as, AS_THREADS);
    assert_true(options.json);
    assert_true(options.timeout_s == 1.5);
    assert_int_equal(options.n_sets, 2);
    assert_string_equal(options.sets[0].path, "a.b");
    assert_string_equal(options.sets[0].value, "c=d");
    assert_string_equal(options.sets[1].value, "");
}

TEST(eval_and_export_take_a_policy_and_perhaps_a_configuration)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep eval out/job/3 job.yaml --episodes 7 --seed 1",
          &options);
    assert_int_equal(options.command, COMMAND_EVAL);
    assert_string_equal(options.policy, "out/job/3");
    assert_string_equal(options.config, "job.yaml");
    assert_int_equal(options.n_episodes, 7);
    parse(&line, "lockstep export out/job/3 --force --out p.safetensors",
          &options);
    assert_string_equal(options.policy, "out/job/3");
    assert_string_equal(options.out, "p.safetensors");
    assert_true(options.force);
    parse(&line, "lockstep eval policy.msgpack", &options);
    assert_null(options.config);
    assert_int_equal(options.n_episodes, 0);
}

TEST(checkpoint_takes_a_verb_a_folder_and_epochs)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep checkpoint diff out/job/3 4 700 --json", &options);
    assert_int_equal(options.command, COMMAND_CHECKPOINT);
    assert_string_equal(options.checkpoint.verb, "diff");
    assert_string_equal(options.checkpoint.path, "out/job/3");
    assert_int_equal(options.checkpoint.n_epochs, 2);
    assert_int_equal(options.checkpoint.epochs[1], 700);
    assert_true(options.json);
    parse(&line,
          "lockstep checkpoint rm c --keep-last 3 --every 10 --best 2 "
          "--metric loss --least",
          &options);
    assert_int_equal(options.checkpoint.keep_last, 3);
    assert_int_equal(options.checkpoint.keep_every, 10);
    assert_int_equal(options.checkpoint.keep_best, 2);
    assert_string_equal(options.checkpoint.metric, "loss");
    assert_true(options.checkpoint.least);
    parse(&line, "lockstep checkpoint diff c best 4 --metric loss --least",
          &options);
    assert_true(options.checkpoint.epochs[0] == PLAN_FROM_BEST);
    assert_int_equal(options.checkpoint.epochs[1], 4);
    assert_string_equal(options.checkpoint.metric, "loss");
    parse(&line, "lockstep checkpoint export c 1 --out f --node a --blob b",
          &options);
    assert_string_equal(options.out, "f");
    assert_string_equal(options.checkpoint.node, "a");
    assert_string_equal(options.checkpoint.blob, "b");
}

TEST(resume_names_a_run_or_the_latest)
{
    static const struct {
        const char *line, *resume;
    } good[] = {
        {"lockstep run a.yaml --resume", "latest"},
        {"lockstep run --resume a.yaml", "latest"},
        {"lockstep run --resume latest a.yaml", "latest"},
        {"lockstep run a.yaml --resume 12 --json", "12"},
        {"lockstep run a.yaml --resume=3", "3"},
        {"lockstep run a.yaml", NULL},
    };
    struct line line;
    struct options options;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        parse(&line, good[i].line, &options);
        assert_string_equal(options.config, "a.yaml");
        if (good[i].resume == NULL)
            assert_null(options.resume);
        else
            assert_string_equal(options.resume, good[i].resume);
    }
    static const struct {
        const char *line, *text;
    } bad[] = {
        {"lockstep run a.yaml --resume=first",
         "--resume=first: expected latest, or the number of a run"},
        {"lockstep run a.yaml --resume --fresh", "--fresh begins a new run"},
        {"lockstep run a.yaml --resume 3 --record r",
         "--record begins a new run"},
        {"lockstep check a.yaml --resume", "--resume is not an option of"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cut(&line, bad[i].line);
        assert_fails(options_parse(&options, line.argc, line.argv), LS_EINVAL);
        assert_error_has(bad[i].text);
    }
}

TEST(an_epoch_is_of_a_run_that_is_resumed)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep run a.yaml", &options);
    assert_int_equal(options.epoch, -1);
    assert_null(options.resume);
    parse(&line, "lockstep run a.yaml --epoch 0", &options);
    assert_int_equal(options.epoch, 0);
    assert_string_equal(options.resume, "latest");
    parse(&line, "lockstep run a.yaml --resume 3 --epoch 12", &options);
    assert_int_equal(options.epoch, 12);
    assert_string_equal(options.resume, "3");
    parse(&line, "lockstep run a.yaml --epoch best", &options);
    assert_true(options.epoch == PLAN_FROM_BEST);
    assert_string_equal(options.resume, "latest");
    parse(&line, "lockstep eval out/a/1 --epoch 7", &options);
    assert_int_equal(options.epoch, 7);
    cut(&line, "lockstep run a.yaml --resume best");
    assert_fails(options_parse(&options, line.argc, line.argv), LS_EINVAL);
    assert_error_has("--epoch best");
    cut(&line, "lockstep run a.yaml --fresh --epoch 4");
    assert_fails(options_parse(&options, line.argc, line.argv), LS_EINVAL);
    assert_error_has("leave out it or --fresh");
}

TEST(run_has_defaults)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep run a.yaml", &options);
    assert_null(options.seed);
    assert_null(options.out);
    assert_int_equal(options.as, AS_PROCESSES);
    assert_false(options.json);
    assert_true(options.timeout_s == 0.0);
    assert_int_equal(options.report_fd, -1);
}

TEST(bench_takes_sizes_and_times)
{
    struct line line;
    struct options options;
    parse(&line,
          "lockstep bench learner --stacks 2 --loaders 0 --passes 3 --queue 5 "
          "--load-us 7 --train-us=11 --batch-bytes 13 --seconds 0.5 "
          "--devices cpu:0,cpu:1 --json",
          &options);
    assert_int_equal(options.command, COMMAND_BENCH);
    assert_string_equal(options.bench.what, "learner");
    assert_string_equal(options.bench.devices, "cpu:0,cpu:1");
    assert_int_equal(options.bench.stacks, 2);
    assert_int_equal(options.bench.loaders, 0);
    assert_int_equal(options.bench.passes, 3);
    assert_int_equal(options.bench.queue, 5);
    assert_int_equal(options.bench.load_us, 7);
    assert_int_equal(options.bench.train_us, 11);
    assert_int_equal(options.bench.batch_bytes, 13);
    assert_true(options.bench.seconds == 0.5);
    assert_true(options.json);
}

TEST(keygen_takes_a_folder_and_nodes)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep keygen keys --id 3 --id=4294967295 --json",
          &options);
    assert_int_equal(options.command, COMMAND_KEYGEN);
    assert_string_equal(options.folder, "keys");
    assert_null(options.config);
    assert_int_equal(options.n_ids, 2);
    assert_int_equal(options.ids[0], 3);
    assert_true(options.ids[1] == UINT32_MAX);
    assert_true(options.json);
    assert_false(options.enrolment);
    parse(&line,
          "lockstep keygen keys a.yaml --enrolment --nodes 2 --set a.b=c",
          &options);
    assert_string_equal(options.config, "a.yaml");
    assert_int_equal(options.n_ids, 0);
    assert_int_equal(options.n_sets, 2);
    assert_true(options.enrolment);
    assert_false(options.json);
}

TEST(sim_takes_seeds_and_faults)
{
    struct line line;
    struct options options;
    parse(&line,
          "lockstep sim a.yaml --seeds 500 --first 20 --nodes 9 "
          "--faults cuts --event-log e.log --sabotage eager --json",
          &options);
    assert_int_equal(options.command, COMMAND_SIM);
    assert_int_equal(options.n_seeds, 500);
    assert_int_equal(options.first_seed, 20);
    assert_string_equal(options.faults, "cuts");
    assert_string_equal(options.event_log, "e.log");
    assert_string_equal(options.sabotage, "eager");
    assert_true(options.json);
    assert_int_equal(options.n_sets, 1);
    assert_string_equal(options.sets[0].path, "nodes.0.count");
    assert_string_equal(options.sets[0].value, "9");
    parse(&line, "lockstep sim a.yaml --seed 7", &options);
    assert_int_equal(options.first_seed, 7);
    assert_int_equal(options.n_seeds, 1);
    assert_int_equal(options.jobs, 0);
    parse(&line, "lockstep sim a.yaml --jobs 4", &options);
    assert_int_equal(options.jobs, 4);
}

TEST(run_takes_faults_in_a_simulation)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep run a.yaml --as sim --faults f.yaml", &options);
    assert_int_equal(options.as, AS_SIM);
    assert_string_equal(options.faults, "f.yaml");
}

TEST(node_takes_endpoints)
{
    struct line line;
    struct options options;
    parse(&line,
          "lockstep node a.yaml --id 4294967295 --bind B --advertise A "
          "--attach X --attach Y --report-fd 3 --secret-fd 4 --parent 12 "
          "--gone 3,7",
          &options);
    assert_int_equal(options.command, COMMAND_NODE);
    assert_true(options.id == UINT32_MAX);
    assert_string_equal(options.bind, "B");
    assert_string_equal(options.advertise, "A");
    assert_int_equal(options.n_attach, 2);
    assert_string_equal(options.attach[1], "Y");
    assert_int_equal(options.report_fd, 3);
    assert_int_equal(options.secret_fd, 4);
    assert_int_equal(options.parent, 12);
    assert_string_equal(options.gone, "3,7");
}

TEST(call_takes_a_node_a_name_and_what_is_asked)
{
    struct line line;
    struct options options;
    parse(&line,
          "lockstep call a.yaml learner ping {\"a\":1} --wait-ms 250 "
          "--channel 9 --attach X --id 100 --json",
          &options);
    assert_int_equal(options.command, COMMAND_CALL);
    assert_string_equal(options.config, "a.yaml");
    assert_string_equal(options.node, "learner");
    assert_string_equal(options.name, "ping");
    assert_string_equal(options.argument, "{\"a\":1}");
    assert_int_equal(options.wait_ms, 250);
    assert_int_equal(options.channel, 9);
    assert_true(options.has_id);
    assert_int_equal(options.id, 100);
    assert_int_equal(options.n_attach, 1);
    assert_true(options.json);
    parse(&line, "lockstep call a.yaml 0 stats", &options);
    assert_null(options.argument);
    assert_false(options.has_id);
    assert_int_equal(options.secret_fd, -1);
    assert_int_equal(options.wait_ms, 10000);
    assert_int_equal(options.channel, 0);
}

TEST(health_takes_an_id_and_a_time)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep health a.yaml --id 2 --within 1.5 --json", &options);
    assert_int_equal(options.command, COMMAND_HEALTH);
    assert_string_equal(options.config, "a.yaml");
    assert_true(options.has_id);
    assert_int_equal(options.id, 2);
    assert_true(options.within_s == 1.5);
    assert_true(options.json);
    parse(&line, "lockstep health a.yaml", &options);
    assert_false(options.has_id);
    assert_true(options.within_s == 0);
}

TEST(patience_is_for_those_that_wait)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep run a.yaml --patience 3600", &options);
    assert_true(options.patience_s == 3600);
    assert_string_equal(options.patience, "3600");
    parse(&line, "lockstep node a.yaml --id 1 --patience 0.5", &options);
    assert_true(options.patience_s == 0.5);
    parse(&line, "lockstep run a.yaml", &options);
    assert_true(options.patience_s == 0);
    assert_null(options.patience);
}

TEST(help_is_asked_for_in_every_way)
{
    static const struct {
        const char *text, *topic;
    } cases[] = {
        {"lockstep help", NULL},
        {"lockstep --help", NULL},
        {"lockstep -h", NULL},
        {"lockstep help run", "run"},
        {"lockstep run --help", "run"},
        {"lockstep node a.yaml -h", "node"},
        {"lockstep check -h --x", "check"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct line line;
        struct options options;
        parse(&line, cases[i].text, &options);
        assert_int_equal(options.command, COMMAND_HELP);
        if (cases[i].topic == NULL)
            assert_null(options.topic);
        else
            assert_string_equal(options.topic, cases[i].topic);
    }
}

TEST(version_and_nothing)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep --version", &options);
    assert_int_equal(options.command, COMMAND_VERSION);
    parse(&line, "lockstep", &options);
    assert_int_equal(options.command, COMMAND_NONE);
}

TEST(file_may_begin_with_a_dash_after_two)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep run -- --json", &options);
    assert_string_equal(options.config, "--json");
    assert_false(options.json);
}

struct mistake {
    const char *text, *says;
};

static void assert_mistakes(const struct mistake *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct line line;
        struct options options;
        memset(&options, 0x5a, sizeof options);
        const struct options before = options;
        cut(&line, cases[i].text);
        assert_fails(options_parse(&options, line.argc, line.argv), LS_EINVAL);
        if (strstr(ls_error_text(), cases[i].says) == NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].text,
                     ls_error_text(), cases[i].says);
        assert_memory_equal(&options, &before, sizeof options);
    }
}

TEST(mistakes_are_told_with_what_to_write)
{
    static const struct mistake cases[] = {
        {"lockstep rnu", "did you mean \"run\"?"},
        {"lockstep dance", "run, node, check"},
        {"lockstep /etc/passwd", "did you mean \"lockstep run /etc/passwd\"?"},
        {"lockstep run", "which configuration?"},
        {"lockstep run a b", "two configurations, a and b"},
        {"lockstep run a --sede 3", "did you mean \"--seed\"?"},
        {"lockstep run a --frobnicate", "lockstep help run"},
        {"lockstep run a --id 3", "not an option of \"lockstep run\""},
        {"lockstep check a --timeout 3", "not an option of \"lockstep check\""},
        {"lockstep run a --seed", "a number must follow"},
        {"lockstep run a --seed -1", "whole number"},
        {"lockstep run a --seed 1.5", "whole number"},
        {"lockstep run a --seed 9223372036854775808", "whole number"},
        {"lockstep run a --seed 99999999999999999999999", "whole number"},
        {"lockstep run a --json=yes", "takes no value"},
        {"lockstep run a --as thread", "did you mean \"threads\"?"},
        {"lockstep run a --as x", "processes, threads, sim or compose"},
        {"lockstep run a --faults all", "add --as sim"},
        {"lockstep run a --event-log x", "add --as sim"},
        {"lockstep run a --out=", "--out: a folder must follow it, not \"\""},
        {"lockstep export a --out=", "--out: a file must follow it"},
        {"lockstep run a --seeds 3", "not an option of \"lockstep run\""},
        {"lockstep sim", "which configuration?"},
        {"lockstep sim a --as sim", "not an option of \"lockstep sim\""},
        {"lockstep sim a --nodes x", "whole number"},
        {"lockstep sim a --seeds 0", "from 1 to"},
        {"lockstep sim a --seed 5 --seeds 9", "--first 5 --seeds 9"},
        {"lockstep sim a --seeds 9 --seed 5", "--first 5 --seeds 9"},
        {"lockstep sim a --jobs 0", "from 1 to"},
        {"lockstep sim a --jobs 2 --event-log x", "leave out --jobs 2"},
        {"lockstep run a --timeout 0", "more than 0"},
        {"lockstep run a --timeout nan", "more than 0"},
        {"lockstep run a --timeout soon", "more than 0"},
        {"lockstep run a --set b", "key=value"},
        {"lockstep run a --set =b", "key=value"},
        {"lockstep node a --identity x", "say --role"},
        {"lockstep node a --id 4294967296", "whole number"},
        {"lockstep node --id 3", "which configuration?"},
        {"lockstep bench", "lockstep bench learner"},
        {"lockstep bench lerner", "nothing to measure"},
        {"lockstep bench learner learner", "nothing to measure"},
        {"lockstep bench learner --stacks 0", "from 1 to 1024"},
        {"lockstep bench learner --loaders 1025", "from 0 to 1024"},
        {"lockstep bench learner --passes x", "whole number"},
        {"lockstep bench learner --batch-bytes 1099511627777", "from 1 to"},
        {"lockstep bench learner --seconds 0", "more than 0"},
        {"lockstep bench learner --stack 2", "did you mean \"--stacks\"?"},
        {"lockstep bench learner --seed 2",
         "not an option of \"lockstep bench\""},
        {"lockstep run a --stacks 2", "not an option of \"lockstep run\""},
        {"lockstep help run node", "one word too many"},
    };
    assert_mistakes(cases, sizeof cases / sizeof cases[0]);
}

TEST(mistakes_in_keygen_are_told)
{
    static const struct mistake cases[] = {
        {"lockstep keygen", "which folder?"},
        {"lockstep keygen --id 3", "which folder?"},
        {"lockstep keygen keys", "keys for which nodes?"},
        {"lockstep keygen keys --id x", "whole number"},
        {"lockstep keygen keys --id 4294967296", "whole number"},
        {"lockstep keygen keys --id 3 --id 3", "--id 3: it is given twice"},
        {"lockstep keygen keys a b", "\"b\" is one word too many"},
        {"lockstep keygen keys --id 3 --set a=b", "name it, as in"},
        {"lockstep keygen keys --enrolment=yes", "takes no value"},
        {"lockstep keygen keys --enrollment", "did you mean \"--enrolment\"?"},
        {"lockstep keygen keys a --seed 3",
         "not an option of \"lockstep keygen\""},
        {"lockstep run a --enrolment", "not an option of \"lockstep run\""},
    };
    assert_mistakes(cases, sizeof cases / sizeof cases[0]);
}

TEST(more_keys_than_there_may_be_are_told)
{
    char words[OPTIONS_REPEATS_MAX + 1][16];
    char program[] = "lockstep", command[] = "keygen", folder[] = "keys";
    char *argv[OPTIONS_REPEATS_MAX + 4] = {program, command, folder};
    struct options options;
    for (int i = 0; i <= OPTIONS_REPEATS_MAX; i++) {
        (void)snprintf(words[i], sizeof words[i], "--id=%d", i);
        argv[3 + i] = words[i];
    }
    assert_fails(options_parse(&options, OPTIONS_REPEATS_MAX + 4, argv),
                 LS_EINVAL);
    assert_error_has("at most 64");
}

TEST(mistakes_in_a_call_are_told)
{
    static const struct mistake cases[] = {
        {"lockstep call", "which configuration?"},
        {"lockstep call a", "which node? As in: lockstep call a 1 ping"},
        {"lockstep call a 1", "which call?"},
        {"lockstep call a 1 ping {a: 1}", "is what is asked in quotes"},
        {"lockstep call a 1 ping --wait-ms soon", "whole number"},
        {"lockstep call a 1 ping --timeout 3", "not an option of"},
    };
    assert_mistakes(cases, sizeof cases / sizeof cases[0]);
}

TEST(repeats_have_a_limit)
{
    struct options options;
    char *argv[2 * OPTIONS_REPEATS_MAX + 8];
    char words[OPTIONS_REPEATS_MAX + 1][8];
    char program[] = "lockstep", run[] = "run", file[] = "a", set[] = "--set";
    int argc = 0;
    argv[argc++] = program;
    argv[argc++] = run;
    argv[argc++] = file;
    for (int i = 0; i <= OPTIONS_REPEATS_MAX; i++) {
        memcpy(words[i], "a=1", 4);
        argv[argc++] = set;
        argv[argc++] = words[i];
    }
    assert_fails(options_parse(&options, argc, argv), LS_EINVAL);
    assert_error_has("at most 64");
}

TEST(what_nodes_write_goes_where_output_says)
{
    struct line line;
    struct options options;
    parse(&line, "lockstep run a.yaml", &options);
    assert_null(options.output);
    static const char *const good[] = {"all", "only_error", "logs",
                                       "./only_errors", "a/b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "lockstep run a.yaml --output %s",
                       good[i]);
        parse(&line, text, &options);
        assert_string_equal(options.output, good[i]);
    }
    static const char *const bad[][2] = {
        {"lockstep run a.yaml --output only_errors",
         "\"only_error\"? A folder"},
        {"lockstep run a.yaml --output=",
         "expected all, only_error or a folder"},
        {"lockstep run a.yaml --output d --as threads",
         "leave out --as threads"},
        {"lockstep run a.yaml --output d --as sim", "leave out --as sim"},
        {"lockstep node a.yaml --output d",
         "is not an option of \"lockstep node\""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cut(&line, bad[i][0]);
        assert_fails(options_parse(&options, line.argc, line.argv), LS_EINVAL);
        assert_non_null(strstr(ls_error_text(), bad[i][1]));
    }
}

TEST(what_is_read_is_not_named_as_what_is_written)
{
    char file[] = "/tmp/options-XXXXXX", link[32], text[200];
    struct line line;
    struct options options;
    const int fd = mkstemp(file);
    assert_true(fd >= 0);
    (void)snprintf(link, sizeof link, "%s.lnk", file);
    assert_int_equal(symlink(file, link), 0);
    static const char *const bad[] = {
        "lockstep sim %s --event-log %s", "lockstep sim %s --minimize %s",
        "lockstep sim a.yaml --faults %s --event-log %s",
        "lockstep trace %s --out %s", "lockstep profile %s --html %s"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        (void)snprintf(text, sizeof text, bad[i], file, link);
        cut(&line, text);
        assert_fails(options_parse(&options, line.argc, line.argv), LS_EINVAL);
        assert_error_has("would replace what is read");
        (void)snprintf(text, sizeof text, bad[i], file, "/tmp/another");
        parse(&line, text, &options);
    }
    (void)unlink(link);
    (void)unlink(file);
    (void)close(fd);
}

TEST(two_results_are_not_written_to_one_file)
{
    struct line line;
    struct options options;
    cut(&line, "lockstep sim a.yaml --event-log new --minimize new");
    assert_fails(options_parse(&options, line.argc, line.argv), LS_EINVAL);
    assert_error_has("--event-log and --minimize would both be written to new");
    cut(&line, "lockstep trace out --metrics new --out new");
    assert_fails(options_parse(&options, line.argc, line.argv), LS_EINVAL);
    assert_error_has("--metrics and --out would both be written to new");
}
