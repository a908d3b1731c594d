#include "deadlines.h"

#include <stdlib.h>

#include "lockstep/status.h"

#define FIRST_CAPACITY 16

static void put(struct deadlines *deadlines, size_t place,
                struct deadline *deadline)
{
    deadlines->heap[place - 1] = deadline;
    deadline->place = place;
}

static void move_up(struct deadlines *deadlines, struct deadline *deadline)
{
    size_t place = deadline->place;
    while (place > 1 && deadlines->heap[place / 2 - 1]->at > deadline->at) {
        put(deadlines, place, deadlines->heap[place / 2 - 1]);
        place /= 2;
    }
    put(deadlines, place, deadline);
}

static void move_down(struct deadlines *deadlines, struct deadline *deadline)
{
    struct deadline **heap = deadlines->heap;
    size_t place = deadline->place;
    for (;;) {
        size_t child = 2 * place;
        if (child < deadlines->n && heap[child]->at < heap[child - 1]->at)
            child++;
        if (child > deadlines->n || heap[child - 1]->at >= deadline->at)
            break;
        put(deadlines, place, heap[child - 1]);
        place = child;
    }
    put(deadlines, place, deadline);
}

int deadlines_add(struct deadlines *deadlines, struct deadline *deadline)
{
    if (deadlines->n == deadlines->capacity) {
        const size_t capacity =
            deadlines->capacity == 0 ? FIRST_CAPACITY : 2 * deadlines->capacity;
        struct deadline **grown =
            realloc(deadlines->heap, capacity * sizeof(struct deadline *));
        if (grown == NULL)
            return ls_error(LS_ENOMEM, "no memory for a deadline");
        deadlines->heap = grown;
        deadlines->capacity = capacity;
    }
    put(deadlines, ++deadlines->n, deadline);
    move_up(deadlines, deadline);
    return LS_OK;
}

void deadlines_remove(struct deadlines *deadlines, struct deadline *deadline)
{
    const size_t place = deadline->place;
    if (place == 0)
        return;
    struct deadline *last = deadlines->heap[--deadlines->n];
    deadline->place = 0;
    if (last == deadline)
        return;
    put(deadlines, place, last);
    move_up(deadlines, last);
    move_down(deadlines, last);
}

void deadlines_delay(struct deadlines *deadlines, int64_t by)
{
    for (size_t i = 0; i < deadlines->n; i++)
        deadlines->heap[i]->at += by;
}

struct deadline *deadlines_first(const struct deadlines *deadlines)
{
    return deadlines->n == 0 ? NULL : deadlines->heap[0];
}

void deadlines_fini(struct deadlines *deadlines)
{
    free(deadlines->heap);
    *deadlines = (struct deadlines){0};
}
