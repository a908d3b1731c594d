/* make_seeds FOLDER: write the seeds that the program's own writers make, to
 * FOLDER/UNIT/NAME. Those that are texts, or were found, are beside them in the
 * tree. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "lockstep/file.h"
#include "lockstep/journal.h"
#include "lockstep/trace.h"

#include "../base/record_example.h"
#include "barrier_wire.h"
#include "exchange_merge.h"
#include "fsm.h"
#include "fuzz.h"
#include "fuzz_context.h"
#include "group_wire.h"
#include "lease.h"
#include "policy_value.h"
#include "report.h"
#include "store.h"
#include "store_calls.h"
#include "store_files.h"
#include "weights.h"
#include "wire.h"

#include "support/fsm_options.h"
#include "support/service_messages.h"
#include "support/trajectory_room.h"

static const char *to;
static ls_writer *writer;

/* What is at `before`, size bytes, then the rest. */
static void seed(const char *unit, const char *name, const char *before,
                 size_t n, const void *data, size_t size)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", to, unit);
    must(ls_folder_make(path) == LS_OK);
    (void)snprintf(path, sizeof path, "%s/%s/%s", to, unit, name);
    const struct ls_file_part parts[] = {{before, n}, {data, size}};
    char temporary[1030];
    (void)snprintf(temporary, sizeof temporary, "%s.new", path);
    must(ls_file_replace(path, temporary, parts, 2, false) == LS_OK);
}

/* What was written, behind one byte that says as what it is read. */
static void seed_value(const char *unit, const char *name, char kind)
{
    const struct fuzz_bytes bytes = fuzz_written(writer);
    seed(unit, name, &kind, 1, bytes.data, bytes.size);
    ls_writer_clear(writer);
}

/* The message that was written; kind: in the order of fuzz_messages.c. */
static void message(const char *name, char kind)
{
    seed_value("messages", name, kind);
}

static void messages_of_learners(void)
{
    service_nothing_write(writer);
    message("nothing", 0);
    service_started_write("it begins", writer);
    message("started", 0);
    service_resource_write(&resource, writer);
    message("resource", 1);
    work_key_write(&key, writer);
    message("key", 2);
    learner_work_write(&learner, writer);
    message("learner_work", 3);
    learner_demand_write(&demand, writer);
    message("demand", 5);
    learner_demand_write(&last_demand, writer);
    message("last_demand", 5);
    learner_batch_write(&batch, writer);
    message("batch", 6);
    learner_result_write(&result, writer);
    message("result", 7);
    learner_closed_write(&learner_closed, writer);
    message("learner_closed", 10);
}

static void messages_of_collectors(void)
{
    collector_work_write(&collector, writer);
    message("collector_work", 4);
    collector_ask_write(&ask, writer);
    message("ask", 8);
    collector_data_write(&data_example, writer);
    message("data", 9);
    collector_data_write(&done, writer);
    message("info", 9);
    collector_closed_write(&collector_closed, writer);
    message("collector_closed", 11);
}

static void store_messages(void)
{
    store_name dropped[] = {"d1.1.a.1", "d1.1.a.2"};
    struct store_range parts[] = {{"d1.1.a.1", 0, 0}, {"d2.2.a.1", 8, 16}};
    ls_record_write(
        &store_put_record,
        &(struct store_put_call){.name = "d.1", .keep = true, .rank = 3},
        writer);
    seed_value("store_calls", "put", 0);
    ls_record_write(&store_get_record, &(struct store_get_call){2, parts},
                    writer);
    seed_value("store_calls", "get", 1);
    ls_record_write(&store_drop_record, &(struct store_drop_call){2, dropped},
                    writer);
    seed_value("store_calls", "drop", 2);
    ls_record_write(&store_answer_record,
                    &(struct store_answer){.n = 2, .sizes = {1, 3}}, writer);
    seed_value("store_calls", "answer", 3);
    ls_record_write(
        &store_answer_record,
        &(struct store_answer){.status = LS_ENOENT, .text = "there is none"},
        writer);
    seed_value("store_calls", "error", 3);
}

static void a_record(void)
{
    struct part own = {8, "own"};
    struct ls_bytes item = {(void *)"x", 1};
    int64_t number = INT64_MIN;
    const struct all all = {.truth = true,
                            .figure = NAN,
                            .text = (char *)"text",
                            .bytes = item,
                            .numbers = {&number, 1},
                            .items = {&item, 1},
                            .natural = UINT64_MAX,
                            .chars = "chars",
                            .n_block = 4,
                            .parts = {{4, "two"}, {6, ""}},
                            .n_parts = 2,
                            .own = &own,
                            .n_own = 1,
                            .has_extra = true,
                            .if_set = "set"};
    ls_record_write(&all_record, &all, writer);
    const struct fuzz_bytes bytes = fuzz_written(writer);
    seed("record", "all", NULL, 0, bytes.data, bytes.size);
    ls_writer_clear(writer);
}

static void barrier(const char *name, const struct ls_barrier_message *message)
{
    unsigned char bytes[LS_BARRIER_WIRE_MAX];
    seed("barrier_wire", name, NULL, 0, bytes,
         ls_barrier_wire_encode(message, bytes));
}

static void barrier_messages(void)
{
    static const struct ls_barrier_missing missing[] = {{3, 5}, {9, 0}};
    barrier("entered", &(struct ls_barrier_message){.kind = LS_BARRIER_ENTERED,
                                                    .ask = true,
                                                    .to = 7,
                                                    .epoch = 4,
                                                    .view = 99,
                                                    .reason = ""});
    barrier("branch", &(struct ls_barrier_message){.kind = LS_BARRIER_ENTERED,
                                                   .branch = true,
                                                   .known = 1,
                                                   .reason = "",
                                                   .n_lacking = 2,
                                                   .missing = missing,
                                                   .n_missing = 2});
    barrier("stuck", &(struct ls_barrier_message){.kind = LS_BARRIER_ENTERED,
                                                  .stuck = true,
                                                  .status = LS_ELOST,
                                                  .reason = "",
                                                  .n_lost = 1,
                                                  .lost = 5,
                                                  .lost_one = 3});
    barrier("abort", &(struct ls_barrier_message){.kind = LS_BARRIER_ABORT,
                                                  .final = true,
                                                  .status = LS_ETIMEDOUT,
                                                  .origin = 2,
                                                  .reason = "too late",
                                                  .reason_size = 8,
                                                  .n_lacking = 70,
                                                  .missing = missing,
                                                  .n_missing = 2});
}

static void group(const char *name, const struct group_message *message)
{
    unsigned char bytes[GROUP_WIRE_HEAD_MAX + 16];
    const size_t size = group_wire_encode(message, bytes);
    memcpy(bytes + size, "what they bring", message->data_size);
    seed("group_wire", name, NULL, 0, bytes, size + message->data_size);
}

static void group_messages(void)
{
    const struct group_form form = {.kind = LS_GROUP_ALL_REDUCE,
                                    .type = LS_GROUP_F32,
                                    .count = 3,
                                    .name = "gradients"};
    group("commit", &(struct group_message){.kind = GROUP_COMMIT,
                                            .generation = 1,
                                            .commit = (unsigned char *)"xyz",
                                            .commit_size = 3,
                                            .has_form = true,
                                            .form = form,
                                            .has_data = true,
                                            .data_size = 12});
    group("want", &(struct group_message){.kind = GROUP_WANT,
                                          .again = true,
                                          .generation = 1,
                                          .number = 6,
                                          .upto = 1000,
                                          .form = form});
    group("data", &(struct group_message){
                      .kind = GROUP_DATA, .generation = 1, .data_size = 8});
    group("end", &(struct group_message){.kind = GROUP_END,
                                         .pair = true,
                                         .generation = 1,
                                         .status = LS_EMISMATCH,
                                         .text = "no",
                                         .text_size = 2});
}

/* As a sender writes it, behind its length. */
static size_t message_of(unsigned char *out, uint64_t round)
{
    ls_context *context = NULL;
    ls_exchange_plan *plan = NULL;
    must(ls_context_create(&context, &fuzz_context_type) == LS_OK);
    struct fuzz_context *values = ls_context_data(context);
    values->last_eval_value = 0;
    must(ls_exchange_plan_create(
             &plan, context, "user_text,policy,trajectories,trajectory_end_idx",
             "env_step,last_eval_value") == LS_OK);
    values->total_step = 3;
    values->env_step = 128;
    values->last_eval_value = 0.5;
    must(ls_text_set(&values->user_text, "http://x") == LS_OK);
    must(ls_bytes_set(&values->policy, "p", 1) == LS_OK);
    must(ls_items_append(&values->trajectories, "ab", 2) == LS_OK);
    must(ls_numbers_append(&values->trajectory_end_idx, 1) == LS_OK);
    must(ls_exchange_write(plan, context, round, writer) == LS_OK);
    const struct fuzz_bytes bytes = fuzz_written(writer);
    out[0] = (unsigned char)(bytes.size >> 8);
    out[1] = (unsigned char)bytes.size;
    memcpy(out + 2, bytes.data, bytes.size);
    ls_exchange_plan_destroy(&plan);
    ls_context_destroy(&context);
    ls_writer_clear(writer);
    return 2 + bytes.size;
}

static void exchange_messages(void)
{
    static unsigned char bytes[4096];
    size_t n = 0;
    for (uint64_t round = 3; round < 8; round++)
        n += message_of(bytes + n, round);
    seed("exchange", "rounds", NULL, 0, bytes, n);
    n = message_of(bytes, 1000);
    ls_exchange_write_end(1, writer);
    const struct fuzz_bytes end = fuzz_written(writer);
    bytes[n++] = 0;
    bytes[n++] = (unsigned char)end.size;
    memcpy(bytes + n, end.data, end.size);
    seed("exchange", "end", NULL, 0, bytes, n + end.size);
    ls_writer_clear(writer);
}

static void trajectory(const char *name, char kind,
                       const struct trajectory_shape *shape, size_t n)
{
    struct trajectory made;
    must(trajectory_init(&made, shape) == LS_OK);
    struct ls_trajectory *const view = &made.view;
    size_t bytes = 0;
    must(trajectory_bytes(shape, &bytes) == LS_OK);
    memset(made.memory, 0, bytes);
    for (size_t i = 0; i < n && shape->n_choices == 0; i++)
        view->rewards[i] = (float)i;
    view->n = n;
    must(trajectory_write(view, shape, writer) == LS_OK);
    seed_value("trajectory", name, kind);
    trajectory_fini(&made);
}

/* In the order of fuzz_trajectory.c. */
static void trajectories(void)
{
    trajectory("choices", 0,
               &(struct trajectory_shape){.observation = {LS_F32, 1, {3}},
                                          .n_extras = 2,
                                          .n_choices = 4,
                                          .n_max = 5},
               3);
    trajectory("free", 1,
               &(struct trajectory_shape){.observation = {LS_F32, 1, {2}},
                                          .action = {LS_F32, 1, {3}},
                                          .n_max = 4},
               4);
    trajectory("none", 1,
               &(struct trajectory_shape){.observation = {LS_F32, 1, {2}},
                                          .action = {LS_F32, 1, {3}},
                                          .n_max = 4},
               0);
    trajectory("image", 2,
               &(struct trajectory_shape){.observation = {LS_U8, 2, {2, 2}},
                                          .action = {.type = LS_I32},
                                          .n_extras = 1,
                                          .n_choices = 3,
                                          .n_max = 4},
               2);
    trajectory("doubles", 3,
               &(struct trajectory_shape){.observation = {LS_F64, 1, {2}},
                                          .action = {.type = LS_U8},
                                          .n_max = 4},
               4);
}

static void write_policy(void)
{
    static const float parameters[12] = {0.5f, -0.5f, 0.25f};
    ls_write_map(writer, 2);
    ls_write_string(writer, "layers");
    ls_write_array(writer, 3);
    for (int i = 0; i < 3; i++)
        ls_write_uint(writer, 2);
    ls_write_string(writer, "actor");
    ls_write_floats(writer, parameters, 12);
}

/* As weights.c has it, of the policy in fuzz_weights.c. */
static void weights(bool iteration)
{
    ls_write_map(writer, iteration ? 9 : 8);
    ls_write_string(writer, "format");
    ls_write_string(writer, "lockstep.policy.1");
    ls_write_string(writer, "plugin");
    ls_write_string(writer, "cartpole");
    ls_write_string(writer, "plugin_version");
    ls_write_string(writer, "1");
    ls_write_string(writer, "seed");
    ls_write_uint(writer, 5);
    if (iteration) {
        ls_write_string(writer, "iteration");
        ls_write_int(writer, 9);
    }
    ls_write_string(writer, "train_iter");
    ls_write_int(writer, 8);
    ls_write_string(writer, "env_step");
    ls_write_int(writer, 4096);
    ls_write_string(writer, "env_episode");
    ls_write_int(writer, 70);
    ls_write_string(writer, "weights");
    write_policy();
    seed_value("weights", iteration ? "file" : "no_iteration", 0);
}

static void policy(void)
{
    unsigned char copy[256];
    write_policy();
    const struct fuzz_bytes bytes = fuzz_written(writer);
    must(bytes.size <= sizeof copy);
    memcpy(copy, bytes.data, bytes.size);
    ls_writer_clear(writer);
    policy_value_write(&(struct policy_value){.iter = 8,
                                              .version = 9,
                                              .weights = {copy, bytes.size}},
                       writer);
    seed_value("weights", "policy", 1);
}

static void reports(void)
{
    static const char pipe_kind = 1;
    struct report report = report_of(3, REPORT_FAILED);
    report.status = LS_EIO;
    (void)snprintf(report.text, sizeof report.text, "the disk is full");
    report_set_metrics(&report, "\x80", 1);
    ls_record_write(&report_record, &report, writer);
    seed_value("report", "failed", 0);
    report = report_of(3, REPORT_BOUND);
    (void)snprintf(report.endpoint, sizeof report.endpoint, "tcp://h:21500");
    unsigned char frames[4096];
    ls_record_write(&report_record, &report, writer);
    const struct fuzz_bytes bytes = fuzz_written(writer);
    must(2 * (4 + bytes.size) <= sizeof frames);
    for (size_t i = 0; i < 2; i++) {
        unsigned char *const at = frames + i * (4 + bytes.size);
        const unsigned char length[4] = {(unsigned char)bytes.size,
                                         (unsigned char)(bytes.size >> 8)};
        memcpy(at, length, 4);
        memcpy(at + 4, bytes.data, bytes.size);
    }
    seed("report", "pipe", &pipe_kind, 1, frames, 2 * (4 + bytes.size));
    ls_writer_clear(writer);
}

static void leases(void)
{
    static char text[] = "1 0000000000000000000000000000000000000001 lasting\n";
    ls_record_write(
        &lease_question_record,
        &(struct lease_question){.role = "collector",
                                 .key = "0123456789012345678901234567890123"
                                        "456789",
                                 .lasting = true,
                                 .life = 77},
        writer);
    seed_value("lease", "question", 0);
    ls_record_write(&lease_answer_record,
                    &(struct lease_answer){
                        .id = 3, .attach = "0@tcp://h:21500", .leases = text},
                    writer);
    seed_value("lease", "answer", 1);
}

/* A file that the program wrote, as it is. */
static void seed_file(const char *unit, const char *name, const char *path)
{
    void *data = NULL;
    size_t size = 0;
    must(ls_file_read(path, 1 << 20, &data, &size) == LS_OK);
    seed(unit, name, NULL, 0, data, size);
    free(data);
}

/* A manifest, as fuzz_vault.c wants it: of files, or of a value of 5 bytes. */
static void vault(const char *name, unsigned n_files, const char *file)
{
    const char head[3] = {n_files > 0 ? 0 : 5, 0, 0};
    ls_write_map(writer, 1);
    ls_write_string(writer, "shards");
    ls_write_array(writer, n_files > 0 ? n_files : 1);
    for (unsigned i = 0; i == 0 || i < n_files; i++) {
        char text[16];
        ls_write_map(writer, n_files > 0 ? 4 : 3);
        ls_write_string(writer, "name");
        ls_write_string(writer, n_files > 0 ? "shard" : "value");
        ls_write_string(writer, "size");
        ls_write_uint(writer, n_files > 0 ? 3 : 5);
        ls_write_string(writer, "xxh3");
        ls_write_uint(writer, n_files > 0 ? XXH3_64bits("abc", 3)
                                          : XXH3_64bits("hello", 5));
        if (n_files == 0)
            continue;
        (void)snprintf(text, sizeof text, "%s%u+s", file, i);
        ls_write_string(writer, "file");
        ls_write_string(writer, text);
    }
    const struct fuzz_bytes bytes = fuzz_written(writer);
    seed("vault", name, head, sizeof head, bytes.data, bytes.size);
    ls_writer_clear(writer);
}

static void files(void)
{
    static const char damage[] =
        "#\x03\x05hello\x00\x03you\x00\x12\x40"; /* three records; a flip */
    ls_journal *journal = NULL;
    struct store *store = NULL;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/key", fuzz_folder());
    char public_key[LS_PUBLIC_KEY_MAX];
    must(ls_key_create(path, public_key) == LS_OK);
    seed_file("identity", "key", path);
    (void)snprintf(path, sizeof path, "%s/journal", fuzz_folder());
    must(ls_journal_open(&journal,
                         &(struct ls_journal_options){.path = path}) == LS_OK);
    must(ls_journal_append(journal, &(struct ls_journal_record){"one", 3}) ==
         LS_OK);
    must(ls_journal_append(journal, &(struct ls_journal_record){"two", 3}) ==
         LS_OK);
    ls_journal_close(&journal);
    seed_file("journal", "two", path);
    seed("journal", "damage", NULL, 0, damage, sizeof damage - 1);
    must(store_files_open(&store, &(struct store_files_options){
                                      .folder = fuzz_folder()}) == LS_OK);
    must(store_put(store, &(struct store_put){.name = "value",
                                              .data = "bytes",
                                              .size = 5}) == LS_OK);
    store_close(&store);
    (void)snprintf(path, sizeof path, "%s/value", fuzz_folder());
    seed_file("store_files", "value", path);
    seed("store_files", "damage", NULL, 0, "#\x00\x03\x01hello", 9);
    vault("value", 0, "");
    vault("shards", 2, "e+");
    vault("elsewhere", 1, "../e+");
}

/* What a learner and a collector answer. False: nothing. right: what the
 * collector brings is taken; else it is refused. */
static bool write_answer(const struct fsm_action *asked, uint64_t number,
                         bool right)
{
    struct sample sample = sample_named("d.1");
    const struct collector_data data = {.key = {"collect_2", 1},
                                        .buffer_id = "buffer_1",
                                        .n = 1,
                                        .samples = &sample};
    (void)snprintf(sample.data_id, sizeof sample.data_id, "d%d", (int)number);
    (void)snprintf(sample.task_id, sizeof sample.task_id, "collect_2");
    sample.parts = right ? 1 : 2;
    ls_writer_clear(writer);
    if (asked->kind == FSM_CONNECT)
        service_nothing_write(writer);
    else if (strcmp(asked->name, CALL_RESOURCE) == 0)
        service_resource_write(&(struct service_resource){.cpu = 1}, writer);
    else if (strstr(asked->name, "start") != NULL)
        service_started_write("begun", writer);
    else if (strcmp(asked->name, CALL_LEARNER_DEMAND) == 0)
        learner_demand_write(&(struct learner_demand){.key = {"learn_1", 1},
                                                      .buffer_id = "buffer_1",
                                                      .batch_size = 1},
                             writer);
    else if (strcmp(asked->name, CALL_COLLECTOR_DATA) == 0)
        collector_data_write(&data, writer);
    else
        return false;
    return true;
}

/* What a coordinator records in the first moments of a job. keeps: also of its
 * samples. */
static void records(bool keeps)
{
    struct fsm_options options = small_core_options();
    options.keeps_samples = options.data_stays = keeps;
    options.samples_per_work = 2;
    options.unroll_len = 32;
    static unsigned char bytes[1 << 14], answers[1 << 14];
    size_t n = 0, n_answers = 0;
    fsm *machine = NULL;
    struct fsm_action action;
    must(fsm_create(&machine, &options, fsm_kinds) == LS_OK);
    const struct ls_member members[] = {core_member(1, 1, "learner", true),
                                        core_member(2, 1, "collector", true)};
    must(fsm_member(machine, 1, &members[0]) == LS_OK);
    must(fsm_member(machine, 1, &members[1]) == LS_OK);
    while (fsm_next(machine, &action) && n < 2000) {
        if (action.kind == FSM_RECORD) {
            bytes[n++] = (unsigned char)(action.size >> 8);
            bytes[n++] = (unsigned char)action.size;
            memcpy(bytes + n, action.data, action.size);
            n += action.size;
        }
        if ((action.kind != FSM_CONNECT && action.kind != FSM_CALL) ||
            !write_answer(&action, action.number, keeps))
            continue;
        const struct fuzz_bytes answer = fuzz_written(writer);
        unsigned char *const at = answers + n_answers;
        at[0] = (unsigned char)((1 + answer.size) >> 8);
        at[1] = (unsigned char)(1 + answer.size);
        at[2] = 0; /* completed */
        memcpy(at + 3, answer.data, answer.size);
        n_answers += 3 + answer.size;
        must(fsm_call_ended(machine, 1, action.number,
                            &(struct ls_call_result){.state = LS_CALL_COMPLETED,
                                                     .data = answer.data,
                                                     .size = answer.size}) ==
             LS_OK);
    }
    seed("recall", keeps ? "samples" : "records", NULL, 0, bytes, n);
    if (!keeps)
        seed("fsm", "answers", NULL, 0, answers, n_answers);
    ls_writer_clear(writer);
    fsm_destroy(&machine);
}

static void recording(void)
{
    const struct ls_trace_options options = {.job = "jump", .n_records = 4};
    ls_trace *trace = NULL;
    struct ls_trace_file file;
    void *data = NULL;
    size_t size = 0;
    must(ls_trace_create(&trace, &options) == LS_OK);
    struct ls_trace_record record = {.name = ls_trace_name(trace, "collect"),
                                     .kind = LS_TRACE_FORWARD,
                                     .end_ns = LS_NS_PER_MS};
    ls_trace_add(trace, &record);
    record.kind = LS_TRACE_HEARD;
    ls_trace_add(trace, &record);
    must(ls_trace_take(trace, 7, "a seed", &file) == LS_OK);
    must(ls_trace_encode(&file, &data, &size) == LS_OK);
    seed("trace", "two", NULL, 0, data, size);
    free(data);
    ls_trace_clear(&file);
    ls_trace_destroy(&trace);
}

/* --- frames and topics of the bus --------------------------------------- */

/* kind: in the order of fuzz_wire.c. */
static void wire(const char *name, char kind, const uint8_t *bytes, size_t n)
{
    seed("wire", name, &kind, 1, bytes, n);
}

/* A frame on this topic; payload: NULL: in a second frame, or it has none. */
static void frame(const char *name, const char *topic, struct wire_header *what,
                  const void *payload, size_t size)
{
    uint8_t bytes[2 * WIRE_HEAD_MAX];
    size_t n = strlen(topic) + 1;
    memcpy(bytes, topic, n);
    what->job = wire_job_hash("lockstep");
    what->origin = 7;
    what->incarnation = 9;
    what->sequence = 1;
    what->data = payload;
    what->size = size;
    n += wire_header_write(bytes + n, what);
    if (size != 0)
        memcpy(bytes + n, payload, size);
    wire(name, 0, bytes, n + size);
}

static void presences(void)
{
    uint8_t bytes[WIRE_TOPIC_MAX];
    struct wire_presence p = {.link = 7,
                              .id = 3,
                              .incarnation = 0xabc,
                              .config_hash = 0x1122,
                              .host = 0x33,
                              .job = "lockstep",
                              .role = "learner",
                              .labels = "gpu,fast",
                              .endpoint = "tcp://127.0.0.1:21500"};
    wire("presence", 1, bytes, wire_presence_write(bytes, &p));
    p.relayed = true;
    p.relay = 1;
    (void)snprintf(p.signature, sizeof p.signature, "00ff");
    wire("relayed", 1, bytes, wire_presence_write(bytes, &p));
    struct wire_listen l = {.link = 7, .id = 11, .event = "greet"};
    wire("listen", 2, bytes, wire_listen_write(bytes, &l));
    (void)snprintf(l.event, sizeof l.event, "*");
    wire("listen_glob", 2, bytes, wire_listen_write(bytes, &l));
}

static void heartbeats(void)
{
    uint8_t bytes[512];
    struct wire_member member = {.id = 7,
                                 .incarnation = 9,
                                 .state = WIRE_MEMBER_READY,
                                 .endpoint = "tcp://127.0.0.1:21500",
                                 .sent_messages = 3,
                                 .sent_bytes = 4,
                                 .limit_messages = 5,
                                 .limit_bytes = 6};
    size_t n = wire_members_begin(bytes, 2);
    n += wire_member_write(bytes + n, &member);
    member = (struct wire_member){.id = 8, .state = WIRE_MEMBER_ABSENT};
    n += wire_member_write(bytes + n, &member);
    wire("members", 3, bytes, n);
    frame("heartbeat", "c",
          &(struct wire_header){
              .kind = WIRE_KIND_HEARTBEAT, .name = "lockstep", .name_size = 8},
          bytes, n);
}

static void payloads(void)
{
    uint8_t bytes[64];
    size_t n = wire_batch_write(bytes, "hello", 5);
    n += wire_batch_write(bytes + n, "", 0);
    frame("batch", "egreet",
          &(struct wire_header){.kind = WIRE_KIND_BATCH, .total = 2}, bytes, n);
    frame("event", "egreet", &(struct wire_header){.kind = WIRE_KIND_EVENT},
          "hello", 5);
    frame("second_frame", "i7",
          &(struct wire_header){
              .kind = WIRE_KIND_EVENT, .name = "greet", .name_size = 5},
          NULL, 0);
    frame("chunk", "egreet",
          &(struct wire_header){
              .kind = WIRE_KIND_CHUNK, .total = 4000000, .offset = 1048576},
          "hello", 5);
    frame("channel", "i42",
          &(struct wire_header){
              .kind = WIRE_KIND_CHANNEL, .name = "barrier", .name_size = 7},
          "hello", 5);
    frame("reliable", "i42",
          &(struct wire_header){.kind = WIRE_KIND_RELIABLE,
                                .of = WIRE_KIND_EVENT,
                                .name = "greet",
                                .name_size = 5,
                                .to_incarnation = 5,
                                .number = 6,
                                .total = 5},
          "hello", 5);
}

static void control(void)
{
    char topic[WIRE_CHALLENGE_SIZE + 2] = "a";
    frame("credit", "i42",
          &(struct wire_header){.kind = WIRE_KIND_CREDIT,
                                .limit_messages = 10,
                                .limit_bytes = 20},
          NULL, 0);
    frame("ack", "i42",
          &(struct wire_header){.kind = WIRE_KIND_ACK,
                                .to_incarnation = 5,
                                .number = 6,
                                .also = 5,
                                .limit_messages = 7,
                                .limit_bytes = 8},
          NULL, 0);
    frame("farewell", "c",
          &(struct wire_header){.kind = WIRE_KIND_FAREWELL, .reason = -5}, NULL,
          0);
    frame("verdict", "i42",
          &(struct wire_header){.kind = WIRE_KIND_VERDICT,
                                .reason = -5,
                                .subject = 9,
                                .members = 3,
                                .silence_ms = 2000},
          "why", 3);
    memset(topic + 1, '7', WIRE_CHALLENGE_SIZE);
    frame("proof", topic,
          &(struct wire_header){
              .kind = WIRE_KIND_PROOF, .name = "lockstep", .name_size = 8},
          "proof", 5);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: make_seeds FOLDER\n");
        return 2;
    }
    to = argv[1];
    must(ls_writer_create(&writer) == LS_OK);
    make_service_messages();
    messages_of_learners();
    messages_of_collectors();
    store_messages();
    a_record();
    barrier_messages();
    group_messages();
    exchange_messages();
    trajectories();
    weights(true);
    weights(false);
    policy();
    reports();
    leases();
    presences();
    heartbeats();
    payloads();
    control();
    records(false);
    records(true);
    files();
    recording();
    ls_writer_destroy(&writer);
    return 0;
}
