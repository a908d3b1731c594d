/* Recordings as bytes: docs/trace-format.md. A binary of records of fixed size,
 * since a ring of a million records is read and written as one piece. */
#include <stdlib.h>
#include <string.h>

#include "lockstep/record.h"
#include "lockstep/trace.h"

enum { VERSION = 1, RECORD_BYTES = 48, HEADER_MAX = 1 << 18 };
#define FORMAT "lockstep-trace"

/* As on the wire. */
struct framed {
    char format[32];
    int64_t version;
    struct ls_trace_file file;
    struct ls_bytes records; /* own */
};

static bool is_clean(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            return false;
    return true;
}

static int check_text(const void *at)
{
    if (!is_clean(at))
        return ls_error(LS_EPROTO, "it has control characters");
    return LS_OK;
}

static int check_name(const void *at)
{
    const char *const name = *(char *const *)at;
    if (name == NULL || strlen(name) >= LS_TRACE_NAME_MAX || !is_clean(name))
        return ls_error(LS_EPROTO,
                        "a name must be text of less than %d bytes without "
                        "control characters",
                        LS_TRACE_NAME_MAX);
    return LS_OK;
}

#define IN(member) offsetof(struct framed, member)
#define TEXT(key, member)                                                      \
    {                                                                          \
        .name = (key), .type = LS_FIELD_CHARS, .offset = IN(member),           \
        .size = sizeof((struct framed *)NULL)->member, .check = check_text     \
    }

static const struct ls_field one_name = {.type = LS_FIELD_TEXT,
                                         .check = check_name};
static const struct ls_field fields[] = {
    TEXT("format", format),
    {.name = "version", .type = LS_FIELD_INT, .offset = IN(version)},
    TEXT("job", file.job),
    TEXT("role", file.role),
    {.name = "node", .type = LS_FIELD_UINT32, .offset = IN(file.node)},
    {.name = "incarnation",
     .type = LS_FIELD_UINT,
     .offset = IN(file.incarnation)},
    {.name = "now", .type = LS_FIELD_INT, .offset = IN(file.now_ns)},
    {.name = "wall", .type = LS_FIELD_INT, .offset = IN(file.wall_ns)},
    TEXT("reason", file.reason),
    {.name = "all", .type = LS_FIELD_BOOL, .offset = IN(file.all)},
    {.name = "lost", .type = LS_FIELD_UINT, .offset = IN(file.lost)},
    {.name = "unnamed", .type = LS_FIELD_UINT, .offset = IN(file.unnamed)},
    {.name = "names",
     .type = LS_FIELD_LIST,
     .offset = IN(file.names),
     .item = &one_name,
     .own = true,
     .count = IN(file.n_names),
     .least = 1,
     .most = LS_TRACE_NAMES_MAX},
    {.name = "records",
     .type = LS_FIELD_BYTES,
     .offset = IN(records),
     .most = (int64_t)LS_TRACE_RECORDS_MAX * RECORD_BYTES},
};
static const struct ls_record framed_record = {.name = "a recording",
                                               .size = sizeof(struct framed),
                                               .fields = fields,
                                               .n_fields = sizeof fields /
                                                           sizeof fields[0]};

static void put(unsigned char **at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (unsigned char)(value >> 8 * i);
}

static uint64_t get(const unsigned char **at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t) * (*at)++ << 8 * i;
    return value;
}

static void put_record(unsigned char *at, const struct ls_trace_record *record)
{
    put(&at, (uint64_t)record->begin_ns, 8);
    put(&at, (uint64_t)record->end_ns, 8);
    put(&at, record->number, 8);
    put(&at, record->size, 8);
    put(&at, record->peer, 4);
    put(&at, record->life, 4);
    put(&at, record->name, 2);
    put(&at, record->thread, 2);
    put(&at, record->kind, 1);
    put(&at, record->depth, 1);
    put(&at, 0, 2);
}

/* Returns what stands in the unused bytes. */
static uint64_t get_record(const unsigned char *at,
                           struct ls_trace_record *record)
{
    *record = (struct ls_trace_record){0};
    record->begin_ns = (int64_t)get(&at, 8);
    record->end_ns = (int64_t)get(&at, 8);
    record->number = get(&at, 8);
    record->size = get(&at, 8);
    record->peer = (uint32_t)get(&at, 4);
    record->life = (uint32_t)get(&at, 4);
    record->name = (uint16_t)get(&at, 2);
    record->thread = (uint16_t)get(&at, 2);
    record->kind = (uint8_t)get(&at, 1);
    record->depth = (uint8_t)get(&at, 1);
    return get(&at, 2);
}

static const char *wrong_with(const struct ls_trace_record *record,
                              const struct ls_trace_file *file)
{
    if (record->kind < LS_TRACE_FORWARD || record->kind >= LS_TRACE_KINDS)
        return "it is of no known kind";
    if (record->end_ns < record->begin_ns)
        return "it ends before it begins";
    if (record->name >= file->n_names || record->thread >= file->n_names)
        return "it has a name that is not in the table";
    return NULL;
}

static int check_records(const struct ls_trace_file *file, int status)
{
    for (size_t i = 0; i < file->n_records; i++) {
        const char *const wrong = wrong_with(&file->records[i], file);
        if (wrong != NULL)
            return ls_error(status, "a recording: record %zu: %s", i, wrong);
    }
    return LS_OK;
}

/* ---- writing ----------------------------------------------------------- */

static int check_file(const struct ls_trace_file *file)
{
    if (file->n_names < 1 || file->n_names > LS_TRACE_NAMES_MAX ||
        file->n_records > LS_TRACE_RECORDS_MAX)
        return ls_error(LS_EINVAL,
                        "a recording of %zu names and %zu records: there are 1 "
                        "to %d names, and %u records at most",
                        file->n_names, file->n_records, (int)LS_TRACE_NAMES_MAX,
                        (unsigned)LS_TRACE_RECORDS_MAX);
    for (size_t i = 0; i < file->n_names; i++)
        if (check_name(&file->names[i]) != LS_OK)
            return ls_error_at(LS_EINVAL, "a recording: name %zu", i);
    if (!is_clean(file->job) || !is_clean(file->role) ||
        !is_clean(file->reason))
        return ls_error(LS_EINVAL, "a recording: its job, role or reason has "
                                   "control characters");
    return check_records(file, LS_EINVAL);
}

static int write_framed(const struct framed *framed, void **data, size_t *size)
{
    ls_writer *writer = NULL;
    const void *bytes = NULL;
    size_t n = 0;
    int status = ls_writer_create(&writer);
    if (status == LS_OK) {
        ls_record_write(&framed_record, framed, writer);
        status = ls_writer_bytes(writer, &bytes, &n);
    }
    if (status == LS_OK) {
        void *const copy = malloc(n);
        if (copy != NULL) {
            memcpy(copy, bytes, n);
            *data = copy;
            *size = n;
        } else {
            status = ls_error(LS_ENOMEM, "no memory for a recording");
        }
    }
    ls_writer_destroy(&writer);
    return status;
}

int ls_trace_encode(const struct ls_trace_file *file, void **data, size_t *size)
{
    int status = check_file(file);
    if (status != LS_OK)
        return status;
    struct framed framed = {
        .format = FORMAT, .version = VERSION, .file = *file};
    framed.records.size = file->n_records * RECORD_BYTES;
    framed.records.data = malloc(framed.records.size + 1);
    if (framed.records.data == NULL)
        return ls_error(LS_ENOMEM, "no memory for a recording");
    for (size_t i = 0; i < file->n_records; i++)
        put_record((unsigned char *)framed.records.data + i * RECORD_BYTES,
                   &file->records[i]);
    status = write_framed(&framed, data, size);
    free(framed.records.data);
    return status;
}

/* ---- reading ----------------------------------------------------------- */

static int unpack(struct framed *framed)
{
    struct ls_trace_file *const file = &framed->file;
    const unsigned char *const data = framed->records.data;
    if (framed->records.size % RECORD_BYTES != 0)
        return ls_error(
            LS_EPROTO,
            "a recording: records: %zu bytes are not a multiple of %d",
            framed->records.size, RECORD_BYTES);
    const size_t n = framed->records.size / RECORD_BYTES;
    file->records = calloc(n + 1, sizeof *file->records);
    if (file->records == NULL)
        return ls_error(LS_ENOMEM, "no memory for %zu records", n);
    for (; file->n_records < n; file->n_records++)
        if (get_record(data + file->n_records * RECORD_BYTES,
                       &file->records[file->n_records]) != 0)
            return ls_error(LS_EPROTO,
                            "a recording: record %zu: its last bytes are not 0",
                            file->n_records);
    return check_records(file, LS_EPROTO);
}

static int check_version(const ls_value *root)
{
    const char *format = NULL;
    int64_t version = 0;
    if (ls_value_string(ls_value_get(root, "format"), &format) != LS_OK ||
        strcmp(format, FORMAT) != 0)
        return ls_error(LS_EPROTO, "a recording: its format is not " FORMAT);
    if (ls_value_int(ls_value_get(root, "version"), &version) != LS_OK)
        return ls_error_at(LS_EPROTO, "a recording: version");
    if (version != VERSION)
        return ls_error(LS_EMISMATCH,
                        "a recording of version %lld; this program reads "
                        "version %d",
                        (long long)version, VERSION);
    return LS_OK;
}

int ls_trace_decode(struct ls_trace_file *out, const void *data, size_t size)
{
    const struct ls_codec_limits limits = {
        (size_t)LS_TRACE_RECORDS_MAX * RECORD_BYTES + HEADER_MAX, 2,
        2 * (uint32_t)LS_TRACE_NAMES_MAX};
    ls_document *document = NULL;
    int status = ls_document_read(&document, data, size, &limits);
    if (status != LS_OK)
        return ls_error_at(status == LS_ELIMIT ? LS_EPROTO : status,
                           "a recording");
    struct framed framed;
    memset(&framed, 0, sizeof framed);
    status = check_version(ls_document_root(document));
    if (status == LS_OK)
        status =
            ls_record_read(&framed_record, &framed, ls_document_root(document));
    ls_document_destroy(&document);
    if (status == LS_OK)
        status = unpack(&framed);
    ls_bytes_clear(&framed.records);
    if (status == LS_OK)
        *out = framed.file;
    else
        ls_trace_clear(&framed.file);
    return status;
}

void ls_trace_clear(struct ls_trace_file *file)
{
    if (file == NULL)
        return;
    for (size_t i = 0; i < file->n_names; i++)
        free(file->names[i]);
    free(file->names);
    free(file->records);
    *file = (struct ls_trace_file){0};
}
