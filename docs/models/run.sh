#!/usr/bin/env bash
# All checks of the barrier's model, with what each must show. Without an
# argument those that take seconds; `run.sh full` adds those that take minutes and
# gigabytes. Needs spin and gcc.
#
#   docs/models/run.sh
#   MEMORY_MIB=16000 docs/models/run.sh full
set -uo pipefail
cd "$(dirname "$0")" || exit
command -v spin >/dev/null || {
    printf '%s\n' 'models: no spin here: apt install spin' >&2
    exit 77
}
list=$(mktemp)
trap 'rm -f "$list"' EXIT

# Put down for later: they run side by side.
check() {
    printf '%q ' "$@" >>"$list"
    printf '\n' >>"$list"
}

# safety: nobody leaves early; nobody who lives leaves an epoch that another
# who lives gave up.   ends: everyone who lives comes to the end.
check 'loss, doubling, reordering' holds safety -DE=3
check 'the same, all end' holds ends -DE=3
check 'one crash' holds safety -DE=3 -DCRASH=1
check 'two crashes' holds safety -DE=3 -DCRASH=2
check 'two crashes, all end' holds ends -DE=2 -DCRASH=2
check 'everyone to everyone, two crashes' holds safety -DE=2 -DDIRECT -DCRASH=2
check 'everyone to everyone, all end' holds ends -DDIRECT -DCRASH=2
check 'one gives up' holds safety -DE=2 -DQUIT
check 'one gives up, one crash, all end' holds ends -DQUIT -DCRASH=1
check 'who is done exits' holds safety -DE=2 -DEXIT -DCRASH=1
check 'who is done exits, all end' holds ends -DE=2 -DEXIT -DCRASH=1
check 'one is declared lost that is not' holds safety -DE=2 -DFALSE_LOSS -DCRASH=1
check 'four nodes' holds safety -DN=4
check 'four nodes, the leader crashes' holds safety -DN=4 -DCRASH=1 -DWHO=1

check 'broken: one phase' fails safety -DONE_PHASE -DQUIT
check 'broken: facts of another epoch' fails safety -DE=2 -DIGNORE_EPOCH
check 'broken: an abort of any epoch' fails safety -DE=2 -DQUIT -DNO_EPOCH
check 'broken: messages counted' fails safety -DCOUNT
check 'broken: nothing is said again' fails ends -DNO_REPEAT
check 'broken: a stuck node gives up alone' fails safety -DN=4 -DCRASH=2 -DWHO=9 -DHASTY

if [ "${1:-}" = full ]; then
    export SECONDS_EACH=${SECONDS_EACH:-3600} OPTIMIZE=-O2
    check 'four nodes, two crash, leader included' holds safety -DN=4 -DCRASH=2 -DWHO=9
    check 'four nodes, two crash, leader excluded' holds safety -DN=4 -DCRASH=2 -DWHO=12
    check 'four nodes, the leader crashes, all end' holds ends -DN=4 -DCRASH=1 -DWHO=1
    check 'four nodes, two epochs, the leader crashes' holds safety -DN=4 -DE=2 -DCRASH=1 -DWHO=1
    check 'four nodes, one gives up, one crash' holds safety -DN=4 -DQUIT -DCRASH=1 -DWHO=9
    check 'four nodes, one wrong alarm' holds safety -DN=4 -DFALSE_LOSS -DCRASH=1 -DWHO=1
fi

xargs -d '\n' -P "$(nproc)" -I '{}' bash -c './check.sh {}' <"$list" || {
    printf '%s\n' 'models: not every check shows what it must' >&2
    exit 1
}
