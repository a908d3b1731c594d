/* Values as lines of JSON, and from it; whatever a name or a number is. */
#include "json.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

static ls_writer *begun(void)
{
    ls_writer *writer = NULL;
    assert_ok(ls_writer_create(&writer));
    return writer;
}

/* Ends the writer. */
static void assert_line(ls_writer **writer, const char *line)
{
    char *text = NULL;
    assert_ok(ls_writer_print(*writer, &text));
    assert_string_equal(text, line);
    free(text);
    ls_writer_destroy(writer);
}

TEST(a_map_is_one_line)
{
    ls_writer *writer = begun();
    ls_write_map_begin(writer);
    json_string(writer, "name", "a \"b\"\n");
    json_string(writer, "none", NULL);
    json_int(writer, "least", INT64_MIN);
    json_double(writer, "half", 0.5);
    json_bool(writer, "yes", true);
    json_bool(writer, "no", false);
    ls_write_map_end(writer);
    assert_line(&writer, "{\"name\":\"a \\\"b\\\"\\n\",\"none\":null,"
                         "\"least\":-9223372036854775808,\"half\":0.5,"
                         "\"yes\":true,\"no\":false}");
}

TEST(a_number_that_is_not_finite_is_null)
{
    ls_writer *writer = begun();
    ls_write_map(writer, 3);
    json_double(writer, "a", NAN);
    json_double(writer, "b", INFINITY);
    json_double(writer, "c", -INFINITY);
    assert_line(&writer, "{\"a\":null,\"b\":null,\"c\":null}");
}

static ls_writer *with_msgpack(const void *data, size_t size)
{
    ls_writer *writer = begun();
    ls_write_map(writer, 1);
    json_msgpack(writer, "x", data, size);
    return writer;
}

TEST(bytes_of_msgpack_are_shown_as_what_they_are)
{
    ls_writer *inside = begun(), *writer;
    const void *data;
    size_t size;
    ls_write_map(inside, 3);
    json_string(inside, "text", "t");
    ls_write_string(inside, "list");
    ls_write_array(inside, 4);
    ls_write_int(inside, -1);
    ls_write_double(inside, 1.5);
    ls_write_double(inside, NAN);
    ls_write_nil(inside);
    ls_write_string(inside, "map");
    ls_write_map(inside, 0);
    assert_ok(ls_writer_bytes(inside, &data, &size));
    writer = with_msgpack(data, size);
    assert_line(&writer, "{\"x\":{\"text\":\"t\","
                         "\"list\":[-1,1.5,null,null],\"map\":{}}}");
    writer = with_msgpack(data, size - 1);
    assert_line(&writer, "{\"x\":null}");
    writer = with_msgpack(NULL, 0);
    assert_line(&writer, "{\"x\":null}");
    ls_writer_destroy(&inside);
}

TEST(a_text_of_any_origin_is_shown_as_far_as_it_can_be)
{
    ls_writer *writer = begun();
    ls_write_map(writer, 2);
    json_string(writer, "path", "caf\xc3\xa9/\xe9 \"\x7f\\\n\x80");
    json_string(writer, "none", NULL);
    assert_line(&writer, "{\"path\":\"caf\xc3\xa9/? \\\"\\u007f\\\\\\n?\","
                         "\"none\":null}");
}

TEST(a_map_is_read_and_what_is_wrong_is_shown)
{
    ls_writer *writer = begun();
    assert_ok(json_read("{\"a\":[1,2.5,null,true],\"b\":\"c\"}", writer));
    assert_line(&writer, "{\"a\":[1,2.5,null,true],\"b\":\"c\"}");
    writer = begun();
    assert_fails(json_read("{\"a\":[1, }", writer), LS_EINVAL);
    assert_error_has("argument:1:");
    ls_writer_destroy(&writer);
}
