/* Two stores as one: policies in one, all else in the other. */
#include "store_pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_files.h"
#include "test.h"

struct fixture {
    char root[64], policies[96], data[96];
    struct store *pair, *policies_alone, *data_alone;
};

static struct store *open_files(const char *folder)
{
    struct store *store = NULL;
    assert_ok(store_files_open(
        &store, &(struct store_files_options){.folder = folder}));
    return store;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->root, sizeof f->root, "/tmp/lockstep-XXXXXX");
    assert_non_null(mkdtemp(f->root));
    (void)snprintf(f->policies, sizeof f->policies, "%s/policies", f->root);
    (void)snprintf(f->data, sizeof f->data, "%s/data", f->root);
    struct store *policies = open_files(f->policies);
    struct store *data = open_files(f->data);
    assert_ok(store_pair_open(&f->pair, &policies, &data));
    assert_null(policies);
    assert_null(data);
    f->policies_alone = open_files(f->policies);
    f->data_alone = open_files(f->data);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    store_close(&f->pair);
    store_close(&f->policies_alone);
    store_close(&f->data_alone);
    assert_int_equal(remove(f->policies), 0);
    assert_int_equal(remove(f->data), 0);
    assert_int_equal(remove(f->root), 0);
    free(f);
    return 0;
}

static void put(struct store *store, const char *name, const char *text)
{
    assert_ok(store_put(
        store,
        &(struct store_put){.name = name, .data = text, .size = strlen(text)}));
}

static void assert_holds(struct store *store, const char *name,
                         const char *text)
{
    struct store_blob blob;
    assert_ok(store_get(store, &name, 1, &blob, 0));
    assert_int_equal(blob.size, strlen(text));
    assert_memory_equal(blob.data, text, blob.size);
    store_blob_fini(&blob);
}

static void assert_lacks(struct store *store, const char *name)
{
    struct store_blob blob;
    assert_fails(store_get(store, &name, 1, &blob, 0), LS_ENOENT);
}

EACH_TEST(set_up, tear_down)

TEST(each_name_has_its_place)
{
    struct fixture *f = *state;
    put(f->pair, "policy_1@17", "weights");
    put(f->pair, "sample_1", "steps");
    assert_holds(f->pair, "policy_1@17", "weights");
    assert_holds(f->pair, "sample_1", "steps");
    assert_holds(f->policies_alone, "policy_1@17", "weights");
    assert_holds(f->data_alone, "sample_1", "steps");
    assert_lacks(f->policies_alone, "sample_1");
    assert_lacks(f->data_alone, "policy_1@17");
    assert_ok(store_drop(f->pair, "policy_1@17", 0));
    assert_ok(store_drop(f->pair, "sample_1", 0));
    assert_lacks(f->policies_alone, "policy_1@17");
    assert_lacks(f->data_alone, "sample_1");
}

TEST(several_are_got_from_one_place)
{
    struct fixture *f = *state;
    static const char *const alike[] = {"a", "b"};
    static const char *const mixed[] = {"a", "policy_1"};
    struct store_blob blobs[2];
    put(f->pair, "a", "1");
    put(f->pair, "b", "22");
    put(f->pair, "policy_1", "333");
    assert_ok(store_get(f->pair, alike, 2, blobs, 0));
    assert_int_equal(blobs[1].size, 2);
    store_blob_fini(&blobs[0]);
    store_blob_fini(&blobs[1]);
    assert_fails(store_get(f->pair, mixed, 2, blobs, 0), LS_EINVAL);
    assert_ok(store_drop(f->pair, "a", 0));
    assert_ok(store_drop(f->pair, "b", 0));
    assert_ok(store_drop(f->pair, "policy_1", 0));
}
