#include "call_post.h"

#include <stdlib.h>
#include <string.h>

static struct call_box *find(const struct call_post *post, uint32_t to)
{
    struct call_box *box = post->boxes;
    while (box != NULL && box->to != to)
        box = box->next;
    return box;
}

bool call_post_waits(const struct call_post *post, uint32_t to)
{
    const struct call_box *box = find(post, to);
    return box != NULL && box->first != NULL;
}

size_t call_post_answers(const struct call_post *post, uint32_t to)
{
    const struct call_box *box = find(post, to);
    return box != NULL ? box->n_answers : 0;
}

/* It is in no list any more. */
static void free_letter(struct call_box *box, struct call_letter *letter)
{
    box->n_answers -= letter->answer ? 1 : 0;
    if (letter->owner != NULL)
        *letter->owner = NULL;
    free(letter);
}

static void discard_first(struct call_box *box)
{
    struct call_letter *letter = box->first;
    box->first = letter->after;
    if (box->first != NULL)
        box->first->before = NULL;
    else
        box->last = NULL;
    free_letter(box, letter);
}

static void discard(struct call_letter *letter)
{
    struct call_box *box = letter->box;
    if (letter->before == NULL) {
        discard_first(box);
        return;
    }
    letter->before->after = letter->after;
    if (letter->after != NULL)
        letter->after->before = letter->before;
    else
        box->last = letter->before;
    free_letter(box, letter);
}

/* Where the pointer to it is. */
static void discard_body(struct call_box *box, struct call_body **at)
{
    struct call_body *body = *at;
    *at = body->next;
    box->n_answers -= body->answer ? 1 : 0;
    payload_drop(body->payload);
    free(body);
}

static void drop_all(struct call_post *post, struct call_box *box)
{
    while (box->bodies != NULL) {
        post->dropped++;
        discard_body(box, &box->bodies);
    }
    while (box->first != NULL) {
        post->dropped++;
        discard_first(box);
    }
}

/* Boxes go with their last letters. */
static void free_empty(struct call_post *post)
{
    struct call_box **at = &post->boxes;
    while (*at != NULL) {
        struct call_box *box = *at;
        if (box->first != NULL || box->bodies != NULL) {
            at = &box->next;
            continue;
        }
        *at = box->next;
        free(box);
    }
}

/* The one for a member, made if need be; NULL: no memory. */
static struct call_box *get(struct call_post *post, uint32_t to)
{
    struct call_box *box = find(post, to);
    if (box != NULL || (box = calloc(1, sizeof *box)) == NULL)
        return box;
    *box = (struct call_box){.next = post->boxes, .to = to};
    post->boxes = box;
    return box;
}

static int no_memory(struct call_post *post, uint32_t to)
{
    free_empty(post);
    post->dropped++;
    return ls_error(LS_ENOMEM, "no memory for a message to node %u",
                    (unsigned)to);
}

int call_post_add(struct call_post *post, uint32_t to, uint64_t life,
                  bool answer, const void *bytes, size_t size,
                  struct call_letter **owner)
{
    struct call_box *box = find(post, to);
    if (answer && box != NULL && box->n_answers == CALL_POST_ANSWERS) {
        post->dropped++;
        return ls_error(LS_ELIMIT, "%d answers wait for node %u",
                        CALL_POST_ANSWERS, (unsigned)to);
    }
    struct call_letter *letter = malloc(sizeof *letter + size);
    if (letter == NULL || (box = get(post, to)) == NULL) {
        free(letter);
        return no_memory(post, to);
    }
    *letter = (struct call_letter){.before = box->last,
                                   .box = box,
                                   .owner = owner,
                                   .life = life,
                                   .answer = answer,
                                   .size = size};
    memcpy(letter->bytes, bytes, size);
    if (box->last != NULL)
        box->last->after = letter;
    else
        box->first = letter;
    box->last = letter;
    box->n_answers += answer ? 1 : 0;
    if (owner != NULL)
        *owner = letter;
    return LS_OK;
}

void call_post_withdraw(struct call_post *post, struct call_letter *letter)
{
    discard(letter);
    free_empty(post);
}

static void append(struct call_box *box, struct call_body *body)
{
    struct call_body **end = &box->bodies;
    while (*end != NULL)
        end = &(*end)->next;
    body->next = NULL;
    *end = body;
}

int call_post_add_body(struct call_post *post, uint32_t to, uint64_t life,
                       uint64_t id, bool answer, struct payload *payload)
{
    struct call_body *body = malloc(sizeof *body);
    struct call_box *box = body != NULL ? get(post, to) : NULL;
    if (box == NULL) {
        free(body);
        return no_memory(post, to);
    }
    *body = (struct call_body){.life = life,
                               .id = id,
                               .answer = answer,
                               .payload = payload_share(payload)};
    append(box, body);
    box->n_answers += answer ? 1 : 0;
    return LS_OK;
}

bool call_post_drop_body(struct call_post *post, uint32_t to, uint64_t life,
                         uint64_t id)
{
    struct call_box *box = find(post, to);
    struct call_body **at = box != NULL ? &box->bodies : NULL;
    while (at != NULL && *at != NULL &&
           ((*at)->id != id || (*at)->life != life))
        at = &(*at)->next;
    if (at == NULL || *at == NULL)
        return false;
    discard_body(box, at);
    free_empty(post);
    return true;
}

void call_post_drop_answers(struct call_post *post, call_body_fn *fn,
                            void *self)
{
    for (struct call_box *box = post->boxes; box != NULL; box = box->next) {
        struct call_body **at = &box->bodies;
        while (*at != NULL) {
            if (!(*at)->answer) {
                at = &(*at)->next;
                continue;
            }
            fn(self, box->to, *at);
            post->dropped++;
            discard_body(box, at);
        }
    }
    free_empty(post);
}

void call_post_lose(struct call_post *post, uint32_t to, uint64_t life)
{
    struct call_box *box = find(post, to);
    struct call_letter *letter = box != NULL ? box->first : NULL;
    while (letter != NULL) {
        struct call_letter *after = letter->after;
        if (letter->life == life) {
            post->dropped++;
            discard(letter);
        }
        letter = after;
    }
    struct call_body **at = box != NULL ? &box->bodies : NULL;
    while (at != NULL && *at != NULL) {
        if ((*at)->life != life) {
            at = &(*at)->next;
            continue;
        }
        post->dropped++;
        discard_body(box, at);
    }
    free_empty(post);
}

void call_post_clear(struct call_post *post)
{
    for (struct call_box *box = post->boxes; box != NULL; box = box->next)
        drop_all(post, box);
    free_empty(post);
}

/* One part of each in turn, so that a short body does not wait for a long one.
 */
static int flush_bodies(struct call_post *post, struct call_box *box,
                        call_send_part_fn *send, void *self)
{
    int status = LS_OK;
    while (status == LS_OK && box->bodies != NULL) {
        struct call_body *body = box->bodies;
        status = send(self, box->to, body);
        if (status == LS_ELOST) {
            post->dropped++;
            discard_body(box, &box->bodies);
            status = LS_OK;
            continue;
        }
        if (status == LS_OK && body->at == payload_size(body->payload)) {
            discard_body(box, &box->bodies);
        } else if (status == LS_OK) {
            box->bodies = body->next;
            append(box, body);
        }
    }
    return status;
}

bool call_post_flush(struct call_post *post, call_send_fn *send,
                     call_send_part_fn *send_part, void *self)
{
    int status = LS_OK;
    for (struct call_box *box = post->boxes; box != NULL && status != LS_ENOMEM;
         box = box->next) {
        status = LS_OK;
        while (status == LS_OK && box->first != NULL) {
            status = send(self, box->to, box->first->bytes, box->first->size);
            if (status == LS_OK)
                discard_first(box);
        }
        if (status == LS_OK)
            status = flush_bodies(post, box, send_part, self);
        if (status != LS_OK && status != LS_EAGAIN && status != LS_ENOMEM)
            drop_all(post, box);
    }
    free_empty(post);
    return status == LS_ENOMEM;
}
