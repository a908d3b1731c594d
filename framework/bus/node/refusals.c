/* A line for the first of each kind and offender, then one in a while with how
 * many there were; and no more than a few lines in all: a stranger must not be
 * able to fill a disk. */
#include "refusals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lockstep/log.h"

#include "text_cut.h"

#define AGAIN_NS  (10 * LS_NS_PER_S) /* between two lines of one row */
#define LINES_MAX 20                 /* in each such while, of all rows */

static const char *const kinds[] = {
    [LS_REFUSAL_STRANGER] = "stranger", [LS_REFUSAL_FORM] = "form",
    [LS_REFUSAL_WORLD] = "world",       [LS_REFUSAL_IDENTITY] = "identity",
    [LS_REFUSAL_STALE] = "stale",       [LS_REFUSAL_WINDOW] = "window",
    [LS_REFUSAL_ACCESS] = "access",
};

const char *ls_refusal_kind_name(enum ls_refusal_kind kind)
{
    return (size_t)kind < sizeof kinds / sizeof *kinds ? kinds[kind] : "?";
}

void refusals_fini(struct refusals *refusals)
{
    free(refusals->rows);
    refusals->rows = NULL;
    refusals->n = 0;
}

/* Whether two are to be told together: one host, from whichever ports. */
static bool is_same(const char *a, const char *b)
{
    const char *port = strrchr(a, ':');
    const bool ip =
        port != NULL && (a[0] == '[' || (a[0] >= '0' && a[0] <= '9'));
    return strcmp(a, b) == 0 ||
           (ip && strncmp(a, b, (size_t)(port - a) + 1) == 0 &&
            strchr(b + (port - a) + 1, ':') == NULL);
}

/* The row of an offender; when there are too many, that of who offended least.
 * NULL: no memory. */
static struct refusal_row *row_of(struct refusals *refusals,
                                  enum ls_refusal_kind kind, const char *who)
{
    struct refusal_row *least = NULL;
    if (refusals->rows == NULL &&
        (refusals->rows = calloc(REFUSALS_MAX, sizeof *least)) == NULL)
        return NULL;
    for (size_t i = 0; i < refusals->n; i++) {
        struct refusal_row *row = &refusals->rows[i];
        if (row->told.kind == kind && is_same(row->told.who, who))
            return row;
        if (least == NULL || row->told.n < least->told.n)
            least = row;
    }
    if (refusals->n < REFUSALS_MAX)
        least = &refusals->rows[refusals->n++];
    *least = (struct refusal_row){.told = {.kind = kind}};
    return least;
}

static bool may_say(struct refusals *refusals, const struct refusal_row *row,
                    int64_t now)
{
    if (row->said_at != 0 && now - row->said_at < AGAIN_NS)
        return false;
    if (now - refusals->lines_since >= AGAIN_NS) {
        refusals->lines_since = now;
        refusals->lines = 0;
    }
    return refusals->lines++ < LINES_MAX;
}

void refusals_note(struct refusals *refusals, enum ls_refusal_kind kind,
                   const char *who, uint64_t n, int64_t now)
{
    char name[sizeof refusals->rows->told.who]; /* as it is kept */
    text_cut(name, sizeof name, who);
    struct refusal_row *row = row_of(refusals, kind, name);
    refusals->total += n;
    text_cut(refusals->last, sizeof refusals->last, ls_error_text());
    if (row == NULL)
        return;
    memcpy(row->told.who, name, sizeof row->told.who);
    row->told.n += n;
    row->told.last_at = now;
    text_cut(row->told.why, sizeof row->told.why, ls_error_text());
    if (!may_say(refusals, row, now))
        return;
    const uint64_t more = row->told.n - row->said - 1;
    row->said_at = now;
    row->said = row->told.n;
    if (who[0] == '\0')
        who = "somebody";
    if (more == 0)
        ls_log_warn("bus: refused %s: %s", who, ls_error_text());
    else
        ls_log_warn("bus: refused %s, and %" PRIu64 " times more since the "
                    "last line: %s",
                    who, more, ls_error_text());
}
