/* What calls are, in words. */
#include "lockstep/call.h"

const char *ls_call_state_name(enum ls_call_state state)
{
    switch (state) {
    case LS_CALL_IDLE:
        return "idle";
    case LS_CALL_STARTING:
        return "starting";
    case LS_CALL_STARTED:
        return "started";
    case LS_CALL_START_FAILED:
        return "start_failed";
    case LS_CALL_COMPLETED:
        return "completed";
    case LS_CALL_FAILED:
        return "failed";
    case LS_CALL_LOST:
        return "lost";
    case LS_CALL_TIMEOUT:
        return "timeout";
    case LS_CALL_CANCELLED:
        return "cancelled";
    }
    return "?";
}

bool ls_call_state_is_end(enum ls_call_state state)
{
    return state != LS_CALL_IDLE && state != LS_CALL_STARTING &&
           state != LS_CALL_STARTED;
}

const char *ls_call_code_sentence(int code)
{
#define SENTENCE(name, number, sentence)                                       \
    case number:                                                               \
        return sentence;
    switch (code) {
        LS_CALL_CODE_MAP(SENTENCE)
    default:
        return "?";
    }
#undef SENTENCE
}
