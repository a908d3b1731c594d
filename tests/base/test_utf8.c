#include "test.h"
#include "utf8.h"

/* What a decoder that goes by the definition says of all 4-byte strings would
 * take too long; every string of two bytes and every code point is enough. */
static size_t encode(uint32_t point, unsigned char *out)
{
    if (point < 0x80) {
        out[0] = (unsigned char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (unsigned char)(0xC0 | point >> 6);
        out[1] = (unsigned char)(0x80 | (point & 0x3F));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (unsigned char)(0xE0 | point >> 12);
        out[1] = (unsigned char)(0x80 | (point >> 6 & 0x3F));
        out[2] = (unsigned char)(0x80 | (point & 0x3F));
        return 3;
    }
    out[0] = (unsigned char)(0xF0 | point >> 18);
    out[1] = (unsigned char)(0x80 | (point >> 12 & 0x3F));
    out[2] = (unsigned char)(0x80 | (point >> 6 & 0x3F));
    out[3] = (unsigned char)(0x80 | (point & 0x3F));
    return 4;
}

TEST(every_code_point_but_surrogates_is_a_character)
{
    for (uint32_t point = 0; point < 0x140000; point++) {
        unsigned char bytes[4];
        const size_t size = encode(point, bytes);
        const bool valid =
            point <= 0x10FFFF && !(point >= 0xD800 && point <= 0xDFFF);
        if (ls_utf8_character(bytes, size) != (valid ? size : 0))
            fail_msg("U+%X", (unsigned)point);
    }
}

TEST(a_form_longer_than_needed_is_none)
{
    assert_int_equal(ls_utf8_character("\xC0\x80", 2), 0);
    assert_int_equal(ls_utf8_character("\xC1\xBF", 2), 0);
    assert_int_equal(ls_utf8_character("\xE0\x9F\xBF", 3), 0);
    assert_int_equal(ls_utf8_character("\xF0\x8F\xBF\xBF", 4), 0);
}

TEST(a_stray_byte_is_none)
{
    for (int byte = 0x80; byte < 0x100; byte++) {
        const unsigned char bytes[2] = {(unsigned char)byte, 'x'};
        assert_int_equal(ls_utf8_character(bytes, 2), 0);
    }
    assert_int_equal(ls_utf8_character("\xE2\x80x", 3), 0);
    assert_int_equal(ls_utf8_character("\xF0\x9F\x98x", 4), 0);
}

TEST(a_character_that_is_cut_is_none)
{
    assert_int_equal(ls_utf8_character("", 0), 0);
    assert_int_equal(ls_utf8_character("\xC3", 1), 0);
    assert_int_equal(ls_utf8_character("\xE2\x80", 2), 0);
    assert_int_equal(ls_utf8_character("\xF0\x9F\x98", 3), 0);
}

TEST(bytes_are_valid_when_all_characters_are)
{
    static const char text[] = "ab\0é…😀";
    assert_true(ls_utf8_valid(text, sizeof text));
    assert_true(ls_utf8_valid(NULL, 0));
    assert_false(ls_utf8_valid("ab\xFF", 3));
    assert_false(ls_utf8_valid(text, sizeof text - 2));
}
