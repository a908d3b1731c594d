#include "lockstep/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plain_name.h"
#include "word_list.h"

static bool ids_are_numbers(const char *list)
{
    const char *word;
    size_t size, n = 0;
    for (; (word = word_list_next(&list, &size)) != NULL; n++)
        if (size > 10 || strspn(word, "0123456789") < size ||
            (word[0] == '0' && size > 1) || /* no id is spelled so */
            strtoull(word, NULL, 10) > UINT32_MAX)
            return false;
    return n != 0;
}

/* As a role or a label has them: no node would ever have another one. */
static bool are_names(const char *list)
{
    const char *word;
    size_t size, n = 0;
    for (; (word = word_list_next(&list, &size)) != NULL; n++)
        if (plain_name_span(word, "._-") < size)
            return false;
    return n != 0;
}

int ls_place_check(const char *place)
{
    const char *list = place != NULL ? strchr(place, ':') : NULL;
    if (place == NULL || strcmp(place, "all") == 0)
        return LS_OK;
    if (list != NULL && strncmp(place, "id:", 3) == 0 &&
        ids_are_numbers(list + 1))
        return LS_OK;
    if (list != NULL &&
        (strncmp(place, "role:", 5) == 0 || strncmp(place, "label:", 6) == 0) &&
        are_names(list + 1))
        return LS_OK;
    return ls_error(LS_EINVAL,
                    "\"%s\" is not a place: all, id:1,2, role:a,b or label:a,b",
                    place);
}

bool ls_place_has(const char *place, uint32_t id, const char *role,
                  const char *labels)
{
    char number[16];
    const char *list = place != NULL ? strchr(place, ':') : NULL;
    if (list == NULL)
        return place == NULL || strcmp(place, "all") == 0;
    list++;
    if (place[0] == 'r')
        return word_list_meets(list, role);
    if (place[0] == 'l')
        return word_list_meets(list, labels);
    (void)snprintf(number, sizeof number, "%" PRIu32, id);
    return word_list_has(list, number, strlen(number));
}
