/* Any bytes as a file of a store; or, by the first byte, as a value, and damage
 * to its file; or as the name of a file that lies in the store's folder. What
 * is given out is what was put; what a folder has of other names does no harm.
 */
#include "store_files.h"

#include <stdio.h>
#include <unistd.h>

#include "lockstep/file.h"

#include "fuzz.h"
#include "store.h"

#define NAME "value"

enum { FILE_MAX = 1 << 20 };

static struct store *open_store(void)
{
    struct store *store = NULL;
    must(store_files_open(&store, &(struct store_files_options){
                                      .folder = fuzz_folder()}) == LS_OK);
    return store;
}

static int get(struct store *store, const char *name, struct store_blob *out)
{
    ls_error_clear();
    const int status = store_get(store, &name, 1, out, 0);
    must(status == LS_OK || ls_error_text()[0] != '\0');
    return status;
}

static void put(struct store *store, const char *name, const void *data,
                size_t size, uint64_t rank)
{
    must(store_put(store, &(struct store_put){.name = name,
                                              .data = data,
                                              .size = size,
                                              .rank = rank}) == LS_OK);
}

static void whole(const uint8_t *data, size_t size)
{
    struct store *store = open_store();
    struct store_blob blob;
    (void)fuzz_file(NAME, data, size);
    const int status = get(store, NAME, &blob);
    must(status == LS_OK || status == LS_EPROTO);
    if (status == LS_OK) {
        must(blob.size < size);
        must(memcmp(blob.data, data, blob.size) == 0);
        store_blob_fini(&blob);
    }
    must(store_drop(store, NAME, 0) == LS_OK);
    store_close(&store);
}

/* Two bytes of a place, and one of what happens there, 0: the file ends; the
 * rest is the value. */
static void damaged(const uint8_t *data, size_t size)
{
    struct store *store = open_store();
    struct store_blob blob;
    void *bytes = NULL;
    size_t n = 0;
    if (size < 3)
        goto end;
    put(store, NAME, data + 3, size - 3, 0);
    char path[512];
    (void)snprintf(path, sizeof path, "%s/" NAME, fuzz_folder());
    must(ls_file_read(path, FILE_MAX, &bytes, &n) == LS_OK);
    const size_t place = ((size_t)data[0] << 8 | data[1]) % n;
    if (data[2] == 0)
        n = place;
    else
        ((unsigned char *)bytes)[place] ^= data[2];
    (void)fuzz_file(NAME, bytes, n);
    free(bytes);
    must(get(store, NAME, &blob) == LS_EPROTO);
    put(store, NAME, data + 3, size - 3, 0);
    must(get(store, NAME, &blob) == LS_OK);
    must(blob.size == size - 3);
    must(memcmp(blob.data, data + 3, blob.size) == 0);
    store_blob_fini(&blob);
end:
    must(store_drop(store, NAME, 0) == LS_OK);
    store_close(&store);
}

/* Each name that is told can be got, though what is there may be damaged. */
static int check_name(void *self, const char *name)
{
    struct store_blob blob;
    must(safe_name_is(name));
    const int status = get(self, name, &blob);
    must(status == LS_OK || status == LS_EPROTO);
    if (status == LS_OK)
        store_blob_fini(&blob);
    return LS_OK;
}

static void named(const uint8_t *data, size_t size)
{
    char *const name = fuzz_text(data, size);
    if (size > 0 && size < 200 && strlen(name) == size &&
        strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
        strcmp(name, "..") != 0) {
        (void)fuzz_file(name, "", 0);
        struct store *store = open_store();
        struct store_blob blob;
        must(store_files_each(store, check_name, store) == LS_OK);
        if (store_put(store,
                      &(struct store_put){
                          .name = "d", .data = "1", .size = 1, .rank = 1}) ==
                LS_OK &&
            get(store, "d", &blob) == LS_OK)
            store_blob_fini(&blob);
        must(store_drop(store, "d", 0) == LS_OK);
        must(store_files_each(store, check_name, store) == LS_OK);
        store_close(&store);
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
        (void)unlink(path);
    }
    free(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == '#')
        damaged(data + 1, size - 1);
    else if (size > 0 && data[0] == '%')
        named(data + 1, size - 1);
    else
        whole(data, size);
    return 0;
}
