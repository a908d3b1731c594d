/* Addresses as text: what both kinds of transport read in them. */
#include <stdio.h>
#include <string.h>

#include "transport.h"

bool transport_knows(const char *endpoint)
{
    return strncmp(endpoint, "tcp://", 6) == 0 ||
           strncmp(endpoint, "ipc://", 6) == 0 ||
           strncmp(endpoint, "inproc://", 9) == 0;
}

bool transport_port_range(const char *bind, char *host, size_t size,
                          unsigned *first, unsigned *last)
{
    const char *colon = strrchr(bind, ':');
    const size_t n = colon == NULL ? 0 : (size_t)(colon - bind);
    if (strncmp(bind, "tcp://", 6) != 0 || n < 6 || n >= size)
        return false;
    char rest;
    if (sscanf(colon + 1, "%5u-%5u%c", first, last, &rest) != 2)
        return false;
    memcpy(host, bind, n);
    host[n] = '\0';
    return true;
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
