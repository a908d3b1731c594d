/* file_promises.h - what lockstep/file.h promises on any disk. Each is given a
 * folder that is there and empty, and leaves it empty. */
#ifndef STATE_FILE_PROMISES_H
#define STATE_FILE_PROMISES_H

void a_file_is_read_as_it_was_written(const char *folder);
void a_file_that_is_replaced_is_old_or_new(const char *folder);
void reading_has_limits(const char *folder);
void parts_are_read_and_written_where_they_are(const char *folder);
void what_is_beyond_the_end_is_zeros(const char *folder);
void a_cut_file_is_as_long_as_it_was_told(const char *folder);
void flags_say_what_may_be_done(const char *folder);
void a_locked_file_is_somebody_elses(const char *folder);
void a_lock_may_be_shared(const char *folder);
void a_file_knows_whether_it_has_its_name(const char *folder);
void a_name_moves_and_goes(const char *folder);
void an_open_file_outlives_its_name(const char *folder);
void folders_are_made_with_those_above(const char *folder);
void a_folder_that_holds_something_stays(const char *folder);
void all_names_of_a_folder_are_listed(const char *folder);
void what_is_in_the_way_is_named(const char *folder);
void no_two_unfinished_files_have_one_name(const char *folder);

#define FILE_PROMISES(X)                                                       \
    X(a_file_is_read_as_it_was_written)                                        \
    X(a_file_that_is_replaced_is_old_or_new)                                   \
    X(reading_has_limits)                                                      \
    X(parts_are_read_and_written_where_they_are)                               \
    X(what_is_beyond_the_end_is_zeros)                                         \
    X(a_cut_file_is_as_long_as_it_was_told)                                    \
    X(flags_say_what_may_be_done)                                              \
    X(a_locked_file_is_somebody_elses)                                         \
    X(a_lock_may_be_shared)                                                    \
    X(a_file_knows_whether_it_has_its_name)                                    \
    X(a_name_moves_and_goes)                                                   \
    X(an_open_file_outlives_its_name)                                          \
    X(folders_are_made_with_those_above)                                       \
    X(a_folder_that_holds_something_stays)                                     \
    X(all_names_of_a_folder_are_listed)                                        \
    X(what_is_in_the_way_is_named)                                             \
    X(no_two_unfinished_files_have_one_name)

#endif
