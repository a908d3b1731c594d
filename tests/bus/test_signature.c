/* Who has written what. */
#include "credentials.h"

#include "credentials_fixture.h"
#include "test.h"

#define BYTES "some bytes"

/* Printed by credentials_vectors.py. */
static const char signature_text[] = "3f97ff724d9a21c718b0554179b4b4f0";
static const char curve_hash_hex[] =
    "ec60626e5288df60fa374f97ca46a3126bf4aa293165e7d364bd94f4ab2eb97e"
    "5f3161d5ee6cb42537e07531e862232bcfa7da1e33ae5818e2c484d1ba919c8c";
static const char sign_seed_hex[] =
    "f0122c18ded0c0289f71c048c73ddefe3f972ef16435c8be66214c7e5d71c5ae";

/* ---- signatures --------------------------------------------------------- */

struct signature {
    char text[CREDENTIALS_SIGNATURE_MAX];
};

static struct signature sign(const ls_security *security, const char *bytes)
{
    struct signature signature;
    assert_ok(credentials_sign(security, bytes, strlen(bytes), signature.text));
    return signature;
}

static bool is_signed(ls_security *security, uint32_t id, const char *bytes,
                      const char *signature)
{
    return credentials_signed(security, id, bytes, strlen(bytes), signature);
}

/* Every cut, every longer one, every changed digit, and other bytes. */
static void refuse_changes(ls_security *security, uint32_t id,
                           const struct signature *signature)
{
    const size_t size = strlen(signature->text);
    assert_true(is_signed(security, id, BYTES, signature->text));
    assert_false(is_signed(security, id, "other bytes", signature->text));
    assert_false(is_signed(security, id, "", signature->text));
    for (size_t at = 0; at < size; at++) {
        char text[CREDENTIALS_SIGNATURE_MAX + 1];
        memcpy(text, signature->text, size + 1);
        text[at] ^= 1;
        assert_false(is_signed(security, id, BYTES, text));
        text[at] = '\0';
        assert_false(is_signed(security, id, BYTES, text));
        memcpy(text, signature->text, size);
        memcpy(text + size, "0", 2);
        assert_false(is_signed(security, id, BYTES, text));
    }
}

TEST(in_plain_whoever_has_the_secret_signs)
{
    ls_security *security = plain(0), *other = plain(1);
    const struct signature signature = sign(security, BYTES);
    assert_string_equal(signature.text, signature_text);
    refuse_changes(security, ID, &signature);
    assert_false(is_signed(other, ID, BYTES, signature.text));
    ls_security_destroy(&security);
    ls_security_destroy(&other);
}

TEST(in_curve_each_signs_for_itself)
{
    ls_security *security = curve(*state, ID), *other = curve(*state, 4);
    const struct signature signature = sign(security, BYTES);
    assert_int_equal(strlen(signature.text), 128);
    refuse_changes(other, ID, &signature);
    assert_true(is_signed(security, ID, BYTES, signature.text));
    assert_false(is_signed(other, 4, BYTES, signature.text));
    assert_false(is_signed(other, 5, BYTES, signature.text)); /* unknown */
    ls_security_destroy(&security);
    ls_security_destroy(&other);
}

TEST(upper_case_is_another_signature)
{
    ls_security *security = curve(*state, ID);
    struct signature signature = sign(security, BYTES);
    char *letter = strpbrk(signature.text, "abcdef");
    assert_non_null(letter); /* of 128 random digits some are */
    *letter = (char)(*letter - 'a' + 'A');
    assert_false(is_signed(security, ID, BYTES, signature.text));
    ls_security_destroy(&security);
}

TEST(in_none_nothing_is_signed)
{
    ls_security *security = none();
    assert_string_equal(sign(security, BYTES).text, "");
    assert_true(is_signed(security, ID, BYTES, ""));
    assert_false(is_signed(security, ID, BYTES, signature_text));
    ls_security_destroy(&security);
}

TEST(no_bytes_can_be_signed)
{
    ls_security *securities[] = {plain(0), curve(*state, ID)};
    for (size_t i = 0; i < 2; i++) {
        char signature[CREDENTIALS_SIGNATURE_MAX];
        assert_ok(credentials_sign(securities[i], NULL, 0, signature));
        assert_true(credentials_signed(securities[i], ID, NULL, 0, signature));
        ls_security_destroy(&securities[i]);
    }
}

/* Ed25519 over the hash that the page says, with the key that it says. */
TEST(a_signature_in_curve_is_what_the_page_says)
{
    struct scratch *scratch = *state;
    ls_security *security = curve(scratch, ID);
    uint8_t hash[64], signature[64], key[32];
    char text[4096];
    from_hex(curve_hash_hex, hash, sizeof hash);
    from_hex(sign(security, BYTES).text, signature, sizeof signature);
    (void)read_file(in(scratch, "keys/node-3.cert").text, text, sizeof text);
    char *digits = strstr(text, "sign = \"");
    assert_non_null(digits);
    digits += strlen("sign = \"");
    digits[64] = '\0';
    from_hex(digits, key, sizeof key);
    assert_int_equal(
        crypto_sign_verify_detached(signature, hash, sizeof hash, key), 0);
    ls_security_destroy(&security);
}

TEST(the_key_for_signatures_follows_from_the_secret_key)
{
    uint8_t secret_key[32], seed[32];
    uint8_t public_sign[32], wanted_public[32];
    uint8_t secret_sign[64], wanted_secret[64];
    count_up(secret_key, 0);
    from_hex(sign_seed_hex, seed, sizeof seed);
    assert_int_equal(
        crypto_sign_seed_keypair(wanted_public, wanted_secret, seed), 0);
    certificate_sign_keys(secret_key, public_sign, secret_sign);
    assert_memory_equal(public_sign, wanted_public, sizeof public_sign);
    assert_memory_equal(secret_sign, wanted_secret, sizeof secret_sign);
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    return tests_run_with(scratch_set_up, scratch_tear_down);
}
