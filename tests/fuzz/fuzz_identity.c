/* Any bytes as the key of a node that is given its id, in its folder: it is
 * taken, and left as it is, or refused. */
#include "identity.h"

#include "fuzz.h"

static void check(const char *folder, const uint8_t *data, size_t size)
{
    struct identity identity;
    char again[LS_PUBLIC_KEY_MAX];
    const char *const path = fuzz_file("replica-0.key", data, size);
    ls_error_clear();
    const int status = identity_open(&identity, folder, "job");
    if (status != LS_OK) {
        must(status == LS_ECONFIG && ls_error_text()[0] != '\0');
        must(ls_key_read(path, again) == LS_ECONFIG);
        return;
    }
    must(identity.lasting && strcmp(identity.path, path) == 0);
    must(strlen(identity.key) == LS_PUBLIC_KEY_MAX - 1);
    must(ls_key_read(path, again) == LS_OK);
    must(strcmp(identity.key, again) == 0);
    identity_close(&identity);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(fuzz_folder(), data, size);
    return 0;
}
