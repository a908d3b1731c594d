/* Asking in one go: start a call, wait for it, and turn its end into a status.
 */
#include "call_parts.h"

static int status_of(const struct ls_call_result *result)
{
    switch (result->state) {
    case LS_CALL_COMPLETED:
        return LS_OK;
    case LS_CALL_FAILED:
        return LS_EHANDLER;
    case LS_CALL_START_FAILED:
        return result->code == LS_CALL_TOO_LONG ? LS_ELIMIT : LS_EABORTED;
    case LS_CALL_LOST:
        return LS_ELOST;
    case LS_CALL_TIMEOUT:
        return LS_ETIMEDOUT;
    default:
        return LS_ECANCELED;
    }
}

static int take_result(ls_call *call, void **answer, size_t *size)
{
    const int status = status_of(&call->result);
    if (status != LS_OK)
        return ls_error(status, "%s", call->result.text);
    if (answer == NULL)
        return LS_OK;
    *answer = call->answer;
    *size = call->result.size;
    call->answer = NULL;
    return LS_OK;
}

int ls_call_ask(ls_rpc *calls, const struct ls_call_options *options,
                void **answer, size_t *size)
{
    return ls_call_ask_body(calls, options, answer, size, NULL);
}

int ls_call_ask_body(ls_rpc *calls, const struct ls_call_options *options,
                     void **answer, size_t *size, struct ls_body *body)
{
    ls_call *call;
    if (calls_is_own_thread(calls)) {
        struct ls_body given = options->body;
        ls_body_release(&given);
        return ls_error(LS_ESTATE, "a call that waits is not to be made on the "
                                   "bus or dispatch thread");
    }
    int status = ls_call_start(&call, calls, options);
    if (status != LS_OK)
        return status;
    status = ls_call_wait(call, LS_WAIT_DEFAULT);
    if (status == LS_OK)
        status = take_result(call, answer, size);
    if (status == LS_OK && body != NULL)
        ls_call_take_body(call, body);
    ls_call_destroy(&call);
    return status;
}

int ls_rpc_connect(ls_rpc *calls, uint32_t to, uint32_t channel, int wait_ms)
{
    return ls_call_ask(
        calls,
        &(struct ls_call_options){.to = to,
                                  .channel = channel,
                                  .name = CALL_CONNECT,
                                  .timeout_ms = wait_ms > 0 ? wait_ms : 0},
        NULL, NULL);
}

int ls_rpc_disconnect(ls_rpc *calls, uint32_t to, int wait_ms)
{
    return ls_call_ask(
        calls,
        &(struct ls_call_options){.to = to,
                                  .name = CALL_DISCONNECT,
                                  .timeout_ms = wait_ms > 0 ? wait_ms : 0},
        NULL, NULL);
}
