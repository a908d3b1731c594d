/* Any bytes as the manifest of an entry, whose checksum is right: the first
 * byte says how much of "hello" stands in front of it as a value, the next two
 * how long it is said to be. It may name files that are there. What is read has
 * the checksums that it names, and what is dropped takes nothing of others with
 * it.
 */
#include "lockstep/vault.h"

#include <stdio.h>
#include <unistd.h>

#include <xxhash.h>

#include "lockstep/file.h"

#include "fuzz.h"

enum { TAIL = 26, MOST = 1 << 20 };

static const struct {
    const char *name;
    bool is_of_entry;
} files[] = {{"e+0+s", true},  {"e+1+s", true}, {"ee+0+s", false},
             {"other", false}, {"e+0+", false}, {"e+x+s", false}};

static void put_le(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static void write_entry(size_t front, const uint8_t *data, size_t size,
                        size_t said)
{
    static const uint8_t magic[] = {0xc4, 24,  'l', 's', 'v',
                                    'a',  'u', 'l', 't', '1'};
    uint8_t *bytes = malloc(front + size + TAIL);
    must(bytes != NULL);
    memcpy(bytes, "hello", front);
    if (size > 0)
        memcpy(bytes + front, data, size);
    uint8_t *tail = bytes + front + size;
    const size_t n = said <= front + size ? said : 0;
    memcpy(tail, magic, sizeof magic);
    put_le(tail + 10, said);
    put_le(tail + 18, XXH3_64bits_withSeed(tail - n, n, said));
    (void)fuzz_file("e", bytes, front + size + TAIL);
    free(bytes);
}

static void read_shards(ls_vault *vault)
{
    ls_vault_reader *reader;
    uint8_t bytes[512];
    const int created = ls_vault_reader_create(&reader, vault, "e");
    must(created == LS_OK || created == LS_EPROTO);
    if (created != LS_OK)
        return;
    must(ls_vault_reader_n(reader) <= LS_VAULT_SHARDS_MAX);
    for (size_t i = 0; i < ls_vault_reader_n(reader); i++) {
        const struct ls_vault_shard *shard = ls_vault_reader_shard(reader, i);
        XXH3_state_t *hash = XXH3_createState();
        uint64_t n = 0;
        size_t got = 1;
        int status = ls_vault_reader_begin(reader, i);
        must(hash != NULL && XXH3_64bits_reset(hash) == XXH_OK);
        while (status == LS_OK && got > 0) {
            status = ls_vault_reader_read(reader, bytes, sizeof bytes, &got);
            if (status != LS_OK)
                break;
            must(XXH3_64bits_update(hash, bytes, got) == XXH_OK);
            n += got;
        }
        must(status == LS_EPROTO || (status == LS_OK && n == shard->size &&
                                     XXH3_64bits_digest(hash) == shard->check));
        XXH3_freeState(hash);
    }
    ls_vault_reader_destroy(&reader);
}

static bool is_there(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    return access(path, F_OK) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_vault *vault;
    void *all = NULL;
    size_t n = 0;
    if (size < 3)
        return 0;
    const size_t said = (size_t)data[1] << 8 | data[2];
    must(ls_vault_open(&vault, &(struct ls_vault_options){
                                   .folder = fuzz_folder()}) == LS_OK);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        (void)fuzz_file(files[i].name, "abc", 3);
    write_entry(data[0] % 6, data + 3, size - 3, said > 0 ? said : size - 3);
    read_shards(vault);
    ls_error_clear();
    const int status = ls_vault_get(vault, "e", MOST, &all, &n);
    must(status == LS_OK || status == LS_EPROTO || status == LS_ELIMIT);
    must(status == LS_OK || ls_error_text()[0] != '\0');
    free(all);
    must(ls_vault_put(vault, "new", data, size, false) == LS_OK);
    must(ls_vault_get(vault, "new", size, &all, &n) == LS_OK);
    must(n == size && memcmp(all, data, n) == 0);
    free(all);
    must(ls_vault_drop(vault, "new") == LS_OK);
    must(ls_vault_drop(vault, "e") == LS_OK);
    must(!is_there("e"));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        must(is_there(files[i].name) || files[i].is_of_entry);
    ls_vault_close(&vault);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 3);
}
