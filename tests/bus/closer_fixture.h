/* closer_fixture.h - who has several links to one publisher, and closes all of
 * them at the first message. */
#ifndef CLOSER_FIXTURE_H
#define CLOSER_FIXTURE_H

#include "test.h"
#include "transport_fixture.h"

enum { N_LINKS = 4 };
struct closer {
    transport *transport;
    transport_link *links[N_LINKS];
    struct message message;
    unsigned n_heard;
};

/* Each link subscribes to "x" at `to`. */
static inline void closer_open(struct closer *closer, ls_runtime *runtime,
                               const char *bind, ls_security *security,
                               const char *to)
{
    char endpoint[LS_ENDPOINT_MAX + 1];
    *closer = (struct closer){.n_heard = 0};
    assert_ok(
        open_transport(&closer->transport, runtime, bind, security, endpoint));
    for (size_t i = 0; i < N_LINKS; i++) {
        transport_link **link = &closer->links[i];
        assert_ok(transport_link_open(closer->transport, link, closer));
        assert_ok(transport_link_connect(*link, to, false, 0));
        assert_ok(
            transport_link_subscribe(*link, (const uint8_t *)"x", 1, true));
    }
}

static inline struct message *closer_take(void *self)
{
    return &((struct closer *)self)->message;
}

static inline void closer_message(void *self, void *owner,
                                  struct message *message)
{
    struct closer *closer = self;
    if (message->n_frames != 0)
        transport_release(message);
    if (owner == NULL)
        return;
    closer->n_heard++;
    for (size_t i = 0; i < N_LINKS; i++)
        transport_link_close(&closer->links[i], false);
}

#endif
