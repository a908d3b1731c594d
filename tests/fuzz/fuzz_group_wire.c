/* Any bytes as a message of a group: what is read comes back, byte for byte,
 * when it is written again. */
#include "fuzz.h"
#include "group_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct group_message message;
    unsigned char again[GROUP_WIRE_HEAD_MAX + 65536];
    /* A commit's may be as long as the head has room for. */
    if (size > GROUP_WIRE_HEAD_MAX / 2 ||
        group_wire_decode(data, size, &message) != LS_OK)
        return 0;
    must(message.text_size <= GROUP_WIRE_TEXT_MAX);
    must(strlen(message.form.name) <= LS_GROUP_NAME_MAX);
    const size_t head = group_wire_encode(&message, again);
    must(head + message.data_size == size);
    if (message.data_size > 0)
        memcpy(again + head, message.data, message.data_size);
    must(memcmp(again, data, size) == 0);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 0);
}
