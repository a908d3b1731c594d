#include "transport.h"

#include "runtime_network.h"

int transport_open(transport **out, const struct transport_options *options,
                   char *endpoint)
{
    const struct transport_ops *ops;
    const int status = transport_find(options->bind, &ops);
    if (status != LS_OK)
        return status;
    if (ls_runtime_network(options->runtime) != NULL)
        ops = &transport_sim_ops;
    return ops->open(out, options, endpoint);
}

void transport_close(transport **t)
{
    if (t == NULL || *t == NULL)
        return;
    (*t)->ops->close(*t);
    *t = NULL;
}

int transport_link_connect(transport_link *link, const char *endpoint,
                           bool known, uint32_t id)
{
    if (!transport_can_dial(link->transport, endpoint))
        return ls_error(LS_EINVAL, "\"%s\" is not an address to attach to",
                        endpoint);
    return link->transport->ops->link_connect(link, endpoint, known, id);
}

void transport_link_close(transport_link **link, bool linger)
{
    if (link == NULL || *link == NULL)
        return;
    (*link)->transport->ops->link_close(*link, linger);
    *link = NULL;
}

int transport_probe(transport *t, const char *endpoint)
{
    if (!transport_can_dial(t, endpoint))
        return ls_error(LS_EINVAL, "\"%s\" is not an address to probe",
                        endpoint);
    return t->ops->probe(t, endpoint);
}

bool transport_explain(transport *t, const char *endpoint, bool known,
                       uint32_t id, char *text, size_t size)
{
    text[0] = '\0';
    return transport_carries(t, endpoint) &&
           t->ops->explain(t, endpoint, known, id, text, size);
}
