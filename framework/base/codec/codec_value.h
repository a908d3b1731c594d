/* codec_value.h - an ls_value is a msgpack_object of a document that was read:
 * without ext values, keys and strings in UTF-8 and NUL-terminated. */
#ifndef LOCKSTEP_CODEC_VALUE_H
#define LOCKSTEP_CODEC_VALUE_H

#include <msgpack.h>

#include "lockstep/codec.h"

static inline const ls_value *ls_value_from_object(const msgpack_object *object)
{
    return (const ls_value *)object;
}

static inline const msgpack_object *ls_value_object(const ls_value *value)
{
    return (const msgpack_object *)value;
}

/* An empty string's pointer may be NULL. */
bool ls_value_has_nul(const msgpack_object_str *string);

/* With its article, for messages: "an integer". */
const char *ls_value_type_name(const msgpack_object *object);

#endif
