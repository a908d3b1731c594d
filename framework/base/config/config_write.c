/* A configuration, or a section of it, as one value: JSON to msgpack. */
#include "lockstep/codec.h"

#include "config_parts.h"

static void write_node(const struct config_node *node, ls_writer *out)
{
    switch (node->kind) {
    case CONFIG_NULL:
        ls_write_nil(out);
        break;
    case CONFIG_BOOL:
        ls_write_bool(out, node->as.truth);
        break;
    case CONFIG_INTEGER:
        ls_write_int(out, node->as.integer);
        break;
    case CONFIG_NUMBER:
        ls_write_double(out, node->as.number);
        break;
    case CONFIG_TEXT:
        ls_write_string(out, node->text);
        break;
    case CONFIG_LIST:
    case CONFIG_MAPPING:
        if (node->kind == CONFIG_LIST)
            ls_write_array(out, (uint32_t)node->n_entries);
        else
            ls_write_map(out, (uint32_t)node->n_entries);
        for (size_t i = 0; i < node->n_entries; i++) {
            if (node->kind == CONFIG_MAPPING)
                ls_write_string(out, node->entries[i].key);
            write_node(node->entries[i].value, out);
        }
        break;
    }
}

void ls_config_write(const ls_config *config, ls_writer *out)
{
    write_node(config->root, out);
}

void ls_config_section_write(const ls_config_section *section, ls_writer *out)
{
    if (section != NULL && section->node != NULL)
        write_node(section->node, out);
    else
        ls_write_map(out, 0);
}
