/* Any bytes as the credentials of a stranger: the size of the user name, then
 * that and a password. Nobody gets in who does not know the secret, and what is
 * let in comes back when it is written again. */
#include "credentials.h"
#include "fuzz.h"

/* The seeds are of the secret 00 01 02 …, as in test_credentials.c. */
static ls_security *make(uint8_t first)
{
    uint8_t secret[LS_SECRET_BYTES];
    ls_security *security = NULL;
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)(first + i);
    must(ls_security_plain(&security, secret) == LS_OK);
    return security;
}

static void check(const ls_security *security, const uint8_t *user,
                  size_t user_size, const uint8_t *password,
                  size_t password_size)
{
    struct credentials_claim claim;
    char user_again[CREDENTIALS_USER_MAX];
    char password_again[CREDENTIALS_PASSWORD_MAX];
    if (credentials_check_plain(security, user, user_size, password,
                                password_size, &claim) != LS_OK)
        return;
    must(credentials_password(security, &claim, user_again, password_again) ==
         LS_OK);
    must(strlen(user_again) == user_size &&
         memcmp(user_again, user, user_size) == 0);
    must(strlen(password_again) == password_size &&
         memcmp(password_again, password, password_size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ls_security *security, *other;
    if (security == NULL) {
        security = make(0);
        other = make(1);
    }
    if (size == 0)
        return 0;
    const size_t user_size = data[0] < size ? data[0] : size - 1;
    const uint8_t *password = data + 1 + user_size;
    const size_t password_size = size - 1 - user_size;
    check(security, data + 1, user_size, password, password_size);
    struct credentials_claim claim;
    must(credentials_check_plain(other, data + 1, user_size, password,
                                 password_size, &claim) != LS_OK);
    return 0;
}
