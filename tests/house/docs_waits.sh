#!/usr/bin/env bash
# docs_waits.sh SOURCE: the table of waits in docs/runtime.md names every file
# above framework/base that waits, as `path/from/the/root.c`, and no other.
set -euo pipefail
cd "$1"
calls='ls_(cond_wait|channel_(listen|attend)|words_wait|memory_hear|thread_join|queue_(get|put)|rest_until|call_wait|wait_for)'
calls="\\<$calls\\(|\\<(waitid|epoll_wait)\\(|zmq_msg_recv\\(&frame, socket, 0"
have=$(sed -n '/^## Waits/,/^## The simulation/p' docs/runtime.md | grep '^|.*|.*|.*|.*|' |
    cut -d'|' -f2 | grep -oE '`[A-Za-z0-9_./-]+\.c`' | tr -d '\`' | sort)
want=$(grep -rlE "$calls" framework middleware nodes --include=*.c |
    grep -v '^framework/base/' | sort)
bad=0
report() {
    [ -z "$2" ] || { printf '%s\n%s\n' "$1" "$2" && bad=1; }
}
report "the waits of docs/runtime.md lack" \
    "$(comm -13 <(sort -u <<<"$have") - <<<"$want")"
report "the waits of docs/runtime.md name what does not wait" \
    "$(comm -23 <(sort -u <<<"$have") - <<<"$want")"
exit $bad
