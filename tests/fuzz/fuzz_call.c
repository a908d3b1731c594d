/* Any bytes as a message of a call. What is read lies within them, and comes
 * back when it is written again. */
#include "call_wire.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char again[CALL_WIRE_MAX];
    struct call_message message;
    if (call_wire_decode(data, size, &message) != LS_OK)
        return 0;
    must(message.number != 0);
    if (message.broken) {
        must(message.kind == CALL_REQUEST && message.data == NULL);
        return 0;
    }
    must(call_wire_encode(&message, again) == size);
    must(memcmp(again, data, size) == 0);
    return 0;
}
