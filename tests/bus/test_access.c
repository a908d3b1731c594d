/* Which addresses are let in. */
#include "access.h"

#include "credentials_fixture.h"
#include "test.h"

/* ---- addresses ---------------------------------------------------------- */

TEST(everyone_is_let_in_until_something_is_said)
{
    ls_security *security = none();
    assert_true(credentials_admits(security, "192.0.2.1"));
    assert_true(credentials_admits(security, ""));
    assert_true(credentials_admits(security, "no address"));
    ls_security_destroy(&security);
}

TEST(denied_is_denied)
{
    ls_security *security = plain(0);
    assert_ok(ls_security_deny(security, "192.0.2.1"));
    assert_false(credentials_admits(security, "192.0.2.1"));
    assert_true(credentials_admits(security, "192.0.2.2"));
    assert_true(credentials_admits(security, ""));
    assert_ok(ls_security_allow(security, "192.0.2.1"));
    assert_false(credentials_admits(security, "192.0.2.1"));
    ls_security_destroy(&security);
}

TEST(once_something_is_allowed_all_else_is_denied)
{
    ls_security *security = none();
    assert_ok(ls_security_allow(security, "192.0.2.1"));
    assert_true(credentials_admits(security, "192.0.2.1"));
    assert_false(credentials_admits(security, "192.0.2.2"));
    assert_false(credentials_admits(security, ""));
    assert_false(credentials_admits(security, "no address"));
    assert_ok(ls_security_allow(security, ""));
    assert_true(credentials_admits(security, ""));
    assert_ok(ls_security_allow(security, "192.0.2.1")); /* again */
    ls_security_destroy(&security);
}

TEST(one_address_in_several_forms_is_one)
{
    ls_security *security = none();
    assert_ok(ls_security_allow(security, "FD00:0:0::7"));
    assert_ok(ls_security_allow(security, "::ffff:192.0.2.1"));
    assert_true(credentials_admits(security, "fd00::7"));
    assert_true(credentials_admits(security, "fd00::7%eth0"));
    assert_true(credentials_admits(security, "192.0.2.1"));
    assert_ok(ls_security_deny(security, "192.0.2.1"));
    assert_false(credentials_admits(security, "::ffff:192.0.2.1"));
    ls_security_destroy(&security);
}

TEST(what_is_no_address_is_refused)
{
    ls_security *security = none();
    static const char *const bad[] = {
        "localhost",
        "10.0.0",
        "192.0.2.1:21500",
        "192.0.2.0/8",
        "[::1]",
        "tcp://192.0.2.1",
        "%eth0",
        "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        failed(ls_security_allow(security, bad[i]), LS_EINVAL, bad[i]);
        failed(ls_security_deny(security, bad[i]), LS_EINVAL, bad[i]);
    }
    failed(ls_security_allow(security, NULL), LS_EINVAL, "no IPv4");
    assert_true(credentials_admits(security, "192.0.2.1"));
    ls_security_destroy(&security);
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    return tests_run_with(scratch_set_up, scratch_tear_down);
}
