/* The middleware that keeps the context in a file. */
#include "lockstep/middleware.h"

#include <stdlib.h>
#include <string.h>

#include "factory.h"
#include "lockstep/file.h"
#include "word_list.h"

/* No context is larger; what a file has beyond is not a context. */
static const struct ls_codec_limits LIMITS = {(size_t)1 << 30, 32, UINT32_MAX};

struct save {
    ls_context *context; /* borrow */
    ls_writer *writer;   /* own */
    char *words;         /* own; the names point into it */
    const char **names;  /* own; n of them; 0: all */
    size_t n;
    unsigned every, since;
    char path[LS_PATH_MAX], temporary[LS_PATH_MAX];
};

static int save(struct save *self)
{
    struct ls_file_part part;
    ls_writer_clear(self->writer);
    int status =
        ls_context_write(self->context, self->names, self->n, self->writer);
    if (status == LS_OK)
        status = ls_writer_bytes(self->writer, &part.data, &part.size);
    if (status == LS_OK)
        status = ls_file_replace(self->path, self->temporary, &part, 1, true);
    self->since = 0;
    return status;
}

static int save_step(ls_step *step, void *state)
{
    struct save *self = state;
    const int status = ls_yield(step);
    if (status != LS_OK || self->every == 0 || ++self->since < self->every)
        return status;
    return save(self);
}

static int finish(void *state, ls_task *task, int status)
{
    (void)task;
    (void)status; /* what a run that failed came to is kept as well */
    return save(state);
}

static void release(void *state)
{
    struct save *self = state;
    ls_writer_destroy(&self->writer);
    free(self->words);
    free(self->names);
    free(self);
}

static int read_back(const struct save *self)
{
    void *data;
    size_t size;
    ls_document *document = NULL;
    int status = ls_file_read(self->path, LIMITS.max_bytes, &data, &size);
    if (status != LS_OK)
        return status == LS_ENOENT ? LS_OK : status;
    status = ls_document_read(&document, data, size, &LIMITS);
    if (status == LS_OK)
        status = ls_context_read(self->context, ls_document_root(document));
    ls_document_destroy(&document);
    free(data);
    return status == LS_OK ? LS_OK : ls_error_at(status, "%s", self->path);
}

static int name_fields(struct save *self, const char *fields)
{
    size_t size;
    const char *word;
    int status = ls_text_set(&self->words, fields);
    self->names = calloc(strlen(fields) / 2 + 1, sizeof *self->names);
    if (status == LS_OK && self->names == NULL)
        status = ls_error(LS_ENOMEM, "no memory");
    const char *list = self->words;
    while (status == LS_OK && (word = word_list_next(&list, &size)) != NULL) {
        self->names[self->n++] = word;
        list += *list != '\0';
        self->words[word - self->words + (ptrdiff_t)size] = '\0';
    }
    if (status == LS_OK && self->n == 0)
        status = ls_error(LS_EINVAL, "`fields` names none");
    return status;
}

static int set_path(struct save *self, const char *path)
{
    char unique[LS_FILE_UNIQUE_MAX];
    ls_file_unique(unique);
    if (path == NULL || path[0] == '\0')
        return ls_error(LS_EINVAL, "it needs the path of a file");
    (void)snprintf(self->path, sizeof self->path, "%s", path);
    const int n = snprintf(self->temporary, sizeof self->temporary, "%s.%s",
                           path, unique);
    return n < (int)sizeof self->temporary
               ? LS_OK
               : ls_error(LS_ELIMIT, "the path is too long: %.64s…", path);
}

/* A name that is not a field is found by writing. */
static int init(struct save *self, const struct ls_save_options *options)
{
    int status = set_path(self, options->path);
    if (status == LS_OK)
        status = ls_writer_create(&self->writer);
    if (status == LS_OK && options->fields != NULL)
        status = name_fields(self, options->fields);
    if (status == LS_OK)
        status =
            ls_context_write(self->context, self->names, self->n, self->writer);
    return status == LS_OK && options->resume ? read_back(self) : status;
}

struct ls_middleware ls_mw_save(ls_task *task,
                                const struct ls_save_options *options)
{
    static const char name[] = "save";
    struct save *self = calloc(1, sizeof *self);
    if (self == NULL)
        return middleware_failed(name, ls_error(LS_ENOMEM, "no memory"));
    self->context = ls_task_context(task);
    self->every = options->every;
    const int status = init(self, options);
    if (status != LS_OK) {
        release(self);
        return middleware_failed(name, status);
    }
    return (struct ls_middleware){.name = name,
                                  .fn = save_step,
                                  .self = self,
                                  .release = release,
                                  .finish = finish};
}
