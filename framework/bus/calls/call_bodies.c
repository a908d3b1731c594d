/* Bodies: from who gives one to who gets it. */
#include "call_parts.h"

#include <string.h>

static void drop_payload(void *data, void *hint)
{
    (void)data;
    payload_drop(hint);
}

void calls_release_given(const struct ls_body *body)
{
    struct ls_body given = *body;
    ls_body_release(&given);
}

/* Into a block of memory that both have, if that can be. If a copy is needed,
 * it is made here, by the user's thread, and not when it is sent: then the lock
 * is held. */
static bool put_in_block(const ls_rpc *calls, struct payload **out, uint32_t to,
                         const struct ls_body *body)
{
    if (to == calls->id)
        return false;
    *out = blocks_payload(calls->node, to, body->data, body->size,
                          body->release != NULL);
    if (*out != NULL)
        calls_release_given(body);
    return *out != NULL;
}

int calls_check_given(const struct ls_body *body)
{
    if (body->size > UINT32_MAX)
        return ls_error(LS_ELIMIT, "a call: a body of %zu bytes, 4 GiB or more",
                        body->size);
    return body->data != NULL || body->size == 0
               ? LS_OK
               : ls_error(LS_EINVAL, "a call: a body without data");
}

int calls_take_given(const ls_rpc *calls, struct payload **out, uint32_t to,
                     const struct ls_body *body)
{
    const int status = calls_check_given(body);
    *out = NULL;
    if (status != LS_OK || body->size == 0)
        calls_release_given(body);
    else if (!put_in_block(calls, out, to, body))
        return payload_create(out, body->data, body->size, body->release,
                              body->hint);
    return status;
}

void calls_keep_own(struct call_intake *intake, struct payload *payload)
{
    intake->filled = payload_size(payload);
    intake->body =
        (struct ls_body){(void *)(uintptr_t)payload_data(payload),
                         intake->filled, drop_payload, payload_share(payload)};
}

/* ---- parts that come --------------------------------------------------- */

static void on_answer_part(ls_rpc *calls, struct ls_call *call,
                           struct ls_channel_part *part)
{
    static const char *const why[] = {
        [INTAKE_WHOLE] = NULL,
        [INTAKE_WRONG] = "the body of its answer breaks the format",
        [INTAKE_NO_MEMORY] = "there is no memory for the body of its answer"};
    const enum intake_verdict verdict =
        call_intake_add(&call->intake, call->entry.body_bytes, part);
    calls->stats.malformed += verdict == INTAKE_WRONG ? 1 : 0;
    if (verdict == INTAKE_MORE)
        return;
    call_table_end(&calls->table, &call->entry,
                   verdict == INTAKE_WHOLE ? LS_CALL_COMPLETED
                                           : LS_CALL_FAILED);
    call_finish(call, NULL, why[verdict]);
}

static void on_request_part(ls_rpc *calls, struct ls_request *request,
                            struct ls_channel_part *part)
{
    const enum intake_verdict verdict =
        call_intake_add(&request->intake, request->entry.body_bytes, part);
    calls->stats.malformed += verdict == INTAKE_WRONG ? 1 : 0;
    if (verdict != INTAKE_MORE)
        calls_on_body(calls, request, verdict);
}

void calls_receive_part(ls_rpc *calls, uint32_t from, uint64_t life,
                        struct ls_channel_part *part)
{
    const uint64_t own = ls_node_incarnation(calls->node);
    const uint64_t number = part->body >> 1;
    if ((part->body & 1) != 0) {
        struct open_call *call =
            open_calls_find(&calls->table.open, from, life, own, number);
        if (call != NULL && call->body_bytes != 0) {
            on_answer_part(calls, (struct ls_call *)call, part);
            return;
        }
    } else {
        struct ls_request *request = (struct ls_request *)open_calls_find(
            &calls->requests.open, from, life, own, number);
        if (request != NULL && request->arriving) {
            on_request_part(calls, request, part);
            return;
        }
    }
    calls->table.stale++;
}

/* ---- answers that cannot go on ----------------------------------------- */

static void tell_dropped(void *self, uint32_t to, const struct call_body *body)
{
    ls_rpc *calls = self;
    unsigned char bytes[CALL_WIRE_SHORT_MAX];
    const char *text = ls_call_code_sentence(LS_CALL_SHUTTING_DOWN);
    const struct call_message message = {.kind = CALL_FAILED,
                                         .to = body->life,
                                         .number = body->id >> 1,
                                         .text = text,
                                         .text_size = strlen(text)};
    /* Without room the call ends by its deadline: nothing is kept for it. */
    if (ls_channel_send_reliable(calls->channel, to, bytes,
                                 call_wire_encode(&message, bytes)) != LS_OK)
        ls_log_debug("call: %s", ls_error_text());
}

void calls_drop_answers(ls_rpc *calls)
{
    call_post_drop_answers(&calls->post, tell_dropped, calls);
}
