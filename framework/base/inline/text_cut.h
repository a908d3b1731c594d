/* text_cut.h - texts that are cut, but in no character.
 *
 * Thread: any. */
#ifndef LOCKSTEP_BASE_TEXT_CUT_H
#define LOCKSTEP_BASE_TEXT_CUT_H

#include <stddef.h>
#include <string.h>

/* The text may have been cut inside of a UTF-8 character: take away its first
 * bytes, so that what remains is valid where the whole was. */
static inline void text_drop_half(char *text)
{
    const size_t length = strlen(text);
    size_t start = length;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0)
        return;
    const unsigned char lead = (unsigned char)text[start - 1];
    const size_t wanted = lead >= 0xF0   ? 4
                          : lead >= 0xE0 ? 3
                          : lead >= 0xC0 ? 2
                                         : 1;
    if (length - (start - 1) < wanted)
        text[start - 1] = '\0';
}

/* As much of it as there is room for. */
static inline void text_cut(char *out, size_t size, const char *text)
{
    const size_t length = strlen(text);
    const size_t n = length < size ? length : size - 1;
    memcpy(out, text, n);
    out[n] = '\0';
    if (n < length)
        text_drop_half(out);
}

#endif
