#!/usr/bin/env bash
# All checks of the models, with what each must show. Without an
# argument those that take seconds; `run.sh full` adds those that take minutes and
# gigabytes. Needs spin, and clang or gcc.
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
    {
        printf 'MODEL=%s ./check.sh ' "$model"
        printf '%q ' "$@"
        printf '\n'
    } >>"$list"
}

model=barrier
# safety: nobody leaves early; nobody who lives leaves an epoch that another
# who lives gave up.   ends: everyone who lives comes to the end.
check 'loss, doubling, reordering' holds safety -DE=3
check 'the same, all end' holds ends -DE=3
check 'one crash' holds safety -DE=3 -DCRASH=1
check 'two crashes' holds safety -DE=3 -DCRASH=2
check 'everyone to everyone, two crashes' holds safety -DE=2 -DDIRECT -DCRASH=2
check 'one gives up' holds safety -DE=2 -DQUIT
check 'one gives up, one crash, all end' holds ends -DQUIT -DCRASH=1
check 'who is done exits' holds safety -DE=2 -DEXIT -DCRASH=1
check 'one is declared lost that is not' holds safety -DE=2 -DFALSE_LOSS -DCRASH=1
check 'four nodes' holds safety -DN=4

check 'broken: one phase' fails safety -DONE_PHASE -DQUIT
check 'broken: facts of another epoch' fails safety -DE=2 -DIGNORE_EPOCH
check 'broken: an abort of any epoch' fails safety -DE=2 -DQUIT -DNO_EPOCH
check 'broken: messages counted' fails safety -DCOUNT
check 'broken: nothing is said again' fails ends -DNO_REPEAT

# safety: nobody leaves early; of those that nobody has declared lost, none
# succeeds where another fails.
model=shared
check 'memory: two epochs, all end' holds ends -DE=2
check 'memory: one crash' holds safety -DCRASH=1
check 'memory: one wrong alarm' holds safety -DFALSE_LOSS
check 'memory: deadlines pass' holds safety -DQUIT

check 'broken: the leader asks nobody' fails safety -DNO_COLLECT -DQUIT
check 'broken: who has answered leaves by itself' fails safety -DNO_FREEZE -DQUIT
check 'broken: no alarm is looked at' fails safety -DNO_ALARM -DQUIT
check 'broken: alarms are looked at too early' fails safety -DEARLY_ALARM -DFALSE_LOSS -DQUIT
check 'broken: who is lost counts as there' fails safety -DLOST_ENTERED -DCRASH=1
check 'broken: a leader is passed over quietly' fails safety -DPASS_QUIETLY -DQUIT
check 'broken: only who is missing is heard' fails ends -DDEAF -DCRASH=1

# safety: in order, each once; losses are counted to the number; who sleeps is
# woken.
model=ring
check 'ring: accounts, and claims of them' holds safety
check 'ring: the connection loses some' holds safety -DLOSS
check 'ring: nothing else wakes who sleeps' holds safety -DQUIET -DEVENTS=4 -DSLOTS=1 -DCLAIMS=0

check 'broken: something is under way' fails safety -DNO_CLEAR
check 'broken: the connection is read first' fails safety -DNO_DRAIN
check 'broken: claims are believed to the number' fails safety -DNO_AHEAD
check 'broken: nobody looks for room' fails safety -DNO_ROOM -DSLOTS=1
check 'broken: it rests without a look' fails safety -DQUIET -DNO_LOOK
check 'broken: it looks before it says so' fails safety -DQUIET -DLOOK_FIRST
check 'broken: the bell before the frame' fails safety -DQUIET -DEARLY_RING
check 'broken: the bell in one rest only' fails safety -DQUIET -DONE_REST

if [ "${1:-}" = full ]; then
    export SECONDS_EACH=${SECONDS_EACH:-3600} OPTIMIZE=-O2
    check 'broken: the leader looks at nobody else' fails safety -DDEAF_LEADER -DFALSE_LOSS -DQUIT
    check 'broken: who is lost is still heard' fails safety -DNO_FENCE -DFALSE_LOSS -DQUIT
    check 'memory: one crash, all end' holds ends -DCRASH=1
    check 'memory: two epochs, one crash' holds safety -DE=2 -DCRASH=1
    check 'memory: two crashes' holds safety -DCRASH=2
    check 'memory: one wrong alarm, all end' holds ends -DFALSE_LOSS
    check 'memory: one wrong alarm, deadlines pass' holds safety -DFALSE_LOSS -DQUIT
    check 'memory: two epochs, two crashes' holds safety -DE=2 -DCRASH=2
    check 'memory: two crashes, all end' holds ends -DCRASH=2
    check 'memory: two epochs, deadlines pass' holds safety -DE=2 -DQUIT
    check 'memory: deadlines, one crash' holds safety -DQUIT -DCRASH=1
    check 'memory: deadlines, one crash, all end' holds ends -DQUIT -DCRASH=1
    check 'memory: one wrong alarm, one crash' holds safety -DFALSE_LOSS -DCRASH=1
    check 'memory: one wrong alarm, one crash, all end' holds ends -DFALSE_LOSS -DCRASH=1
    check 'memory: two epochs, one wrong alarm' holds safety -DE=2 -DFALSE_LOSS
    check 'memory: four members, one crash' holds safety -DN=4 -DCRASH=1
    check 'memory: four members, one wrong alarm' holds safety -DN=4 -DFALSE_LOSS
    model=ring
    check 'ring: four events, two claims' holds safety -DEVENTS=4 -DCLAIMS=2
    check 'ring: four events, some are lost' holds safety -DEVENTS=4 -DLOSS
    model=barrier
    check 'two crashes, all end' holds ends -DE=2 -DCRASH=2
    check 'everyone to everyone, all end' holds ends -DDIRECT -DCRASH=2
    check 'who is done exits, all end' holds ends -DE=2 -DEXIT -DCRASH=1
    check 'four nodes, the leader crashes' holds safety -DN=4 -DCRASH=1 -DWHO=1
    check 'broken: a stuck node gives up alone' fails safety -DN=4 -DCRASH=2 -DWHO=9 -DHASTY
    check 'four nodes, two crash, leader included' holds safety -DN=4 -DCRASH=2 -DWHO=9
    check 'four nodes, two crash, leader excluded' holds safety -DN=4 -DCRASH=2 -DWHO=12
    check 'four nodes, the leader crashes, all end' holds ends -DN=4 -DCRASH=1 -DWHO=1
    check 'four nodes, two epochs, the leader crashes' holds safety -DN=4 -DE=2 -DCRASH=1 -DWHO=1
    check 'four nodes, one gives up, one crash' holds safety -DN=4 -DQUIT -DCRASH=1 -DWHO=9
    check 'four nodes, one wrong alarm' holds safety -DN=4 -DFALSE_LOSS -DCRASH=1 -DWHO=1
fi

xargs -d '\n' -P "$(nproc)" -I '{}' bash -c '{}' <"$list" || {
    printf '%s\n' 'models: not every check shows what it must' >&2
    exit 1
}
