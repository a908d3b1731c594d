/* transport_fixture.h - a transport by itself. */
#ifndef TRANSPORT_FIXTURE_H
#define TRANSPORT_FIXTURE_H

#include "transport.h"

/* Of node 1, which asks nobody who he is. security: borrow; NULL: in a
 * simulation. */
static inline int open_transport(transport **out, ls_runtime *runtime,
                                 const char *bind, ls_security *security,
                                 char *endpoint)
{
    return transport_open(
        out,
        &(struct transport_options){.runtime = runtime,
                                    .bind = bind,
                                    .advertise = "",
                                    .id = 1,
                                    .incarnation = 1,
                                    .security = security,
                                    .max_message_bytes = 1u << 20,
                                    .max_under_way = 1u << 15,
                                    .linger_ms = 0},
        endpoint);
}

#endif
