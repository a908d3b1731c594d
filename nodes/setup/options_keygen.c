/* What `lockstep keygen` takes. */
#include "options_parts.h"

int options_keygen_id(struct options *out, const char *text)
{
    uint64_t id;
    const int status = options_whole("--id", text, 0, UINT32_MAX, &id);
    if (status != LS_OK)
        return status;
    for (size_t i = 0; i < out->n_ids; i++)
        if (out->ids[i] == id)
            return ls_error(LS_EINVAL, "--id %s: it is given twice", text);
    if (out->n_ids == OPTIONS_REPEATS_MAX)
        return ls_error(LS_EINVAL, "--id: at most %d of them",
                        OPTIONS_REPEATS_MAX);
    out->ids[out->n_ids++] = (uint32_t)id;
    return LS_OK;
}

int options_keygen_word(struct options *out, const char *text)
{
    if (out->folder != NULL && out->config != NULL)
        return ls_error(LS_EINVAL,
                        "\"%s\" is one word too many: there is one folder and "
                        "one configuration",
                        text);
    *(out->folder == NULL ? &out->folder : &out->config) = text;
    return LS_OK;
}

int options_keygen_complete(const struct options *options)
{
    if (options->folder == NULL)
        return ls_error(LS_EINVAL, "which folder? As in: lockstep keygen keys "
                                   "--id 3");
    if (options->config == NULL && options->n_ids == 0 && !options->enrolment)
        return ls_error(LS_EINVAL,
                        "keys for which nodes? As in: lockstep keygen %s "
                        "--id 3, or lockstep keygen %s job.yaml",
                        options->folder, options->folder);
    if (options->config == NULL && options->n_sets > 0)
        return ls_error(LS_EINVAL,
                        "--set %s is for a configuration: name it, as in "
                        "lockstep keygen %s job.yaml",
                        options->sets[0].path, options->folder);
    return LS_OK;
}
