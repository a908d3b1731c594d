/* folder_fixture.h - each test has a folder of its own, removed with the files
 * and empty folders in it. */
#ifndef LOCKSTEP_FOLDER_FIXTURE_H
#define LOCKSTEP_FOLDER_FIXTURE_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

/* Where: a test that syncs often does it in memory. */
#ifndef FOLDER_IN
#define FOLDER_IN "/tmp"
#endif

struct place {
    char folder[64];
    char path[96]; /* FOLDER/j, for one file */
};

static inline int folder_set_up(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    memcpy(place->folder, FOLDER_IN "/lockstep-XXXXXX",
           sizeof FOLDER_IN "/lockstep-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    (void)snprintf(place->path, sizeof place->path, "%s/j", place->folder);
    *state = place;
    return 0;
}

static inline int folder_tear_down(void **state)
{
    struct place *place = *state;
    DIR *entries = opendir(place->folder);
    assert_non_null(entries);
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", place->folder,
                       entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            assert_int_equal(remove(path), 0);
    }
    assert_int_equal(closedir(entries), 0);
    assert_int_equal(rmdir(place->folder), 0);
    free(place);
    return 0;
}

#endif
