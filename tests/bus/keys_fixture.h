/* keys_fixture.h - a folder of certificates for each test. */
#ifndef LOCKSTEP_TESTS_BUS_KEYS_FIXTURE_H
#define LOCKSTEP_TESTS_BUS_KEYS_FIXTURE_H

#include <czmq.h>
#include <sodium.h>

#include "certificate.h"
#include "keyring_folder.h"
#include "lockstep/node.h"
#include "security_fixture.h"

#define OWN 3
/* A key of nobody: from zmq_curve(7). */
#define KEY "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"

static inline struct path keys(const struct scratch *scratch, const char *name)
{
    struct path path;
    (void)snprintf(path.text, sizeof path.text, "%s/keys%s%s", scratch->folder,
                   name[0] != '\0' ? "/" : "", name);
    return path;
}

static inline void make(const struct scratch *scratch, uint32_t id)
{
    if (ls_keys_create(keys(scratch, "").text, id, NULL, NULL) != LS_OK)
        fail_msg("%s", ls_error_text());
}

/* Where a node listens, and attaches. */
struct ends {
    char bind[LS_ENDPOINT_MAX + 1], attach[LS_ENDPOINT_MAX + 1];
    const char *attached;
};

/* Of a node that listens in the folder of the test, and attaches to OWN there,
 * if it is not that. ends: filled; as long as the options. */
static inline struct ls_node_options by_ipc(const struct scratch *scratch,
                                            uint32_t id, ls_security *security,
                                            struct ends *ends)
{
    struct ls_node_options options;
    (void)snprintf(ends->bind, sizeof ends->bind, "ipc://%s/%u.ipc",
                   scratch->folder, (unsigned)id);
    (void)snprintf(ends->attach, sizeof ends->attach, "%d@ipc://%s/%d.ipc", OWN,
                   scratch->folder, OWN);
    ends->attached = ends->attach;
    ls_node_options_init(&options);
    options.id = id;
    options.bind = ends->bind;
    options.attach = &ends->attached;
    options.n_attach = id != OWN;
    options.security = security;
    options.start_timeout_ms = 30000;
    options.linger_ms = 0;
    return options;
}

/* Certificates of nodes 3 and 4. */
static inline int keys_set_up(void **state)
{
    (void)scratch_set_up(state);
    make(*state, OWN);
    make(*state, 4);
    return 0;
}

static inline ls_security *open_keys(const struct scratch *scratch)
{
    ls_security *security = NULL;
    if (ls_security_curve(&security, keys(scratch, "").text, OWN) != LS_OK)
        fail_msg("%s", ls_error_text());
    return security;
}

static inline void open_fails(const struct scratch *scratch, int wanted,
                              const char *word)
{
    ls_security *security = NULL;
    failed(ls_security_curve(&security, keys(scratch, "").text, OWN), wanted,
           word);
    assert_null(security);
}

static inline bool knows(ls_security *security, uint32_t id)
{
    char key[CREDENTIALS_KEY_MAX];
    const int status = credentials_server_key(security, id, key);
    assert_true(status == LS_OK || status == LS_ENOENT);
    return status == LS_OK;
}

/* Its keys and metadata, as CZMQ reads them. */
static inline zcert_t *load(const struct scratch *scratch, const char *name)
{
    zcert_t *cert = zcert_load(keys(scratch, name).text);
    assert_non_null(cert);
    return cert;
}

static inline void copy_file(const char *from, const char *to)
{
    char text[CERTIFICATE_MAX];
    const size_t size = read_file(from, text, sizeof text);
    write_file(to, text, size, 0644);
}

/* A text with one part of it replaced. */
static inline void edit_file(const char *path, const char *was, const char *is)
{
    char text[CERTIFICATE_MAX], edited[CERTIFICATE_MAX];
    (void)read_file(path, text, sizeof text);
    const mode_t mode = mode_of(path);
    char *at = strstr(text, was);
    assert_non_null(at);
    *at = '\0';
    (void)snprintf(edited, sizeof edited, "%s%s%s", text, is, at + strlen(was));
    write_file(path, edited, strlen(edited), mode);
}

#endif
