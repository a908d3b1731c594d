/* Stories of the simulation find a commit that promises less. */
#include "group_story.h"
#include "test.h"

/* One round of messages instead of two: whoever leaves does not know that the
 * others may. The option promises less, and this finds out. */
TEST(an_end_after_one_round_is_found_to_differ)
{
    const struct story_kind kind = {.kills = true, .exit_ready = true};
    struct story_tally tally = {0};
    bool found = false;
    for (uint64_t seed = 1; seed < 2000 && !found; seed++) {
        const char *wrong = story_tell(&kind, seed, &tally);
        found = wrong != NULL && strstr(wrong, "one has") != NULL;
    }
    assert_true(found);
}
