/* Certificates for the nodes of a job, made and written. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>

#include "certificate.h"
#include "guarded.h"

#define MODE_SECRET (S_IRUSR | S_IWUSR)
#define MODE_PUBLIC (S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH)

static int set_word(char *out, bool *has, const char *text, size_t max,
                    const char *what)
{
    *has = text != NULL;
    if (text == NULL)
        return LS_OK;
    if (!wire_word_valid(text, max, "._-,"))
        return ls_error(LS_EINVAL,
                        "%s \"%s\": it must be at most %zu of A-Z "
                        "a-z 0-9 . _ - ,",
                        what, text, max);
    memcpy(out, text, strlen(text) + 1);
    return LS_OK;
}

static int write_file(const struct guarded_folder *folder, const char *name,
                      const struct certificate *certificate,
                      const struct certificate_secret *secret)
{
    char text[CERTIFICATE_MAX];
    const size_t size = certificate_write(certificate, secret, text);
    const int status = guarded_create(
        folder, name, secret != NULL ? MODE_SECRET : MODE_PUBLIC, text, size);
    sodium_memzero(text, sizeof text);
    return status;
}

/* The secret file first: a certificate that others may have copied by now must
 * not be of a key that nobody has. */
static int write_files(const struct guarded_folder *folder, const char *name,
                       struct certificate *certificate)
{
    char secret_name[80];
    (void)snprintf(secret_name, sizeof secret_name, "%s_secret", name);
    struct certificate_secret secret;
    int status = certificate_make(certificate, &secret);
    if (status != LS_OK)
        return status;
    status = write_file(folder, secret_name, certificate, &secret);
    sodium_memzero(&secret, sizeof secret);
    if (status != LS_OK)
        return status;
    status = write_file(folder, name, certificate, NULL);
    if (status != LS_OK)
        guarded_remove(folder, secret_name);
    return status;
}

static int create(const char *path, const char *name,
                  struct certificate *certificate)
{
    if (sodium_init() < 0)
        return ls_error(LS_EIO, "libsodium finds no source of random numbers");
    struct guarded_folder folder;
    int status = guarded_open(&folder, path, GUARD_WRITING, true);
    if (status == LS_OK)
        status = write_files(&folder, name, certificate);
    guarded_close(&folder);
    return status;
}

int ls_keys_create(const char *folder, uint32_t id, const char *role,
                   const char *labels)
{
    char name[64];
    struct certificate certificate = {.id = id};
    int status = set_word(certificate.role, &certificate.has_role, role,
                          WIRE_ROLE_MAX, "role");
    if (status == LS_OK)
        status = set_word(certificate.labels, &certificate.has_labels, labels,
                          WIRE_LABELS_MAX, "labels");
    if (status != LS_OK)
        return status;
    (void)snprintf(name, sizeof name, "node-%" PRIu32 ".cert", id);
    return create(folder, name, &certificate);
}

int ls_keys_create_enrolment(const char *folder)
{
    struct certificate certificate = {.enrolment = true};
    return create(folder, ENROLMENT_FILE, &certificate);
}
