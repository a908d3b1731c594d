/* credentials_fixture.h - one security of each mode. */
#ifndef LOCKSTEP_TESTS_BUS_CREDENTIALS_FIXTURE_H
#define LOCKSTEP_TESTS_BUS_CREDENTIALS_FIXTURE_H

#include "certificate.h"
#include "credentials.h"
#include "security_fixture.h"

#define ID 3

static inline void count_up(uint8_t out[LS_SECRET_BYTES], uint8_t from)
{
    for (size_t i = 0; i < LS_SECRET_BYTES; i++)
        out[i] = (uint8_t)(from + i);
}

static inline ls_security *plain(uint8_t from)
{
    uint8_t secret[LS_SECRET_BYTES];
    ls_security *security = NULL;
    count_up(secret, from);
    assert_int_equal(ls_security_plain(&security, secret), LS_OK);
    return security;
}

static inline ls_security *none(void)
{
    ls_security *security = NULL;
    assert_int_equal(ls_security_none(&security), LS_OK);
    return security;
}

/* Node `id`, with certificates of it and of node 4 in the folder. */
static inline ls_security *curve(const struct scratch *scratch, uint32_t id)
{
    ls_security *security = NULL;
    const struct path folder = in(scratch, "keys");
    if (!is_there(folder.text)) {
        assert_int_equal(ls_keys_create(folder.text, ID, "learner", "fast,gpu"),
                         LS_OK);
        assert_int_equal(ls_keys_create(folder.text, 4, NULL, NULL), LS_OK);
        assert_int_equal(ls_keys_create_enrolment(folder.text), LS_OK);
    }
    assert_int_equal(ls_security_curve(&security, folder.text, id), LS_OK);
    return security;
}

static inline void from_hex(const char *hex, uint8_t *out, size_t size)
{
    size_t n = 0;
    assert_int_equal(
        sodium_hex2bin(out, size, hex, strlen(hex), NULL, &n, NULL), 0);
    assert_int_equal(n, size);
}

#endif
