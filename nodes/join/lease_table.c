#include "lease_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int lease_table_init(struct lease_table *out, size_t n)
{
    *out = (struct lease_table){.leases = calloc(n + 1, sizeof *out->leases)};
    if (out->leases == NULL)
        return ls_error(LS_ENOMEM, "no memory for ids to be given out");
    out->n = n;
    return LS_OK;
}

void lease_table_fini(struct lease_table *table)
{
    free(table->leases);
    *table = (struct lease_table){.n = 0};
}

/* ---- looking ------------------------------------------------------------ */

static struct lease *find_id(const struct lease_table *table, uint32_t id)
{
    for (size_t i = 0; i < table->n; i++)
        if (table->leases[i].id == id)
            return &table->leases[i];
    return NULL;
}

static struct lease *find_key(const struct lease_table *table, const char *key)
{
    for (size_t i = 0; i < table->n; i++)
        if (table->leases[i].key[0] != '\0' &&
            strcmp(table->leases[i].key, key) == 0)
            return &table->leases[i];
    return NULL;
}

static void forget(struct lease *lease, enum lease_state state)
{
    *lease =
        (struct lease){.id = lease->id, .role = lease->role, .state = state};
}

/* Its node is away, and nobody expects it. */
static void put_aside(struct lease *lease)
{
    if (lease->lasting)
        lease->state = LEASE_KEPT;
    else
        forget(lease, LEASE_FREE);
}

static void expire(struct lease_table *table, int64_t now)
{
    for (size_t i = 0; i < table->n; i++) {
        struct lease *lease = &table->leases[i];
        if (lease->state == LEASE_PROMISED && lease->until <= now)
            put_aside(lease);
    }
}

/* ---- asking ------------------------------------------------------------- */

static int none_free(const struct lease_table *table, int role)
{
    size_t n = 0, kept = 0;
    for (size_t i = 0; i < table->n; i++) {
        n += table->leases[i].role == role ? 1 : 0;
        kept += table->leases[i].role == role &&
                        table->leases[i].state == LEASE_KEPT
                    ? 1
                    : 0;
    }
    return ls_error(LS_EAGAIN,
                    "all ids are given out: %zu, of which %zu are kept for "
                    "nodes that are away; to make room, raise replicas in the "
                    "configuration, or revoke a key",
                    n, kept);
}

static int again(const struct lease *lease, const struct lease_ask *ask)
{
    if (lease->role != ask->role)
        return ls_error(LS_EMISMATCH,
                        "its key has the id %" PRIu32 ", which is of another "
                        "role: give each its own key with --identity",
                        lease->id);
    if (lease->state == LEASE_HERE ||
        (lease->state == LEASE_PROMISED && lease->life != 0 &&
         lease->life != ask->life))
        return ls_error(LS_EEXIST,
                        "node %" PRIu32 " has this key, and is %s: end it "
                        "first, or give this node its own key with "
                        "--identity",
                        lease->id,
                        lease->state == LEASE_HERE ? "there" : "expected");
    return LS_OK;
}

int lease_table_ask(struct lease_table *table, const struct lease_ask *ask,
                    int64_t now, const struct lease **out)
{
    expire(table, now);
    struct lease *lease = find_key(table, ask->key);
    const int status = lease != NULL ? again(lease, ask) : LS_OK;
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < table->n && lease == NULL; i++)
        if (table->leases[i].role == ask->role &&
            table->leases[i].state == LEASE_FREE)
            lease = &table->leases[i];
    if (lease == NULL)
        return none_free(table, ask->role);
    (void)snprintf(lease->key, sizeof lease->key, "%s", ask->key);
    lease->state = LEASE_PROMISED;
    lease->lasting = ask->lasting;
    lease->life = ask->life;
    lease->until = now + LEASE_PROMISE_NS;
    *out = lease;
    return LS_OK;
}

/* ---- coming and going --------------------------------------------------- */

void lease_table_came(struct lease_table *table, uint32_t id)
{
    struct lease *lease = find_id(table, id);
    if (lease != NULL && lease->state != LEASE_BARRED)
        lease->state = LEASE_HERE;
}

void lease_table_gone(struct lease_table *table, uint32_t id, bool left,
                      int64_t now)
{
    struct lease *lease = find_id(table, id);
    if (lease == NULL || lease->state != LEASE_HERE)
        return;
    if (left || lease->lasting || lease->key[0] == '\0') {
        put_aside(lease);
        return;
    }
    lease->state = LEASE_PROMISED;
    lease->until = now + LEASE_PROMISE_NS;
}

void lease_table_bar(struct lease_table *table, uint32_t id)
{
    struct lease *lease = find_id(table, id);
    if (lease != NULL)
        forget(lease, LEASE_BARRED);
}

const struct lease *lease_table_revoke(struct lease_table *table,
                                       const char *key)
{
    struct lease *lease = find_key(table, key);
    if (lease != NULL)
        forget(lease, lease->state == LEASE_HERE ? LEASE_HERE : LEASE_FREE);
    return lease;
}

/* ---- as text ------------------------------------------------------------ */

size_t lease_table_write(const struct lease_table *table, char *text,
                         size_t size)
{
    size_t used = 0;
    if (size > 0)
        text[0] = '\0';
    for (size_t i = 0; i < table->n; i++) {
        const struct lease *lease = &table->leases[i];
        char line[LEASE_LINE_MAX];
        if (lease->key[0] == '\0')
            continue;
        const int n =
            snprintf(line, sizeof line, "%" PRIu32 " %s %s\n", lease->id,
                     lease->key, lease->lasting ? "lasting" : "passing");
        if (used + (size_t)n < size)
            memcpy(text + used, line, (size_t)n + 1);
        used += (size_t)n;
    }
    return used;
}

/* A word and the blank, or the line's end, behind it. */
static bool take_word(const char **text, char *out, size_t size, char end)
{
    const size_t length = strcspn(*text, " \n");
    if (length == 0 || length >= size || (*text)[length] != end)
        return false;
    memcpy(out, *text, length);
    out[length] = '\0';
    *text += length + 1;
    return true;
}

static bool read_id(const char *text, uint32_t *out)
{
    char again[16];
    *out = (uint32_t)strtoul(text, NULL, 10);
    (void)snprintf(again, sizeof again, "%" PRIu32, *out);
    return strcmp(text, again) == 0;
}

/* Read one line of it.
 * text:   goes on behind it.
 * Errors: LS_ENOENT there is none left; LS_EPROTO it is not as above. */
static int read_line(const char **text, struct lease *out)
{
    char id[16] = "", key[LS_PUBLIC_KEY_MAX] = "", how[16] = "";
    const char *at = *text;
    uint32_t number = 0;
    if (*at == '\0')
        return LS_ENOENT;
    if (!take_word(&at, id, sizeof id, ' ') ||
        !take_word(&at, key, sizeof key, ' ') ||
        !take_word(&at, how, sizeof how, '\n') || !read_id(id, &number) ||
        strlen(key) != LS_PUBLIC_KEY_MAX - 1 ||
        (strcmp(how, "lasting") != 0 && strcmp(how, "passing") != 0))
        return ls_error(LS_EPROTO,
                        "\"%.80s\" is not an id, a key, and lasting "
                        "or passing",
                        *text);
    *out = (struct lease){.id = number, .lasting = how[0] == 'l'};
    memcpy(out->key, key, sizeof out->key);
    *text = at;
    return LS_OK;
}

static void take_over(struct lease_table *table, const struct lease *read,
                      int64_t now)
{
    struct lease *lease = find_id(table, read->id);
    if (lease == NULL || lease->state != LEASE_FREE ||
        find_key(table, read->key) != NULL)
        return;
    memcpy(lease->key, read->key, sizeof lease->key);
    lease->lasting = read->lasting;
    lease->state = read->lasting ? LEASE_KEPT : LEASE_PROMISED;
    lease->until = now + LEASE_PROMISE_NS;
}

static int read_text(struct lease_table *table, const char *text, int64_t now)
{
    struct lease read = {.id = 0};
    const char *at = text;
    int status;
    unsigned line = 1;
    while ((status = read_line(&at, &read)) == LS_OK)
        line++;
    if (status != LS_ENOENT)
        return ls_error_at(status, "line %u", line);
    at = text;
    while (read_line(&at, &read) == LS_OK)
        take_over(table, &read, now);
    return LS_OK;
}

int lease_table_read(struct lease_table *table, const void *data, size_t size,
                     int64_t now)
{
    char *text = calloc(1, size + 1);
    if (text == NULL)
        return ls_error(LS_ENOMEM, "reading whose keys are whose");
    if (size > 0)
        memcpy(text, data, size);
    const int status = strlen(text) == size
                           ? read_text(table, text, now)
                           : ls_error(LS_EPROTO, "there is a NUL in it");
    free(text);
    return status;
}
