/* Where each node listens, and whom it attaches to. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "plan.h"
#include "plan_keys.h"

static const char *const schemes[] = {"tcp://", "ipc://", "inproc://"};

/* Digits and nothing else: strtoul() alone takes blanks and a sign as well. */
static int read_port(const char **text)
{
    const size_t digits = strspn(*text, "0123456789");
    const unsigned long port = strtoul(*text, NULL, 10);
    const bool good = digits > 0 && port <= 65535;
    *text += digits;
    return good ? (int)port : 0;
}

bool plan_read_ports(const char *text, int *first, int *last)
{
    *last = *first = read_port(&text);
    if (*text == '-') {
        text++;
        *last = read_port(&text);
    }
    return *text == '\0' && *first > 0 && *first <= *last;
}

static const char *tcp_fault(const char *address, bool listen)
{
    const char *colon = strrchr(address, ':');
    if (colon == NULL || colon == address)
        return "expected tcp://HOST:PORT";
    if (memchr(address, ':', (size_t)(colon - address)) != NULL &&
        (address[0] != '[' || colon[-1] != ']'))
        return "an IPv6 address is in brackets, as in tcp://[::1]:21500";
    const size_t digits = strspn(colon + 1, "0123456789");
    int first, last;
    if (digits == 0)
        return "expected a port after the last colon";
    if (colon[1 + digits] == '-' && !listen)
        return "a range of ports is for bind only: name the one to dial";
    return plan_read_ports(colon + 1, &first, &last)
               ? NULL
               : "ports go from 1 to 65535";
}

static const char *ipc_fault(const char *path)
{
    const struct sockaddr_un *address = NULL;
    return strlen(path) >= sizeof address->sun_path
               ? "the path of a socket has at most 107 bytes"
               : NULL;
}

const char *plan_endpoint_fault(const char *endpoint, bool listen)
{
    if (strlen(endpoint) > LS_ENDPOINT_MAX)
        return "it is too long: at most 255 bytes";
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        const size_t length = strlen(schemes[i]);
        if (strncmp(endpoint, schemes[i], length) != 0)
            continue;
        if (i == 0)
            return tcp_fault(endpoint + length, listen);
        if (endpoint[length] == '\0')
            return "a name must follow the slashes";
        return i == 1 ? ipc_fault(endpoint + length) : NULL;
    }
    return "expected tcp://HOST:PORT, ipc://PATH or inproc://NAME";
}

const char *plan_address_endpoint(const char *address)
{
    const size_t digits = strspn(address, "0123456789");
    return digits > 0 && address[digits] == '@' ? address + digits + 1
                                                : address;
}

const char *plan_address_fault(const char *address)
{
    const char *endpoint = plan_address_endpoint(address);
    if (endpoint != address &&
        (endpoint - address > 11 || strtoull(address, NULL, 10) > UINT32_MAX))
        return "the id before @ is larger than any node's";
    return plan_endpoint_fault(endpoint, false);
}

bool plan_endpoint_is_local(const char *endpoint)
{
    static const char *const local[] = {"ipc://", "inproc://", "tcp://127.",
                                        "tcp://localhost:", "tcp://[::1]:"};
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        if (strncmp(endpoint, local[i], strlen(local[i])) == 0)
            return true;
    }
    return false;
}

const char *plan_endpoint_everywhere(const char *endpoint)
{
    return strncmp(endpoint, "tcp://[", 7) == 0 ? "tcp://[::]"
                                                : "tcp://0.0.0.0";
}

int plan_put_endpoint(char *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int n = vsnprintf(to, LS_ENDPOINT_MAX + 1, format, arguments);
    va_end(arguments);
    if (n < 0 || n > LS_ENDPOINT_MAX)
        return ls_error(LS_ECONFIG, "the endpoint %s… is longer than %d bytes",
                        to, LS_ENDPOINT_MAX);
    return LS_OK;
}

static int default_bind(const struct plan *plan, const struct plan_node *node,
                        const char *dir, char *out)
{
    switch (plan->world.transport) {
    case PLAN_IPC:
        return plan_put_endpoint(out, "ipc://%s/%s-%u.ipc",
                                 dir != NULL ? dir : "/tmp", plan->job,
                                 (unsigned)node->id);
    case PLAN_INPROC:
        return plan_put_endpoint(out, "inproc://%s-%u", plan->job,
                                 (unsigned)node->id);
    case PLAN_TCP:
        break;
    }
    return plan_put_endpoint(out, "tcp://127.0.0.1:%d-%d",
                             plan->world.first_port, plan->world.last_port);
}

bool plan_is_visible(const char *text)
{
    while (*text > ' ' && *text <= '~')
        text++;
    return *text == '\0';
}

const char *plan_password_fault(const struct plan *plan, const char *endpoint)
{
    return plan->security.mode != LS_SECURITY_PLAIN || plan_is_visible(endpoint)
               ? NULL
               : "an address has no blanks, and nothing but ASCII, where nodes "
                 "show a secret";
}

void plan_check_dir(const struct plan *plan, ls_config_section *world)
{
    char bind[LS_ENDPOINT_MAX + 1];
    const char *fault = NULL;
    if (plan->world.transport != PLAN_IPC || plan->world.dir == NULL)
        return;
    for (size_t i = 0; i < plan->n_nodes && fault == NULL; i++) {
        const struct plan_node *node = &plan->nodes[i];
        if (node->bind[0] != '\0' || node->host[0] != '\0')
            continue;
        fault = default_bind(plan, node, plan->world.dir, bind) == LS_OK
                    ? plan_endpoint_fault(bind, true)
                    : ipc_fault(plan->world.dir);
        if (fault == NULL)
            fault = plan_password_fault(plan, bind);
        if (fault != NULL)
            ls_config_problem(world, "dir", "\"%s\": %s", bind, fault);
    }
}

bool plan_host_is_own(const struct plan_node *node)
{
    return strcmp(node->host, "{hostname}") == 0;
}

/* Where others can dial a node without having heard of it; "" when that shows
 * only once it runs. */
static int known_address(const struct plan *plan, const struct plan_node *node,
                         char *out)
{
    if (plan_host_is_own(node)) {
        out[0] = '\0';
        return LS_OK;
    }
    if (node->host[0] != '\0')
        return plan_put_endpoint(out, "tcp://%s:%d", node->host, node->port);
    if (node->advertise[0] != '\0')
        return plan_put_endpoint(out, "%s", node->advertise);
    const bool anywhere = strncmp(node->bind, "tcp://0.", 8) == 0 ||
                          strncmp(node->bind, "tcp://[::]", 10) == 0 ||
                          strncmp(node->bind, "tcp://*", 7) == 0;
    if (node->bind[0] != '\0' && !anywhere &&
        plan_endpoint_fault(node->bind, false) == NULL)
        return plan_put_endpoint(out, "%s", node->bind);
    if (node->bind[0] == '\0' && plan->world.transport == PLAN_IPC)
        return default_bind(plan, node, plan->world.dir, out);
    out[0] = '\0';
    return LS_OK;
}

void plan_put_address(const struct plan *plan, size_t index,
                      const char *endpoint, char out[PLAN_ADDRESS_MAX])
{
    if (plan_has_keys(plan))
        (void)snprintf(out, PLAN_ADDRESS_MAX, "%u@%s",
                       (unsigned)plan->nodes[index].id, endpoint);
    else
        (void)snprintf(out, PLAN_ADDRESS_MAX, "%s", endpoint);
}

int plan_copy_address(const struct plan *plan, const char *address,
                      char out[PLAN_ADDRESS_MAX])
{
    char known[LS_ENDPOINT_MAX + 1];
    if (strlen(plan_address_endpoint(address)) > LS_ENDPOINT_MAX)
        return ls_error(LS_ECONFIG,
                        "the endpoint %.80s… is longer than %d bytes", address,
                        LS_ENDPOINT_MAX);
    (void)snprintf(out, PLAN_ADDRESS_MAX, "%s", address);
    if (!plan_has_keys(plan) || plan_address_endpoint(address) != address)
        return LS_OK;
    for (size_t i = 0; i < plan->n_nodes; i++) {
        const int status = known_address(plan, &plan->nodes[i], known);
        if (status != LS_OK)
            return status;
        if (strcmp(known, address) != 0)
            continue;
        plan_put_address(plan, i, address, out);
        return LS_OK;
    }
    return ls_error(LS_ECONFIG,
                    "%s: with keys, say which node is at %s: its id and @ "
                    "before it, as in %u@%s",
                    plan->path, address, (unsigned)plan->nodes[plan->first].id,
                    address);
}

static int copy_attach(const struct plan *plan, const struct plan_node *node,
                       struct plan_endpoints *out)
{
    int status = LS_OK;
    for (size_t i = 0; i < node->n_attach && status == LS_OK; i++)
        status = plan_copy_address(plan, node->attach[i],
                                   out->attach[out->n_attach++]);
    return status;
}

int plan_endpoints_here(const struct plan *plan, size_t index,
                        const char *first, const char *dir,
                        struct plan_endpoints *out)
{
    const struct plan_node *node = &plan->nodes[index];
    memset(out, 0, sizeof *out);
    int status = node->bind[0] != '\0'
                     ? plan_put_endpoint(out->bind, "%s", node->bind)
                     : default_bind(plan, node, dir, out->bind);
    if (status == LS_OK)
        status = plan_put_endpoint(out->advertise, "%s", node->advertise);
    if (status == LS_OK)
        status = copy_attach(plan, node, out);
    if (status == LS_OK && out->n_attach == 0 && first != NULL)
        plan_put_address(plan, plan->first, first,
                         out->attach[out->n_attach++]);
    return status;
}

/* At the address of its host, or, beyond this machine, at all that it has. */
static int put_host(const struct plan_node *node, struct plan_endpoints *out)
{
    char own[LS_ENDPOINT_MAX + 1];
    const char *host = node->host;
    if (plan_host_is_own(node)) {
        if (gethostname(own, sizeof own) < 0)
            return ls_error_from(errno, "the name of this host");
        own[sizeof own - 1] = '\0';
        host = own;
    }
    const int status =
        plan_put_endpoint(out->advertise, "tcp://%s:%d", host, node->port);
    if (status != LS_OK)
        return status;
    if (!plan_endpoint_is_local(out->advertise))
        return plan_put_endpoint(out->bind, "%s:%d",
                                 plan_endpoint_everywhere(out->advertise),
                                 node->port);
    return plan_put_endpoint(
        out->bind, "tcp://%s:%d",
        strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, node->port);
}

int plan_endpoints_alone(const struct plan *plan, size_t index,
                         struct plan_endpoints *out)
{
    const struct plan_node *node = &plan->nodes[index];
    memset(out, 0, sizeof *out);
    int status = LS_OK;
    if (node->host[0] != '\0') {
        status = put_host(node, out);
    } else {
        status = node->bind[0] != '\0'
                     ? plan_put_endpoint(out->bind, "%s", node->bind)
                     : default_bind(plan, node, plan->world.dir, out->bind);
        if (status == LS_OK)
            status = plan_put_endpoint(out->advertise, "%s", node->advertise);
    }
    if (status == LS_OK)
        status = copy_attach(plan, node, out);
    if (status != LS_OK || out->n_attach > 0 || index == plan->first)
        return status;
    char first[LS_ENDPOINT_MAX + 1];
    status = known_address(plan, &plan->nodes[plan->first], first);
    if (status == LS_OK && first[0] != '\0')
        plan_put_address(plan, plan->first, first,
                         out->attach[out->n_attach++]);
    return status;
}
