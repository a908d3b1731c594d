/* A recording, read whole, and played again. */
#include "tape.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "lockstep/event.h"
#include "lockstep/file.h"

#include "tape_format.h"

#define NONE SIZE_MAX
/* Bytes of a card. */
#define CARD_MOST 1024

/* The events of one name that a node has emitted. */
struct name {
    char text[LS_EVENT_MAX + 1];
    size_t first, last; /* of its entries; NONE */
    size_t next;        /* to be emitted again; NONE: no more */
    uint64_t number;    /* of that one, from 1 */
};

struct entry {
    uint8_t kind;
    size_t name; /* of the player's */
    size_t next; /* emitted with this name; NONE */
    uint32_t peer;
    uint64_t size, hash;
    const unsigned char *data; /* borrow: from the tape */
};

struct player {
    struct ls_event_gate gate;
    struct tape *tape;            /* borrow */
    const struct tape_node *node; /* borrow */
    struct name *names;           /* own */
    size_t n_names;
    struct entry *entries; /* own */
    size_t n_entries;
    size_t handled; /* the next entry that was handled; n_entries: no more */
    bool waits;     /* something was held since the last that was handled */
    bool emits;     /* its recording does, and has not come to its end yet */
    void (*where)(void *self, char *text, size_t size); /* borrow; NULL */
    void *where_self;
};

struct tape {
    unsigned char *data; /* own */
    struct tape_about about;
    struct player *players; /* own; as the nodes */
    size_t only;            /* of them; NONE: all are compared */
    struct tape_figures figures;
    char card[CARD_MOST]; /* "": no difference so far */
};

/* ---- reading ----------------------------------------------------------- */

static struct name *find_name(const struct player *player, const char *text,
                              size_t size)
{
    for (size_t i = 0; i < player->n_names; i++) {
        struct name *name = &player->names[i];
        if (strncmp(name->text, text, size) == 0 && name->text[size] == '\0')
            return name;
    }
    return NULL;
}

/* NULL: no memory. */
static struct name *get_name(struct player *player, const char *text,
                             size_t size)
{
    struct name *name = find_name(player, text, size);
    if (name != NULL)
        return name;
    const size_t n = player->n_names;
    if ((n & (n - 1)) == 0) { /* at powers of two, and at first */
        struct name *names =
            realloc(player->names, (n > 0 ? 2 * n : 1) * sizeof *names);
        if (names == NULL)
            return NULL;
        player->names = names;
    }
    name = &player->names[player->n_names++];
    *name = (struct name){.first = NONE, .last = NONE, .next = NONE};
    memcpy(name->text, text, size);
    return name;
}

static int add_entry(struct player *player, const struct tape_head *head,
                     const unsigned char *at)
{
    const size_t n = player->n_entries;
    const char *text = (const char *)at + TAPE_HEAD;
    if (head->name_size == 0 || head->name_size > LS_EVENT_MAX ||
        memchr(text, '\0', head->name_size) != NULL)
        return ls_error(LS_EPROTO, "node %" PRIu32 ": an event without a name",
                        player->node->id);
    if ((n & (n - 1)) == 0) {
        struct entry *entries =
            realloc(player->entries, (n > 0 ? 2 * n : 1) * sizeof *entries);
        if (entries == NULL)
            return ls_error(LS_ENOMEM, "the entries of a recording");
        player->entries = entries;
    }
    struct name *name = get_name(player, text, head->name_size);
    if (name == NULL)
        return ls_error(LS_ENOMEM, "the names of a recording");
    player->entries[player->n_entries++] =
        (struct entry){.kind = head->kind,
                       .name = (size_t)(name - player->names),
                       .next = NONE,
                       .peer = head->peer,
                       .size = head->size,
                       .hash = head->hash,
                       .data = at + TAPE_HEAD + head->name_size};
    if (head->kind != TAPE_EMITS)
        return LS_OK;
    player->emits = true;
    if (name->first == NONE)
        name->first = name->next = n;
    else
        player->entries[name->last].next = n;
    name->last = n;
    return LS_OK;
}

static size_t next_handled(const struct player *player, size_t at)
{
    while (at < player->n_entries && player->entries[at].kind != TAPE_HANDLES)
        at++;
    return at;
}

static int read_node(struct player *player, const unsigned char *data,
                     size_t size)
{
    struct tape_head head = {.kind = 0};
    uint64_t length;
    int status = LS_OK;
    while (status == LS_OK && size > 0) {
        if (head.kind == TAPE_END ||
            !tape_head_read(&head, data, size, &length))
            return ls_error(LS_EPROTO, "node %" PRIu32 ": what is not a record",
                            player->node->id);
        if (head.kind != TAPE_END)
            status = add_entry(player, &head, data);
        data += length;
        size -= (size_t)length;
    }
    if (status == LS_OK && player->node->whole != (head.kind == TAPE_END))
        status = ls_error(LS_EPROTO,
                          "node %" PRIu32 ": its end is missing, "
                          "or there by mistake",
                          player->node->id);
    for (size_t i = 0; i < player->n_names; i++)
        player->names[i].number = 1;
    player->handled = next_handled(player, 0);
    return status;
}

static int emits(void *self, const struct ls_emission *emission,
                 const void **data, size_t *size);
static bool handles(void *self, const struct ls_event *event);

static int read_nodes(struct tape *self, size_t at, size_t size)
{
    const size_t n = self->about.n_nodes;
    int status = LS_OK;
    self->players = calloc(n, sizeof *self->players);
    if (self->players == NULL)
        return ls_error(LS_ENOMEM, "the nodes of a recording");
    for (size_t i = 0; i < n && status == LS_OK; i++) {
        struct player *player = &self->players[i];
        const uint64_t bytes = self->about.nodes[i].bytes;
        *player = (struct player){
            .gate = {.self = player, .emits = emits, .handles = handles},
            .tape = self,
            .node = &self->about.nodes[i]};
        if (bytes > size - at)
            return ls_error(LS_EPROTO,
                            "it has less of node %" PRIu32 " than it says",
                            player->node->id);
        status = read_node(player, self->data + at, (size_t)bytes);
        at += (size_t)bytes;
    }
    if (status == LS_OK && at != size)
        status = ls_error(LS_EPROTO, "it has more than its nodes");
    return status;
}

static int check_header(const unsigned char *data, size_t size)
{
    static const char trace[] = "lockstep-trace";
    for (size_t i = 0; i + sizeof trace - 1 <= size && i < 32; i++)
        if (memcmp(data + i, trace, sizeof trace - 1) == 0)
            return ls_error(LS_EPROTO,
                            "it is a flight recorder's: a ring that has only "
                            "the last of what was done, and no payloads. Look "
                            "at it by lockstep trace; lockstep run --record "
                            "keeps a run that can be replayed");
    const size_t known = size < 8 ? size : 8;
    if (size == 0 || memcmp(data, TAPE_MAGIC, known) != 0)
        return ls_error(LS_EPROTO,
                        size == 0 ? "it is empty: the run that is recorded "
                                    "there has not ended"
                                  : "it is not a recording of lockstep run "
                                    "--record");
    if (size < TAPE_HEADER)
        return ls_error(LS_EPROTO, "it is cut short: it has %zu bytes", size);
    if (tape_get32(data + 8) != TAPE_VERSION)
        return ls_error(LS_EPROTO,
                        "it is of version %" PRIu32 " of recordings; this "
                        "lockstep reads version %u",
                        tape_get32(data + 8), TAPE_VERSION);
    const uint64_t whole = tape_get64(data + 16);
    if (size != whole)
        return ls_error(
            LS_EPROTO, "it is %s: it has %zu bytes, and had %" PRIu64,
            size < whole ? "cut short" : "longer than it was", size, whole);
    if (XXH3_64bits(data + TAPE_HEADER, size - TAPE_HEADER) !=
        tape_get64(data + 24))
        return ls_error(LS_EPROTO, "it is damaged: its bytes are not those "
                                   "that were written");
    if (tape_get32(data + 12) > size - TAPE_HEADER)
        return ls_error(LS_EPROTO, "its map is longer than the file");
    return LS_OK;
}

/* Texts may be missing, as that of the seed. */
static int check_about(const struct tape_about *about)
{
    if (about->config == NULL || about->text == NULL)
        return ls_error(LS_EPROTO, "it has no configuration");
    for (size_t i = 0; i < about->n_sets; i++)
        if (about->sets[i].path == NULL || about->sets[i].value == NULL)
            return ls_error(LS_EPROTO, "override %zu has no text", i);
    return LS_OK;
}

/* data: moved. */
static int decode(struct tape **out, const char *name, void *data, size_t size)
{
    const struct ls_codec_limits limits = {
        .max_bytes = (size_t)64 << 20, .max_depth = 8, .max_objects = 1u << 24};
    struct tape *self = calloc(1, sizeof *self);
    *out = NULL;
    if (self == NULL) {
        free(data);
        return ls_error(LS_ENOMEM, "a recording");
    }
    self->data = data;
    self->only = NONE;
    int status = check_header(self->data, size);
    const size_t map = status == LS_OK ? tape_get32(self->data + 12) : 0;
    if (status == LS_OK)
        status = ls_record_decode(&tape_about_record, &self->about,
                                  self->data + TAPE_HEADER, map, &limits);
    if (status == LS_OK)
        status = check_about(&self->about);
    if (status == LS_OK)
        status = read_nodes(self, TAPE_HEADER + map, size);
    if (status != LS_OK) {
        tape_close(&self);
        return ls_error_at(status, "%s", name);
    }
    *out = self;
    return LS_OK;
}

int tape_open(struct tape **out, const char *path)
{
    void *data;
    size_t size;
    *out = NULL;
    const int status = ls_file_read(path, SIZE_MAX, &data, &size);
    return status == LS_OK ? decode(out, path, data, size) : status;
}

void tape_close(struct tape **tape)
{
    if (tape == NULL || *tape == NULL)
        return;
    for (size_t i = 0; (*tape)->players != NULL && i < (*tape)->about.n_nodes;
         i++) {
        free((*tape)->players[i].names);
        free((*tape)->players[i].entries);
    }
    free((*tape)->players);
    tape_about_clear(&(*tape)->about);
    free((*tape)->data);
    free(*tape);
    *tape = NULL;
}

const struct tape_about *tape_about(const struct tape *tape)
{
    return &tape->about;
}

/* ---- playing ----------------------------------------------------------- */

static struct player *find_player(struct tape *tape, uint32_t id)
{
    for (size_t i = 0; i < tape->about.n_nodes; i++)
        if (tape->about.nodes[i].id == id)
            return &tape->players[i];
    return NULL;
}

int tape_only(struct tape *tape, uint32_t id)
{
    const struct player *player = find_player(tape, id);
    if (player == NULL)
        return ls_error(LS_EINVAL,
                        "--node %" PRIu32 ": the recording has no "
                        "such node",
                        id);
    tape->only = (size_t)(player - tape->players);
    return LS_OK;
}

const struct ls_event_gate *
tape_play(struct tape *tape, uint32_t id,
          void (*where)(void *self, char *text, size_t size), void *self)
{
    struct player *player = find_player(tape, id);
    if (player == NULL)
        return NULL;
    player->where = where;
    player->where_self = self;
    return &player->gate;
}

/* Out of line, for `break tape_diverged`. */
__attribute__((noinline)) int tape_diverged(struct tape *tape, const char *card)
{
    if (tape->card[0] == '\0')
        (void)snprintf(tape->card, sizeof tape->card, "%s", card);
    return ls_error(LS_EMISMATCH, "%s", card);
}

/* "node 2 (collector), in step collect, iteration 3" */
static void print_where(const struct player *player, bool now, char *text,
                        size_t size)
{
    char at[256] = "";
    if (now && player->where != NULL)
        player->where(player->where_self, at, sizeof at);
    (void)snprintf(text, size, "node %" PRIu32 " (%s)%s%s", player->node->id,
                   player->node->role, at[0] != '\0' ? ", " : "", at);
}

/* "all, 20 bytes, XXH3 0123456789abcdef" */
static void print_what(uint32_t peer, uint64_t size, uint64_t hash, char *text,
                       size_t room)
{
    char to[24] = "all";
    if (peer != TAPE_TO_ALL)
        (void)snprintf(to, sizeof to, "node %" PRIu32, peer);
    (void)snprintf(text, room, "%" PRIu64 " bytes to %s, XXH3 %016" PRIx64,
                   size, to, hash);
}

/* then: NULL: nothing was emitted. */
static int differs(const struct player *player, const struct name *name,
                   const struct entry *then, const struct ls_emission *emission,
                   const struct entry *now)
{
    char where[400], was[128] = "nothing more of this name", is[128],
                     card[CARD_MOST];
    char at[64] = "";
    print_where(player, true, where, sizeof where);
    print_what(now->peer, now->size, now->hash, is, sizeof is);
    if (then != NULL) {
        const uint64_t least = then->size < now->size ? then->size : now->size;
        uint64_t i = 0;
        print_what(then->peer, then->size, then->hash, was, sizeof was);
        while (i < least && then->data[i] == now->data[i])
            i++;
        (void)snprintf(at, sizeof at, "; they differ from byte %" PRIu64 " on",
                       i);
        if (then->hash == now->hash && then->size == now->size)
            at[0] = '\0';
    }
    (void)snprintf(card, sizeof card,
                   "the replay differs: %s: event \"%s\" number %" PRIu64
                   ": expected %s; came %s%s",
                   where, emission->event,
                   name != NULL ? name->number : UINT64_C(1), was, is, at);
    return tape_diverged(player->tape, card);
}

/* More than was recorded, of a run that was broken off. One node may be ahead
 * of its recording, whose end is lost with a process that was killed; once all
 * are, there is nothing left to compare with. */
static int beyond(struct player *player)
{
    struct tape *tape = player->tape;
    bool over = true;
    player->emits = false;
    tape->figures.beyond++;
    for (size_t i = 0; i < tape->about.n_nodes; i++)
        over = over && !tape->players[i].emits;
    tape->figures.over = over;
    return over ? ls_error(LS_ECANCELED,
                           "the recording ends here: up to here the replay "
                           "is the same")
                : LS_OK;
}

static int emits(void *self, const struct ls_emission *emission,
                 const void **data, size_t *size)
{
    struct player *player = self;
    struct tape *tape = player->tape;
    struct tape_figures *figures = &tape->figures;
    const bool compared =
        tape->only == NONE || player == &tape->players[tape->only];
    const struct entry now = {.peer =
                                  emission->to_one ? emission->to : TAPE_TO_ALL,
                              .size = *size,
                              .hash = XXH3_64bits(*data, *size),
                              .data = *data};
    if (tape->card[0] != '\0' || figures->over)
        return LS_OK; /* the replay ends */
    struct name *name =
        find_name(player, emission->event, strlen(emission->event));
    if (name == NULL || name->next == NONE) {
        if (compared && tape->about.done && player->node->whole)
            return differs(player, name, NULL, emission, &now);
        return beyond(player);
    }
    const struct entry *then = &player->entries[name->next];
    if (then->peer == now.peer && then->size == now.size &&
        then->hash == now.hash) {
        figures->compared++;
    } else if (compared) {
        return differs(player, name, then, emission, &now);
    } else {
        *data = then->data;
        *size = (size_t)then->size;
        figures->replaced++;
    }
    name->next = then->next;
    name->number++;
    return LS_OK;
}

static bool is_of(const struct player *player, const struct entry *entry,
                  const struct ls_event *event)
{
    return entry->kind == TAPE_HANDLES && entry->peer == event->origin &&
           strcmp(player->names[entry->name].text, event->name) == 0;
}

static bool handles(void *self, const struct ls_event *event)
{
    struct player *player = self;
    size_t at = player->handled;
    if (player->tape->card[0] != '\0')
        return true;
    if (at < player->n_entries && is_of(player, &player->entries[at], event)) {
        player->handled = next_handled(player, at + 1);
        player->waits = false;
        player->tape->figures.ordered++;
        return true;
    }
    while (at < player->n_entries &&
           !is_of(player, &player->entries[at], event))
        at++;
    if (at == player->n_entries)
        return true; /* not handled then any more */
    player->waits = true;
    return false;
}

/* What a node that has ended still had to emit. */
static bool has_left_some(const struct player *player)
{
    for (size_t i = 0; i < player->n_names; i++) {
        const struct name *name = &player->names[i];
        char where[128], was[128], card[CARD_MOST];
        if (name->next == NONE)
            continue;
        const struct entry *then = &player->entries[name->next];
        print_where(player, false, where, sizeof where);
        print_what(then->peer, then->size, then->hash, was, sizeof was);
        (void)snprintf(card, sizeof card,
                       "the replay differs: %s: event \"%s\" number %" PRIu64
                       ": expected %s; the node came to its end without it",
                       where, name->text, name->number, was);
        (void)tape_diverged(player->tape, card);
        return true;
    }
    return false;
}

static bool has_waited(const struct player *player)
{
    char where[128], card[CARD_MOST];
    if (!player->waits || player->handled >= player->n_entries)
        return false;
    const struct entry *next = &player->entries[player->handled];
    print_where(player, false, where, sizeof where);
    (void)snprintf(card, sizeof card,
                   "the replay differs: %s: expected event \"%s\" from node "
                   "%" PRIu32 "; it never came, and what came was held back",
                   where, player->names[next->name].text, next->peer);
    (void)tape_diverged(player->tape, card);
    return true;
}

const char *tape_end(struct tape *tape, bool done, struct tape_figures *figures)
{
    const bool whole = done && tape->about.done;
    tape->figures.late = tape->card[0] == '\0';
    for (size_t i = 0; i < tape->about.n_nodes && tape->card[0] == '\0'; i++) {
        const struct player *player = &tape->players[i];
        const bool compared = tape->only == NONE || tape->only == i;
        if (whole ? compared && has_left_some(player)
                  : !done && !tape->figures.over && has_waited(player))
            break;
    }
    *figures = tape->figures;
    return tape->card[0] != '\0' ? tape->card : NULL;
}
