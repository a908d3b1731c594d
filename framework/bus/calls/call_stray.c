/* Calls to a node that serves none, or does not any more: the bus answers. */
#include <string.h>

#include "bus.h"
#include "call_wire.h"

void calls_stray(ls_node *node, const struct wire_header *header,
                 const void *data, size_t size)
{
    unsigned char bytes[CALL_WIRE_SHORT_MAX];
    struct call_message message;
    if (header->name_size != strlen(CALL_CHANNEL) ||
        memcmp(header->name, CALL_CHANNEL, header->name_size) != 0 ||
        call_wire_decode(data, size, &message) != LS_OK ||
        message.kind != CALL_REQUEST || message.to != node->me.incarnation)
        return;
    const struct call_message answer = {.kind = CALL_REFUSED,
                                        .to = header->incarnation,
                                        .number = message.number,
                                        .code = LS_CALL_NOT_SERVING};
    /* Without room the call ends by its deadline: nothing is kept for it. */
    if (channels_send_reliable(node, CALL_CHANNEL, header->origin, bytes,
                               call_wire_encode(&answer, bytes)) != LS_OK)
        ls_log_debug("call: node %u is not refused: %s", header->origin,
                     ls_error_text());
}
