#include "utf8.h"

static bool continues(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* What the lead byte promises; 0 for one that is never a lead byte. */
static size_t promised_length(unsigned char lead)
{
    if (lead < 0x80)
        return 1;
    if (lead < 0xC2 || lead > 0xF4)
        return 0;
    return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* The second byte rules out longer forms than needed, surrogates, and what is
 * beyond U+10FFFF. */
static bool second_fits(unsigned char lead, unsigned char second)
{
    switch (lead) {
    case 0xE0:
        return second >= 0xA0;
    case 0xED:
        return second < 0xA0;
    case 0xF0:
        return second >= 0x90;
    case 0xF4:
        return second < 0x90;
    default:
        return true;
    }
}

size_t ls_utf8_character(const void *bytes, size_t size)
{
    const unsigned char *const at = bytes;
    if (size == 0)
        return 0;
    const size_t length = promised_length(at[0]);
    if (length > size || (length > 1 && !second_fits(at[0], at[1])))
        return 0;
    for (size_t i = 1; i < length; i++)
        if (!continues(at[i]))
            return 0;
    return length;
}

bool ls_utf8_valid(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    while (size > 0) {
        const size_t length = ls_utf8_character(at, size);
        if (length == 0)
            return false;
        at += length;
        size -= length;
    }
    return true;
}
