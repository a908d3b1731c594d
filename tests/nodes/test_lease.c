/* What is said of ids, as bytes; and what members make of it. */
#include "lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lease_trust.h"
#include "lockstep/config.h"
#include "lockstep/log.h"
#include "test.h"

#define KEY   "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define OTHER "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

TEST(a_question_is_read_as_it_was_written)
{
    const struct lease_question said = {
        .role = "collector", .key = KEY, .lasting = true, .life = UINT64_MAX};
    struct lease_question heard;
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    assert_ok(ls_writer_create(&writer));
    ls_record_write(&lease_question_record, &said, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(
        ls_record_decode(&lease_question_record, &heard, data, size, NULL));
    assert_string_equal(heard.role, said.role);
    assert_string_equal(heard.key, said.key);
    assert_true(heard.lasting);
    assert_true(heard.life == said.life);
    for (size_t n = 0; n < size; n++)
        assert_fails(
            ls_record_decode(&lease_question_record, &heard, data, n, NULL),
            LS_EPROTO);
    ls_writer_destroy(&writer);
}

TEST(an_answer_is_read_as_it_was_written)
{
    char lines[] = "7 " KEY " lasting\n";
    struct lease_answer said = {.id = 7, .leases = lines}, heard;
    ls_writer *writer = NULL;
    const void *data;
    size_t size;
    (void)snprintf(said.attach, sizeof said.attach, "0@tcp://a:1");
    assert_ok(ls_writer_create(&writer));
    ls_record_write(&lease_answer_record, &said, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_ok(ls_record_decode(&lease_answer_record, &heard, data, size, NULL));
    assert_int_equal(heard.id, 7);
    assert_string_equal(heard.attach, said.attach);
    assert_string_equal(heard.leases, lines);
    ls_record_clear(&lease_answer_record, &heard);
    for (size_t n = 0; n < size; n++)
        assert_fails(
            ls_record_decode(&lease_answer_record, &heard, data, n, NULL),
            LS_EPROTO);
    ls_writer_destroy(&writer);
}

/* As JSON, which the reader of configurations takes to bytes. */
static void refused(bool question, const char *json, const char *words)
{
    ls_config *config = NULL;
    ls_writer *writer = NULL;
    struct lease_question asked;
    struct lease_answer answered;
    const void *data;
    size_t size;
    assert_ok(ls_config_parse(&config, "test", json));
    assert_ok(ls_writer_create(&writer));
    ls_config_write(config, writer);
    assert_ok(ls_writer_bytes(writer, &data, &size));
    assert_fails(question ? ls_record_decode(&lease_question_record, &asked,
                                             data, size, NULL)
                          : ls_record_decode(&lease_answer_record, &answered,
                                             data, size, NULL),
                 LS_EPROTO);
    if (strstr(ls_error_text(), words) == NULL)
        fail_msg("%s: \"%s\" has no \"%s\"", json, ls_error_text(), words);
    ls_writer_destroy(&writer);
    ls_config_destroy(&config);
}

TEST(what_is_wrong_is_named)
{
    refused(true, "{}", "role");
    refused(true, "{role: 1}", "role");
    refused(true, "{role: 'a name that is longer than any role may be'}",
            "role: over 31");
    refused(true, "{role: a}", "key");
    refused(true, "{role: a, key: short}", "key: it has 5");
    refused(true, "{role: a, key: '" KEY "0'}", "key: over 40");
    refused(true, "{role: a, key: '" KEY "'}", "lasting");
    refused(true, "{role: a, key: '" KEY "', lasting: 1}", "lasting");
    refused(true, "{role: a, key: '" KEY "', lasting: true}", "life");
    refused(true, "{role: a, key: '" KEY "', lasting: true, life: 0}",
            "life: it is 0");
    refused(true, "{role: a, key: '" KEY "', lasting: true, life: -1}", "life");
    refused(false, "{}", "id");
    refused(false, "{id: 4294967296}", "id: it is 4294967296");
    refused(false, "{id: 1}", "attach");
    refused(false, "{id: 1, attach: a}", "leases");
}

TEST(what_may_pass_is_to_be_tried_again)
{
    static const int passing[] = {LS_EAGAIN, LS_EEXIST, LS_ENOMEM},
                     lasting[] = {LS_EMISMATCH, LS_EPROTO, LS_EIO};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(lease_refused(lease_refusal(passing[i])), LS_EAGAIN);
        assert_int_equal(lease_refused(lease_refusal(lasting[i])), LS_ECONFIG);
    }
    assert_int_equal(lease_refused(LS_CALL_BUSY), LS_EAGAIN);
    assert_int_equal(lease_refused(LS_CALL_SHUTTING_DOWN), LS_EAGAIN);
    assert_int_equal(lease_refused(LS_CALL_NOT_SERVING), LS_ECONFIG);
}

/* ---- members ------------------------------------------------------------ */

struct member {
    char folder[64];
    struct plan plan;
    struct plan_node nodes[4];
    struct lease_trust trust;
};

static void drop_line(void *self, const char *line)
{
    (void)self;
    (void)line;
}

static int member_set_up(void **state)
{
    struct member *member = calloc(1, sizeof *member);
    assert_non_null(member);
    ls_log_redirect(drop_line, NULL);
    (void)snprintf(member->folder, sizeof member->folder,
                   "/tmp/lockstep-test-XXXXXX");
    assert_non_null(mkdtemp(member->folder));
    assert_ok(ls_keys_create(member->folder, 0, NULL, NULL));
    for (uint32_t i = 0; i < 4; i++)
        member->nodes[i] = (struct plan_node){.id = i, .leased = i > 0};
    member->plan.nodes = member->nodes;
    member->plan.n_nodes = 4;
    member->trust = (struct lease_trust){.plan = &member->plan, .id = 3};
    assert_ok(ls_security_curve(&member->trust.security, member->folder, 0));
    *state = member;
    return 0;
}

static int member_tear_down(void **state)
{
    struct member *member = *state;
    static const char *const made[] = {"node-0.cert", "node-0.cert_secret"};
    ls_security_destroy(&member->trust.security);
    for (size_t i = 0; i < 2; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/%s", member->folder, made[i]);
        assert_int_equal(remove(path), 0);
    }
    assert_int_equal(rmdir(member->folder), 0);
    ls_log_redirect(NULL, NULL);
    free(member);
    return 0;
}

static int hear(const struct member *member, const char *text)
{
    return lease_trust_read(&member->trust, text, strlen(text));
}

/* Whether the key is that of a trusted node: no other may then have it. */
static bool trusts(const struct member *member, uint32_t id, const char *key)
{
    ls_security *security = member->trust.security;
    const uint32_t other = id + 100;
    const int status = ls_security_trust(security, other, key);
    if (status == LS_OK)
        assert_ok(ls_security_distrust(security, other));
    return status == LS_EMISMATCH &&
           ls_security_trust(security, id, key) == LS_OK;
}

TEST_WITH(members_trust_what_they_hear_and_no_more, member_set_up,
          member_tear_down)
{
    const struct member *member = *state;
    assert_ok(hear(member, "1 " KEY " lasting\n"));
    assert_true(trusts(member, 1, KEY));
    assert_ok(hear(member, "1 " OTHER " lasting\n2 " KEY " passing\n"));
    assert_true(trusts(member, 1, OTHER));
    assert_ok(hear(member, "2 " OTHER " lasting\n"));
    assert_true(trusts(member, 2, OTHER));
    assert_false(trusts(member, 1, KEY));
    assert_ok(hear(member, ""));
    assert_false(trusts(member, 2, OTHER));
}

TEST_WITH(ids_that_are_not_given_out_stay_whose_they_are, member_set_up,
          member_tear_down)
{
    const struct member *member = *state;
    assert_ok(hear(member, "0 " KEY " lasting\n3 " OTHER " lasting\n9 " KEY
                           " lasting\n"));
    assert_false(trusts(member, 0, KEY));
    assert_false(trusts(member, 9, KEY));
    assert_false(trusts(member, 3, OTHER)); /* that is itself */
}

TEST_WITH(what_is_no_line_changes_nothing, member_set_up, member_tear_down)
{
    const struct member *member = *state;
    assert_ok(hear(member, "1 " KEY " lasting\n"));
    assert_fails(hear(member, "2 " OTHER " lasting\nx"), LS_EPROTO);
    assert_fails(lease_trust_read(&member->trust, "\0", 1), LS_EPROTO);
    assert_true(trusts(member, 1, KEY));
    assert_false(trusts(member, 2, OTHER));
}
