#include "access.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <czmq.h>

#include "lockstep/runtime.h"

struct access {
    ls_mutex lock;
    zhashx_t *allowed; /* own; addresses in their one form */
    zhashx_t *denied;  /* own; the same */
};

/* One text for each address. */
struct address {
    char text[INET6_ADDRSTRLEN];
};

int access_create(struct access **out)
{
    struct access *access = calloc(1, sizeof *access);
    if (access == NULL)
        return ls_error(LS_ENOMEM, "no memory for lists of addresses");
    const int status = ls_mutex_init(&access->lock, ls_runtime_threads());
    if (status != LS_OK) {
        free(access);
        return status;
    }
    access->allowed = zhashx_new();
    access->denied = zhashx_new();
    *out = access;
    return LS_OK;
}

void access_destroy(struct access **access)
{
    if (access == NULL || *access == NULL)
        return;
    zhashx_destroy(&(*access)->allowed);
    zhashx_destroy(&(*access)->denied);
    ls_mutex_fini(&(*access)->lock);
    free(*access);
    *access = NULL;
}

/* A socket that takes both families shows an IPv4 peer as ::ffff:10.0.0.1. */
static void write_ipv6(const struct in6_addr *ipv6, struct address *out)
{
    const bool mapped = IN6_IS_ADDR_V4MAPPED(ipv6);
    (void)inet_ntop(mapped ? AF_INET : AF_INET6,
                    mapped ? (const void *)(ipv6->s6_addr + 12) : ipv6,
                    out->text, sizeof out->text);
}

static bool read_address(const char *text, struct address *out)
{
    struct in6_addr ipv6;
    struct in_addr ipv4;
    char bare[INET6_ADDRSTRLEN];
    const size_t length = strcspn(text, "%");
    if (length >= sizeof bare)
        return false;
    memcpy(bare, text, length);
    bare[length] = '\0';
    if (text[0] == '\0')
        out->text[0] = '\0';
    else if (inet_pton(AF_INET, text, &ipv4) == 1)
        (void)inet_ntop(AF_INET, &ipv4, out->text, sizeof out->text);
    else if (inet_pton(AF_INET6, bare, &ipv6) == 1)
        write_ipv6(&ipv6, out);
    else
        return false;
    return true;
}

static int put(struct access *access, zhashx_t *list, const char *text)
{
    struct address address;
    if (text == NULL || !read_address(text, &address))
        return ls_error(LS_EINVAL,
                        "\"%s\" is no IPv4 or IPv6 address, as in 10.0.0.7 or "
                        "fd00::7; names of hosts are not looked up",
                        text != NULL ? text : "(null)");
    ls_mutex_lock(&access->lock);
    zhashx_update(list, address.text, access); /* any item but NULL */
    ls_mutex_unlock(&access->lock);
    return LS_OK;
}

int access_allow(struct access *access, const char *address)
{
    return put(access, access->allowed, address);
}

int access_deny(struct access *access, const char *address)
{
    return put(access, access->denied, address);
}

bool access_admits(struct access *access, const char *text)
{
    struct address address;
    const bool known = read_address(text, &address);
    ls_mutex_lock(&access->lock);
    const bool denied =
        known && zhashx_lookup(access->denied, address.text) != NULL;
    const bool allowed =
        zhashx_size(access->allowed) == 0 ||
        (known && zhashx_lookup(access->allowed, address.text) != NULL);
    ls_mutex_unlock(&access->lock);
    return allowed && !denied;
}
