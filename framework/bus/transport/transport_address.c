/* Addresses as text: what both kinds of transport read in them. */
#define _GNU_SOURCE /* realpath */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport.h"

bool transport_knows(const char *endpoint)
{
    /* "tcp://source;destination" would hide where it leads. */
    return (strncmp(endpoint, "tcp://", 6) == 0 &&
            strchr(endpoint, ';') == NULL) ||
           strncmp(endpoint, "ipc://", 6) == 0 ||
           strncmp(endpoint, "inproc://", 9) == 0;
}

bool transport_in_process(const char *endpoint)
{
    return strncmp(endpoint, "inproc://", 9) == 0;
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
