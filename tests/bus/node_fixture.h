/* node_fixture.h - one node by itself. */
#ifndef NODE_FIXTURE_H
#define NODE_FIXTURE_H

#include "world_fixture.h"

static inline struct ls_node_options usual(uint32_t id)
{
    struct ls_node_options options;
    static char bind[16][LS_ENDPOINT_MAX + 1];
    static unsigned next;
    ls_node_options_init(&options);
    next = (next + 1) % 16;
    fresh_endpoint(bind[next], sizeof bind[next]);
    options.bind = bind[next];
    options.id = id;
    options.start_timeout_ms = LONG_MS;
    return options;
}

static inline ls_node *create(const struct ls_node_options *options)
{
    ls_node *node = NULL;
    assert_ok(ls_node_create(&node, options));
    return node;
}

static inline ls_node *started(const struct ls_node_options *options)
{
    ls_node *node = create(options);
    assert_ok(ls_node_start(node));
    return node;
}

#endif
