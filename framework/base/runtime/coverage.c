#include "coverage.h"

_Thread_local uint64_t *ls_coverage_now
    __attribute__((tls_model("initial-exec")));

#define TRANSITION(number, machine, name) {machine, name},
const struct ls_transition_name ls_transition_names[LS_N_TRANSITIONS] = {
    LS_TRANSITIONS(TRANSITION)};
