/* Addresses as text: which transport carries each, and what all transports read
 * in them. */
#define _GNU_SOURCE /* realpath */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport.h"

/* Outside of a simulation, whose network carries all of them. */
static const struct scheme {
    const char *prefix;
    const char *never; /* a character that none of its addresses has, or "" */
    bool in_process;
    const struct transport_ops *ops;
} schemes[] = {
    /* "tcp://source;destination" would hide where it leads. */
    {"tcp://", ";", false, &transport_zmq_ops},
    {"ipc://", "", false, &transport_zmq_ops},
    {"inproc://", "", true, &transport_zmq_ops},
};
#define N_SCHEMES (sizeof schemes / sizeof schemes[0])

static const struct scheme *begins_as(const char *endpoint)
{
    for (size_t i = 0; i < N_SCHEMES; i++)
        if (strncmp(endpoint, schemes[i].prefix, strlen(schemes[i].prefix)) ==
            0)
            return &schemes[i];
    return NULL;
}

static const struct scheme *scheme_of(const char *endpoint)
{
    const struct scheme *scheme = begins_as(endpoint);
    return scheme != NULL && strpbrk(endpoint, scheme->never) == NULL ? scheme
                                                                      : NULL;
}

int transport_find(const char *bind, const struct transport_ops **out)
{
    const struct scheme *scheme = begins_as(bind);
    char known[64] = "";
    for (size_t i = 0, n = 0; i < N_SCHEMES; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s",
                              n == 0 ? "" : ", ", schemes[i].prefix);
    if (scheme == NULL)
        return ls_error(LS_EINVAL, "cannot bind %s: it begins with none of %s",
                        bind, known);
    if (scheme_of(bind) == NULL)
        return ls_error(LS_EINVAL, "cannot bind %s: no %s address has a %s",
                        bind, scheme->prefix, scheme->never);
    *out = scheme->ops;
    return LS_OK;
}

bool transport_carries(const transport *t, const char *endpoint)
{
    const struct scheme *scheme = scheme_of(endpoint);
    return scheme != NULL &&
           (t->ops == &transport_sim_ops || t->ops == scheme->ops);
}

bool transport_in_process(const char *endpoint)
{
    const struct scheme *scheme = scheme_of(endpoint);
    return scheme != NULL && scheme->in_process;
}

static bool read_port(const char **text, unsigned *port)
{
    const size_t digits = strspn(*text, "0123456789");
    const unsigned long value = strtoul(*text, NULL, 10);
    *text += digits;
    *port = (unsigned)value;
    return digits != 0 && value >= 1 && value <= 65535;
}

bool transport_ports(const char *endpoint, unsigned *first, unsigned *last)
{
    const char *at = strrchr(endpoint, ':') + 1;
    *first = *last = 0;
    if (strcmp(at, "*") == 0 || strcmp(at, "0") == 0)
        return true;
    if (!read_port(&at, first))
        return false;
    *last = *first;
    if (*at == '-') {
        at++;
        if (!read_port(&at, last))
            return false;
    }
    return *at == '\0' && *first <= *last;
}

int transport_no_ports(const char *bind)
{
    return ls_error(LS_EINVAL,
                    "cannot bind %s: a port, 1 to 65535, comes after the last "
                    "colon, or two and a -, the lower first",
                    bind);
}

bool transport_can_dial(const transport *t, const char *endpoint)
{
    unsigned first, last;
    return transport_carries(t, endpoint) &&
           (strncmp(endpoint, "tcp://", 6) != 0 ||
            (transport_ports(endpoint, &first, &last) && first == last &&
             first != 0));
}

bool transport_tcp_host(const char *endpoint, char *host, size_t size)
{
    if (strncmp(endpoint, "tcp://", 6) != 0)
        return false;
    const char *at = endpoint + 6;
    const char *colon = strrchr(at, ':');
    size_t n = colon == NULL ? strlen(at) : (size_t)(colon - at);
    if (n >= 2 && at[0] == '[' && at[n - 1] == ']') {
        at++;
        n -= 2;
    }
    if (n >= size)
        n = size - 1;
    memcpy(host, at, n);
    host[n] = '\0';
    return true;
}

static bool is_loopback(const char *host)
{
    /* Digits, or it is a name, as 127.example.org, or libzmq's
     * "source;destination". */
    return (strncmp(host, "127.", 4) == 0 &&
            host[strspn(host, "0123456789.")] == '\0') ||
           strcmp(host, "localhost") == 0 || strcmp(host, "lo") == 0 ||
           strcmp(host, "::1") == 0;
}

bool transport_leaves_host(const char *endpoint)
{
    char host[LS_ENDPOINT_MAX + 1];
    return transport_tcp_host(endpoint, host, sizeof host) &&
           !is_loopback(host);
}

/* A socket file by its absolute path: its folder is there, the file itself need
 * not be. */
static bool canonical_file(const char *path, char *out)
{
    char folder[LS_ENDPOINT_MAX + 1];
    char *whole;
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    if (path[0] == '@')
        return false;
    snprintf(folder, sizeof folder, "%.*s",
             slash == NULL ? 1 : (int)(slash - path) + 1,
             slash == NULL ? "." : path);
    whole = realpath(folder, NULL);
    if (whole == NULL)
        return false;
    const int n = snprintf(out, LS_ENDPOINT_MAX + 1, "ipc://%s/%s",
                           strcmp(whole, "/") == 0 ? "" : whole, name);
    free(whole);
    return n > 0 && n <= LS_ENDPOINT_MAX;
}

void transport_canonical(const char *endpoint, char *out)
{
    char host[LS_ENDPOINT_MAX + 1];
    const char *colon = strrchr(endpoint, ':');
    if (strncmp(endpoint, "ipc://", 6) == 0 &&
        canonical_file(endpoint + 6, out))
        return;
    if (transport_tcp_host(endpoint, host, sizeof host) && colon != NULL &&
        (strcmp(host, "localhost") == 0 || strcmp(host, "lo") == 0))
        snprintf(out, LS_ENDPOINT_MAX + 1, "tcp://127.0.0.1%.*s",
                 LS_ENDPOINT_MAX - 15, colon);
    else
        snprintf(out, LS_ENDPOINT_MAX + 1, "%s", endpoint);
}
