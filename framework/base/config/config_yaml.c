/* YAML into the tree. libfyaml gives events, and they make it: a mapping
 * begins, a word, a mapping ends. Its own documents are not used: they would
 * write out every alias before anyone could count (nine lines can mean a
 * billion values), and compare each key with each. Here an alias is copied
 * value by value, and the first one over the limit ends it. */
#include "config_parts.h"

#include <libfyaml.h>
#include <string.h>

/* A list or mapping that has begun. */
struct level {
    struct config_node *node;
    const char *key; /* of the value that is due; NULL: a key is due */
    bool merging;    /* the key is <<, without quotes */
    struct config_place key_place;
    struct config_node *merged; /* what << says, once its value is there */
};

struct anchor {
    const char *name;
    struct config_node *node;
};

struct builder {
    ls_config *config;
    const struct config_source *source;
    struct level levels[LS_CONFIG_DEPTH_MAX];
    size_t depth;
    struct config_place last; /* for events that have no place */
    size_t n_documents;
    struct config_node *root;
    struct anchor *anchors;
    size_t n_anchors;
    size_t anchors_capacity;
};

static bool is_quoted(enum fy_scalar_style style)
{
    return style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
}

/* libfyaml counts from 0, and puts a quoted text behind its quote. */
static struct config_place place_of(struct builder *builder,
                                    struct fy_event *event)
{
    const struct fy_mark *const mark = fy_event_start_mark(event);
    if (mark == NULL)
        return builder->last;
    struct config_place place = {builder->source, mark->line + 1,
                                 mark->column + 1};
    if (event->type == FYET_SCALAR && event->scalar.value != NULL &&
        is_quoted(fy_token_scalar_style(event->scalar.value)) &&
        place.column > 1)
        place.column--;
    builder->last = place;
    return place;
}

/* libfyaml 0.7.12 takes '''' for three quotes and cuts the text's end, and
 * loses memory over seven '' (libfyaml#233): these are read from the source. */
static int copy_single_quoted(struct builder *builder, struct fy_token *token,
                              const char **out)
{
    const struct fy_mark *const start = fy_token_start_mark(token);
    const struct fy_mark *const end = fy_token_end_mark(token);
    *out = ls_config_unquote(builder->config,
                             builder->source->text + start->input_pos,
                             end->input_pos - start->input_pos);
    return *out != NULL ? LS_OK : ls_config_no_memory();
}

static int copy_token(struct builder *builder, struct fy_token *token,
                      const char **out)
{
    if (token != NULL && fy_token_scalar_style(token) == FYSS_SINGLE_QUOTED)
        return copy_single_quoted(builder, token, out);
    size_t size = 0;
    const char *text = token != NULL ? fy_token_get_text(token, &size) : "";
    if (text == NULL)
        return ls_config_no_memory();
    if (size > 0 && memchr(text, '\0', size) != NULL)
        return ls_config_error(LS_ECONFIG, &builder->last,
                               "a text may not have a NUL inside");
    text = ls_config_copy(builder->config, text, size);
    if (text == NULL)
        return ls_config_no_memory();
    *out = text;
    return LS_OK;
}

static int note_anchor(struct builder *builder, struct fy_token *token,
                       struct config_node *node)
{
    if (token == NULL)
        return LS_OK;
    struct anchor *const anchors =
        ls_config_grow(builder->config, builder->anchors, builder->n_anchors,
                       &builder->anchors_capacity, sizeof *anchors);
    if (anchors == NULL)
        return ls_config_no_memory();
    builder->anchors = anchors;
    anchors[builder->n_anchors].node = node;
    const int status =
        copy_token(builder, token, &anchors[builder->n_anchors].name);
    if (status == LS_OK)
        builder->n_anchors++;
    return status;
}

static bool is_mapping_list(const struct config_node *node)
{
    if (node->kind != CONFIG_LIST)
        return false;
    for (size_t i = 0; i < node->n_entries; i++)
        if (node->entries[i].value->kind != CONFIG_MAPPING)
            return false;
    return true;
}

/* Put a value into the mapping; false in *added when the key is taken. */
static int add_pair(struct builder *builder, struct level *level,
                    struct config_node *value)
{
    const struct config_entry *const first =
        ls_config_find(level->node, level->key);
    if (first == NULL)
        return ls_config_add(builder->config, level->node, level->key,
                             &level->key_place, value);
    ls_config_note(builder->config, &level->key_place,
                   "duplicate key \"%s\"; the first is on line %d",
                   ls_config_quote(level->key).text, first->place.line);
    return LS_OK;
}

static int set_merged(struct level *level, struct config_node *value)
{
    if (level->merged != NULL)
        return ls_config_error(LS_ECONFIG, &level->key_place,
                               "a second << in a mapping; give it a list");
    level->merged = value;
    return LS_OK;
}

/* Put a value where the next one goes. */
static int place_value(struct builder *builder, struct config_node *value)
{
    if (builder->depth == 0) {
        builder->root = value;
        return LS_OK;
    }
    struct level *const level = &builder->levels[builder->depth - 1];
    if (level->node->kind == CONFIG_LIST)
        return ls_config_add(builder->config, level->node, NULL, &value->place,
                             value);
    if (level->key == NULL)
        return ls_config_error(LS_ECONFIG, &value->place,
                               "a key must be a word or a text");
    const int status = level->merging ? set_merged(level, value)
                                      : add_pair(builder, level, value);
    level->key = NULL;
    return status;
}

static int merge_mapping(struct builder *builder, struct config_node *into,
                         const struct config_node *from)
{
    int status = LS_OK;
    for (size_t i = 0; i < from->n_entries && status == LS_OK; i++) {
        const struct config_entry *const entry = &from->entries[i];
        if (ls_config_find(into, entry->key) == NULL)
            status = ls_config_add(builder->config, into, entry->key,
                                   &entry->place, entry->value);
    }
    return status;
}

/* At the end of a mapping, so that its own keys stand. */
static int merge(struct builder *builder, const struct level *level)
{
    const struct config_node *const merged = level->merged;
    if (merged == NULL)
        return LS_OK;
    if (merged->kind == CONFIG_MAPPING)
        return merge_mapping(builder, level->node, merged);
    if (!is_mapping_list(merged))
        return ls_config_error(LS_ECONFIG, &merged->place,
                               "<< takes a mapping, or a list of mappings");
    int status = LS_OK;
    for (size_t i = 0; i < merged->n_entries && status == LS_OK; i++)
        status = merge_mapping(builder, level->node, merged->entries[i].value);
    return status;
}

static int begin_level(struct builder *builder,
                       const struct config_place *place, enum config_kind kind,
                       struct fy_token *anchor)
{
    if (builder->depth >= LS_CONFIG_DEPTH_MAX)
        return ls_config_error(LS_ECONFIG, place, "nested over %d levels deep",
                               LS_CONFIG_DEPTH_MAX);
    struct config_node *node = NULL;
    int status = ls_config_new_node(builder->config, place, kind, &node);
    if (status == LS_OK)
        status = note_anchor(builder, anchor, node);
    if (status == LS_OK)
        status = place_value(builder, node);
    if (status == LS_OK)
        builder->levels[builder->depth++] = (struct level){.node = node};
    return status;
}

static bool key_is_due(const struct builder *builder)
{
    if (builder->depth == 0)
        return false;
    const struct level *const level = &builder->levels[builder->depth - 1];
    return level->node->kind == CONFIG_MAPPING && level->key == NULL;
}

static int take_key(struct builder *builder, const struct config_place *place,
                    const char *text, bool plain)
{
    if (plain && *text == '\0')
        return ls_config_error(LS_ECONFIG, place, "a key is missing here");
    struct level *const level = &builder->levels[builder->depth - 1];
    level->key = text;
    level->key_place = *place;
    level->merging = plain && strcmp(text, "<<") == 0;
    return LS_OK;
}

static int take_scalar(struct builder *builder, struct fy_event *event,
                       const struct config_place *place)
{
    struct fy_token *const token = event->scalar.value;
    const bool plain =
        token == NULL || fy_token_scalar_style(token) == FYSS_PLAIN;
    const char *text = NULL;
    int status = copy_token(builder, token, &text);
    if (status != LS_OK)
        return status;
    const bool is_key = key_is_due(builder);
    if (is_key && event->scalar.anchor == NULL)
        return take_key(builder, place, text, plain);

    struct config_node *node = NULL;
    status = ls_config_new_node(builder->config, place, CONFIG_TEXT, &node);
    if (status != LS_OK)
        return status;
    node->text = text;
    if (plain)
        ls_config_resolve(node);
    status = note_anchor(builder, event->scalar.anchor, node);
    if (status != LS_OK)
        return status;
    return is_key ? take_key(builder, place, text, plain)
                  : place_value(builder, node);
}

static bool is_open(const struct builder *builder,
                    const struct config_node *node)
{
    for (size_t i = 0; i < builder->depth; i++)
        if (builder->levels[i].node == node)
            return true;
    return false;
}

/* The last anchor of a name is the one that is meant. */
static int take_alias(struct builder *builder, struct fy_event *event,
                      const struct config_place *place)
{
    const char *name = NULL;
    int status = copy_token(builder, event->alias.anchor, &name);
    if (status != LS_OK)
        return status;
    struct config_node *target = NULL;
    for (size_t i = builder->n_anchors; i > 0 && target == NULL; i--)
        if (strcmp(builder->anchors[i - 1].name, name) == 0)
            target = builder->anchors[i - 1].node;
    if (target == NULL)
        return ls_config_error(
            LS_ECONFIG, place, "there is no &%s before this *%s",
            ls_config_quote(name).text, ls_config_quote(name).text);
    if (is_open(builder, target))
        return ls_config_error(
            LS_ECONFIG, place, "*%s is inside of its own &%s",
            ls_config_quote(name).text, ls_config_quote(name).text);
    struct config_node *copy = NULL;
    status = ls_config_copy_node(builder->config, target, place, builder->depth,
                                 &copy);
    return status == LS_OK ? place_value(builder, copy) : status;
}

static int begin_document(struct builder *builder)
{
    if (builder->n_documents++ == 0)
        return LS_OK;
    return ls_config_error(LS_ECONFIG, &builder->last,
                           "a second document begins after this; there is "
                           "one to a file");
}

static int refuse_tag(struct fy_event *event, const struct config_place *place)
{
    struct fy_token *tag = NULL;
    if (event->type == FYET_SCALAR)
        tag = event->scalar.tag;
    else if (event->type == FYET_MAPPING_START)
        tag = event->mapping_start.tag;
    else if (event->type == FYET_SEQUENCE_START)
        tag = event->sequence_start.tag;
    if (tag == NULL)
        return LS_OK;
    return ls_config_error(LS_ECONFIG, place,
                           "tags (!...) are not used; put text in quotes");
}

static int take_event(struct builder *builder, struct fy_event *event)
{
    const struct config_place place = place_of(builder, event);
    const int status = refuse_tag(event, &place);
    if (status != LS_OK)
        return status;
    switch (event->type) {
    case FYET_DOCUMENT_START:
        return begin_document(builder);
    case FYET_MAPPING_START:
        return begin_level(builder, &place, CONFIG_MAPPING,
                           event->mapping_start.anchor);
    case FYET_SEQUENCE_START:
        return begin_level(builder, &place, CONFIG_LIST,
                           event->sequence_start.anchor);
    case FYET_MAPPING_END:
        builder->depth--;
        return merge(builder, &builder->levels[builder->depth]);
    case FYET_SEQUENCE_END:
        builder->depth--;
        return LS_OK;
    case FYET_SCALAR:
        return take_scalar(builder, event, &place);
    case FYET_ALIAS:
        return take_alias(builder, event, &place);
    default:
        return LS_OK;
    }
}

/* What libfyaml says without a line: kept, not printed. */
struct loose_text {
    char text[200];
};

static void keep_loose_text(struct fy_diag *diag, void *user, const char *text,
                            size_t size)
{
    (void)diag;
    struct loose_text *const loose = user;
    if (loose->text[0] != '\0')
        return;
    const char *const label = "[ERR]: ";
    if (size > strlen(label) && memcmp(text, label, strlen(label)) == 0) {
        text += strlen(label);
        size -= strlen(label);
    }
    while (size > 0 && text[size - 1] == '\n')
        size--;
    snprintf(loose->text, sizeof loose->text, "%.*s",
             (int)(size < sizeof loose->text ? size : sizeof loose->text),
             text);
}

static struct fy_diag *create_diag(struct loose_text *loose)
{
    struct fy_diag_cfg settings;
    fy_diag_cfg_default(&settings);
    settings.fp = NULL;
    settings.output_fn = keep_loose_text;
    settings.user = loose;
    settings.colorize = false;
    struct fy_diag *const diag = fy_diag_create(&settings);
    if (diag != NULL)
        fy_diag_set_collect_errors(diag, true);
    return diag;
}

static int first_error(struct builder *builder, struct fy_diag *diag,
                       const struct loose_text *loose)
{
    void *iterator = NULL;
    const struct fy_diag_error *const error =
        fy_diag_errors_iterate(diag, &iterator);
    if (error == NULL)
        return ls_config_error(LS_ECONFIG, &builder->last, "not YAML: %s",
                               loose->text[0] != '\0' ? loose->text
                                                      : "it cannot be read");
    const struct config_place place = {builder->source,
                                       error->line > 0 ? error->line : 1,
                                       error->column > 0 ? error->column : 1};
    return ls_config_error(LS_ECONFIG, &place, "not YAML: %s", error->msg);
}

static int take_events(struct builder *builder, struct fy_parser *parser)
{
    int status = LS_OK;
    struct fy_event *event;
    while (status == LS_OK && (event = fy_parser_parse(parser)) != NULL) {
        status = take_event(builder, event);
        fy_parser_event_free(parser, event);
    }
    return status;
}

int ls_config_read_yaml(ls_config *config, const struct config_source *source,
                        struct config_node **out)
{
    int status = ls_config_check_text(source);
    if (status != LS_OK)
        return status;
    struct builder builder = {.config = config, .source = source};
    builder.last = (struct config_place){source, 1, 1};
    struct loose_text loose = {""};
    struct fy_diag *const diag = create_diag(&loose);
    const struct fy_parse_cfg settings = {
        .search_path = "",
        .flags = FYPCF_DEFAULT_PARSE | FYPCF_SLOPPY_FLOW_INDENTATION,
        .diag = diag};
    struct fy_parser *const parser =
        diag != NULL ? fy_parser_create(&settings) : NULL;
    if (parser == NULL ||
        fy_parser_set_string(parser, source->text, source->size) != 0) {
        status = ls_config_no_memory();
    } else {
        status = take_events(&builder, parser);
        if (status == LS_OK && fy_parser_get_stream_error(parser))
            status = first_error(&builder, diag, &loose);
    }
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    if (status == LS_OK)
        *out = builder.root;
    return status;
}
