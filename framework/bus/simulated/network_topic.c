/* What is subscribed to: topics, and who gets what begins with one. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "network_parts.h"

/* ---- topics ------------------------------------------------------------ */

static struct topic *topic_find(const ls_network *network, const uint8_t *bytes,
                                size_t size, uint64_t hash)
{
    struct hashed *at = table_first(&network->topics, hash);
    for (; at != NULL; at = at->next) {
        struct topic *topic = (struct topic *)at;
        if (at->hash == hash && topic->size == size &&
            memcmp(topic->bytes, bytes, size) == 0)
            return topic;
    }
    return NULL;
}

struct topic *topic_get(ls_network *network, const uint8_t *bytes, size_t size)
{
    const uint64_t hash = XXH3_64bits(bytes, size);
    struct topic *topic = topic_find(network, bytes, size, hash);
    if (topic == NULL) {
        topic = malloc(sizeof *topic + size);
        if (topic == NULL)
            return NULL;
        *topic = (struct topic){.in.hash = hash, .size = size};
        memcpy(topic->bytes, bytes, size);
        if (table_add(&network->topics, &topic->in) != LS_OK) {
            free(topic);
            return NULL;
        }
        network->lengths[bytes[0]][size / 64] |= UINT64_C(1) << (size % 64);
    }
    topic->users++;
    return topic;
}

void topic_put(ls_network *network, struct topic *topic)
{
    if (--topic->users != 0)
        return;
    table_remove(&network->topics, &topic->in);
    free(topic);
}

int topic_compare(const struct topic *topic, const uint8_t *bytes, size_t size)
{
    const size_t n = topic->size < size ? topic->size : size;
    const int order = memcmp(topic->bytes, bytes, n);
    if (order != 0)
        return order;
    return topic->size < size ? -1 : topic->size > size ? 1 : 0;
}

/* ---- filters ----------------------------------------------------------- */

static uint64_t filter_hash(const struct sim_transport *publisher,
                            const struct topic *topic)
{
    return topic->in.hash ^ (publisher->number * UINT64_C(0x9e3779b97f4a7c15));
}

static struct filter *filter_find(const struct sim_transport *publisher,
                                  const struct topic *topic)
{
    const uint64_t hash = filter_hash(publisher, topic);
    struct hashed *at = table_first(&publisher->host->network->filters, hash);
    for (; at != NULL; at = at->next) {
        struct filter *filter = (struct filter *)at;
        if (filter->topic == topic && filter->publisher == publisher)
            return filter;
    }
    return NULL;
}

static struct filter *filter_create(struct sim_transport *publisher,
                                    struct topic *topic)
{
    struct filter *filter = calloc(1, sizeof *filter);
    if (filter == NULL)
        return NULL;
    filter->in.hash = filter_hash(publisher, topic);
    filter->topic = topic;
    filter->publisher = publisher;
    if (table_add(&publisher->host->network->filters, &filter->in) != LS_OK) {
        free(filter);
        return NULL;
    }
    topic->users++;
    return filter;
}

static void filter_drop_empty(ls_network *network, struct filter *filter)
{
    if (filter->n != 0)
        return;
    table_remove(&network->filters, &filter->in);
    topic_put(network, filter->topic);
    free(filter->connections);
    free(filter);
}

/* Where the topic is among those of a connection, or would be. */
static uint32_t filter_place(const struct connection *connection,
                             const struct topic *topic)
{
    uint32_t low = 0, high = connection->n_filters;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (topic_compare(connection->filters[middle]->topic, topic->bytes,
                          topic->size) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Room for one more on both sides. */
static bool make_room(struct connection *connection, struct filter *filter)
{
    if (filter->n == filter->capacity) {
        const size_t n = filter->capacity == 0 ? 1 : 2 * filter->capacity;
        struct connection **grown =
            realloc(filter->connections, n * sizeof(struct connection *));
        if (grown == NULL)
            return false;
        filter->connections = grown;
        filter->capacity = n;
    }
    if (connection->n_filters == connection->filter_capacity) {
        const uint32_t n = connection->filter_capacity + 4;
        struct filter **grown =
            realloc(connection->filters, n * sizeof(struct filter *));
        if (grown == NULL)
            return false;
        connection->filters = grown;
        connection->filter_capacity = n;
    }
    return true;
}

int filter_add(struct connection *connection, struct topic *topic)
{
    struct filter *filter = filter_find(connection->publisher, topic);
    const uint32_t at = filter_place(connection, topic);
    if (at < connection->n_filters && connection->filters[at]->topic == topic)
        return LS_OK;
    if (filter == NULL)
        filter = filter_create(connection->publisher, topic);
    if (filter == NULL)
        return LS_ENOMEM;
    if (!make_room(connection, filter)) {
        filter_drop_empty(connection->network, filter);
        return LS_ENOMEM;
    }
    filter->connections[filter->n++] = connection;
    memmove(&connection->filters[at + 1], &connection->filters[at],
            (connection->n_filters - at) * sizeof(struct filter *));
    connection->filters[at] = filter;
    connection->n_filters++;
    return LS_OK;
}

void filter_remove(struct connection *connection, const struct topic *topic)
{
    const uint32_t at = filter_place(connection, topic);
    if (at == connection->n_filters || connection->filters[at]->topic != topic)
        return;
    struct filter *filter = connection->filters[at];
    connection->n_filters--;
    memmove(&connection->filters[at], &connection->filters[at + 1],
            (connection->n_filters - at) * sizeof(struct filter *));
    size_t i = 0;
    while (filter->connections[i] != connection)
        i++;
    filter->connections[i] = filter->connections[--filter->n];
    filter_drop_empty(connection->network, filter);
}

struct filter *filter_next(const struct sim_transport *t, const uint8_t *bytes,
                           size_t size, size_t *length)
{
    const ls_network *network = t->host->network;
    if (size == 0)
        return NULL;
    const size_t end = size < NETWORK_LENGTHS ? size + 1 : NETWORK_LENGTHS;
    for (size_t n = *length + 1; n < end; n++) {
        const uint64_t bits = network->lengths[bytes[0]][n / 64] >> (n % 64);
        if (bits == 0) {
            n |= 63; /* none as long as this, or as any in its word */
            continue;
        }
        if ((bits & 1) == 0)
            continue;
        const struct topic *topic =
            topic_find(network, bytes, n, XXH3_64bits(bytes, n));
        struct filter *filter = topic != NULL ? filter_find(t, topic) : NULL;
        if (filter != NULL) {
            *length = n;
            return filter;
        }
    }
    return NULL;
}

static void free_filter(struct hashed *what)
{
    free(((struct filter *)what)->connections);
    free(what);
}

static void free_topic(struct hashed *what)
{
    free(what);
}

void network_topics_free(ls_network *network)
{
    table_clear(&network->filters, free_filter);
    table_clear(&network->topics, free_topic);
}
