/* The limits of libfyaml, looked at before it reads. */
#include "config_parts.h"

#include <string.h>

#include "utf8.h"

/* "? key": nobody needs it where keys are words, and libfyaml 0.7.12 uses freed
 * memory when a tab is behind it (libfyaml#57). */
static bool is_question_key(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '-' || *at == ':'))
        at++;
    return at < end && *at == '?' &&
           (at + 1 == end || strchr(" \t\r\n", at[1]) != NULL);
}

static int check_character(const struct config_place *place, const char *at,
                           size_t size)
{
    const unsigned char byte = (unsigned char)*at;
    if (size == 0)
        return ls_config_error(LS_ECONFIG, place, "byte 0x%02x is not UTF-8",
                               byte);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') ||
        byte == 0x7F)
        return ls_config_error(LS_ECONFIG, place,
                               "byte 0x%02x is a control character", byte);
    return LS_OK;
}

/* Directives are refused for what %YAML 1.1 brings: other line ends. */
static int check_line(const struct config_place *place, const char *at,
                      const char *end)
{
    if (*at == '%')
        return ls_config_error(LS_ECONFIG, place,
                               "directives (%%...) are not used");
    if (is_question_key(at, end))
        return ls_config_error(LS_ECONFIG, place,
                               "a line begins with \"?\"; write keys as words, "
                               "and such text in quotes");
    return LS_OK;
}

int ls_config_check_text(const struct config_source *source)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    struct config_place place = {source, 1, 1};
    const char *const end = source->text + source->size;
    const char *at = source->text;
    if (strncmp(at, byte_order_mark, strlen(byte_order_mark)) == 0)
        at += strlen(byte_order_mark);
    while (at < end) {
        const size_t size = ls_utf8_character(at, (size_t)(end - at));
        int status = check_character(&place, at, size);
        if (status == LS_OK && place.column == 1)
            status = check_line(&place, at, end);
        if (status != LS_OK)
            return status;
        place.column++;
        if (*at == '\n' || (*at == '\r' && at[1] != '\n')) {
            place.line++;
            place.column = 1;
        }
        at += size;
    }
    return LS_OK;
}
