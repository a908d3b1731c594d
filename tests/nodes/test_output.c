/* What is shown of words that others have chosen: output.h, as a
 * specification. That stdout was written: tests/e2e/test_output.bats. */
#include "output.h"

#include "test.h"

#include <stdlib.h>
#include <string.h>

static char *text; /* own */
static size_t size;

static FILE *open_text(void)
{
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    return file;
}

static void has(FILE *file, const char *wanted)
{
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, wanted);
    free(text);
}

TEST(control_characters_are_shown_as_a_question_mark)
{
    char said[32];
    assert_string_equal(output_said("a\x1b[31m\tb\x7f\n", false, said, 32),
                        "a?[31m?b??");
    assert_string_equal(output_said("\n\xc2\x9b"
                                    "31m \xc2\xa0\xc3\xa9",
                                    true, said, 32),
                        "\n?31m \xc2\xa0\xc3\xa9");
    assert_string_equal(output_said("too long", false, said, 4), "too");
}

TEST(what_is_printed_keeps_its_lines_and_steers_nothing)
{
    FILE *file = open_text();
    output_print(file, "%s: %d\n%s\n", "\x1b[2J", 3, "b\rc");
    output_print(file, "%s", "");
    has(file, "?[2J: 3\nb?c\n");
}

TEST(a_text_of_any_length_is_printed_whole)
{
    enum { LENGTH = 100000 };
    char *much = malloc(LENGTH + 1);
    assert_non_null(much);
    memset(much, 'x', LENGTH);
    much[LENGTH] = '\0';
    FILE *file = open_text();
    output_print(file, "%s", much);
    has(file, much);
    free(much);
}
