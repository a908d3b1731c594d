/* A context as text. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "context_fields.h"

/* Text of a fixed size that counts on when it is full. */
struct text {
    char *at;
    size_t size;
    size_t used; /* what all of it needs, without the NUL */
};

static void LS_PRINTF(2, 3) text_add(struct text *text, const char *format, ...)
{
    const size_t used = text->used < text->size ? text->used : text->size;
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(used < text->size ? text->at + used : NULL,
                            text->size - used, format, arguments);
    va_end(arguments);
    if (n > 0)
        text->used += (size_t)n;
}

static void add_numbers(struct text *text, const struct ls_numbers *numbers)
{
    text_add(text, "[");
    for (size_t i = 0; i < numbers->n; i++)
        text_add(text, "%s%" PRId64, i > 0 ? "," : "", numbers->values[i]);
    text_add(text, "]");
}

static void add_field(struct text *text, const ls_context *context,
                      const struct ls_field *field)
{
    const union field_value value = field_value(context, field);
    text_add(text, "%s%s=", text->used > 0 ? " " : "", field->name);
    switch (field->type) {
    case LS_FIELD_BOOL:
        text_add(text, "%s", *value.boolean ? "true" : "false");
        break;
    case LS_FIELD_INT:
        text_add(text, "%" PRId64, *value.integer);
        break;
    case LS_FIELD_DOUBLE:
        text_add(text, "%g", *value.number);
        break;
    case LS_FIELD_TEXT:
        text_add(text, "\"%s\"", *value.text != NULL ? *value.text : "");
        break;
    case LS_FIELD_BYTES:
        text_add(text, "<%zu bytes>", value.bytes->size);
        break;
    case LS_FIELD_NUMBERS:
        add_numbers(text, value.numbers);
        break;
    case LS_FIELD_ITEMS:
        text_add(text, "<%zu items>", value.items->n);
        break;
    }
}

size_t ls_context_print(const ls_context *context, char *text, size_t size)
{
    struct text out = {text, size, 0};
    for (size_t i = 0; i < context->type->n_fields; i++)
        add_field(&out, context, &context->type->fields[i]);
    return out.used;
}
