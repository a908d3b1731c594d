/* Any bytes as what is said when ids are given out; the first says as what they
 * are read: a question, an answer, or the table that an earlier life has
 * written. What is accepted is written as itself. */
#include "lease.h"

#include <stdio.h>

#include "fuzz.h"
#include "lease_table.h"

enum { IDS = 4 };

FUZZ_RECORD(question, struct lease_question, lease_question_record)
FUZZ_RECORD(answer, struct lease_answer, lease_answer_record)

static void make(struct lease_table *table)
{
    must(lease_table_init(table, IDS) == LS_OK);
    for (size_t i = 0; i < IDS; i++)
        table->leases[i].id = (uint32_t)i + 1;
}

static char *write_table(const struct lease_table *table)
{
    const size_t size = lease_table_write(table, NULL, 0) + 1;
    char *const text = malloc(size);
    must(text != NULL);
    must(lease_table_write(table, text, size) == size - 1);
    must(strlen(text) == size - 1);
    return text;
}

/* A key that nobody has, made of the number. */
static void ask(struct lease_table *table, int number)
{
    char key[LS_PUBLIC_KEY_MAX];
    const struct lease *lease;
    (void)snprintf(key, sizeof key, "%0*d", LS_PUBLIC_KEY_MAX - 1, number);
    (void)lease_table_ask(
        table, &(struct lease_ask){.key = key, .life = (uint64_t)number}, 1,
        &lease);
}

static void table(const uint8_t *data, size_t size)
{
    struct lease_table first, second;
    make(&first);
    make(&second);
    if (lease_table_read(&first, data, size, 1) == LS_OK) {
        for (int i = 1; i <= IDS; i++)
            ask(&first, i);
        char *const text = write_table(&first);
        must(lease_table_read(&second, text, strlen(text), 1) == LS_OK);
        char *const again = write_table(&second);
        must(strcmp(text, again) == 0);
        free(text);
        free(again);
    } else {
        for (size_t i = 0; i < IDS; i++)
            must(first.leases[i].key[0] == '\0');
    }
    lease_table_fini(&first);
    lease_table_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const kinds[])(const uint8_t *data,
                                 size_t size) = {question, answer, table};
    if (size > 0)
        kinds[data[0] % 3](data + 1, size - 1);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    return fuzz_mutate(data, size, max_size, seed, 1);
}
