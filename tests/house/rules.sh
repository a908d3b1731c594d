#!/usr/bin/env bash
# What must not stand in the tree, and where its only place is. Each breach is
# printed as file:line:text.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
shopt -s lastpipe # breach, at the end of a pipe, says so in this shell
bad=0

# Lines of code that match $1, in the *.c and *.h below the other arguments,
# with comments and strings blanked out.
code_lines() {
    local pattern=$1
    shift
    find "$@" -name '*.[ch]' -print0 | sort -z |
        xargs -0 awk -v pattern="$pattern" '
            FNR == 1 { inside = 0 }
            {
                line = $0
                gsub(/\\./, "", line)
                gsub(/"[^"]*"/, "\"\"", line)
                out = ""
                while (line != "") {
                    if (inside) {
                        end = index(line, "*/")
                        if (!end) break
                        line = substr(line, end + 2)
                        inside = 0
                    }
                    start = index(line, "/*")
                    if (!start) { out = out line; break }
                    out = out substr(line, 1, start - 1)
                    line = substr(line, start + 2)
                    inside = 1
                }
                sub(/\/\/.*/, "", out)
                if (out ~ pattern) print FILENAME ":" FNR ":" $0
            }'
}

# breach WHAT, with the offending lines on standard input
breach() {
    local lines
    lines=$(cat)
    [ -n "$lines" ] || return 0
    printf 'rules: %s\n%s\n' "$1" "$lines"
    bad=1
}

code=(framework middleware nodes tests docs)
word='(^|[^A-Za-z0-9_])'

code_lines "${word}(pthread_|sem_(init|wait|post|destroy|timedwait))" \
    "${code[@]}" |
    grep -vE '^framework/base/runtime/(runtime_threads[a-z_]*|fiber[a-z0-9_]*)\.[ch]:' |
    breach 'threads and locks come from lockstep/runtime.h'

# The switch of the namespaces and the siege are programs of their own on one
# thread, which wait for devices and pipes: nothing that the runtime is for. Nor
# does it wait for a question that is there and must not be taken.
code_lines "${word}(clock_gettime|gettimeofday|time|nanosleep|clock_nanosleep|usleep|sleep|poll|ppoll|select|pselect|epoll_[a-z0-9]+) *\\(" \
    "${code[@]}" |
    grep -vE '^framework/base/runtime/runtime_threads[a-z_]*\.c:|^framework/bus/transport/transport_zmq[a-z_]*\.c:|^tests/bus/severed_link.h:|^tests/base/test_runtime.c:.*[^_]time\(NULL\)|^tests/e2e/tapswitch/tapswitch.c:|^tests/hostile/siege.c:|^tests/nodes/test_health.c:.*poll\(|^tests/bench/barrier_raw.c:.*epoll_|^tests/bench/mpi/' |
    breach 'clocks and waits come from lockstep/runtime.h'

code_lines "${word}(zmq_[a-z]|ZMQ_[A-Z])" "${code[@]}" |
    grep -vE '^framework/bus/transport/transport_zmq[a-z_]*\.[ch]:|^tests/' |
    breach 'ZeroMQ is used by framework/bus/transport alone'

code_lines "${word}(memfd_create|mmap|munmap|SYS_futex[a-z_]*|sched_yield) *[(),]" \
    framework middleware nodes |
    grep -vE '^framework/base/runtime/(memory|fiber|runtime_threads[a-z_]*)\.c:' |
    breach 'shared memory and waits for words come from shared_memory.h'

# What a simulation cannot take from under them: keys and certificates with their
# permissions, sockets, plugins, what a user names, and this process itself.
code_lines "(^|[^A-Za-z0-9_>.])(fopen|open|openat|creat|rename|unlink|remove|truncate|ftruncate|mkdir|rmdir|opendir|fsync|fdatasync|flock|symlink) *\\(" \
    framework middleware nodes |
    grep -vE '^framework/state/disk_os\.c:|^framework/base/(config/config_load|runtime/(runtime_threads_(cpus|offer|sweep)|memory))\.c:|^framework/bus/security/|^framework/bus/transport/transport_zmq_bind\.c:|^nodes/(base/output|cli/run/command_(begin|sim)|join/identity|node/health|node/memory|agent/plugin_load|run/socket_folder|launch/tracer)\.c:' |
    breach 'files that hold state are those of lockstep/file.h'

find tests docs \( -name '*.bats' -o -name '*.sh' -o -name '*.bash' \) \
    -exec grep -nHE '(^|[;&|] *|\b(then|do|else) +)sleep +[0-9$]' {} + |
    breach 'tests wait for what they need, never for a time'

find framework middleware \( -name '*_parts.h' -o -name '*_inside.h' \) |
    while IFS=/ read -r header; do
        grep -rlF "\"${header##*/}\"" framework middleware |
            grep -v "^${header%/*}/"
    done |
    breach 'a header *_parts.h or *_inside.h is seen by its room alone'
find framework middleware nodes \( -name '*.c' -o -name '*.h' \) -printf '%h\n' |
    sort | uniq -c | awk '$1 > 25 { print $2 ": " $1 " sources" }' |
    breach 'a folder has 25 sources at most'

# So that what could not be made may be destroyed in any case.
made() {
    find framework middleware nodes -path '*/include/*.h' -print0 |
        xargs -0 cat | tr '\n' ' ' |
        grep -oE 'LS_API int +ls_[a-z_]+\((ls_runtime \*runtime, )?ls_[a-z_]+ \*\*out[,)]' |
        sed -E 's/.* (ls_[a-z_]+)\(.*/\1/' | sort
}
# shellcheck disable=SC2046 # names
[ "$(made | wc -l)" -gt 30 ] ||
    echo 'no functions that make something are found' | breach 'of the headers'
find framework middleware nodes -name '*.c' -print0 |
    xargs -0 awk -v names=" $(made | tr '\n' ' ')" '
        /^int ls_[a-z_]+\(/ {
            name = $2
            sub(/\(.*/, "", name)
            inside = index(names, " " name " ")
        }
        inside && body { if ($0 != "    *out = NULL;") print FILENAME ":" FNR ":" name; inside = 0 }
        { body = /^\{/ }' |
    breach 'a public function that makes something begins with *out = NULL'

# Each promise is shown by a test, or at least used by one.
promised() {
    find framework middleware nodes -path '*/include/lockstep/*.h' -print0 |
        xargs -0 cat | tr '\n' ' ' | grep -oE 'LS_API [^(;]*\bls_[a-z0-9_]+\(' |
        sed -E 's/.*\b(ls_[a-z0-9_]+)\($/\1/' | sort -u
}
[ "$(promised | wc -l)" -gt 500 ] ||
    echo 'no public functions are found' | breach 'of the headers'
promised | comm -23 - <(find tests -name '*.[ch]' -exec cat {} + |
    grep -oE '\bls_[a-z0-9_]+\b' | sort -u) |
    breach 'a public function is in a test'

# Paths that lead to something on this machine, and on another maybe not: below a
# folder that not every system has, or out of this tree.
everywhere=' bin boot dev etc lib lib64 media mnt opt proc run sbin srv sys tmp usr var '
name='[A-Za-z0-9_][A-Za-z0-9_.-]*'
text_of() { # EXTENDED_REGEX: FILE:LINE:MATCH
    grep -rnoIE "$1" --exclude-dir=.git --exclude=.git --exclude-dir=build \
        --exclude-dir=seeds .
}
text_of "(^|[^A-Za-z0-9_.}*)/-])/$name/$name" |
    while IFS=: read -r file line path; do
        top=${path#*/}
        top=${top%%/*}
        if [[ $everywhere != *" $top "* && -e /$top ]]; then
            echo "$file:$line: $path"
        fi
    done |
    breach 'paths of one machine'
text_of "(\.\./)+$name(/$name)*" |
    while IFS=: read -r file line path; do
        for from in . "${file%/*}"; do
            to=$(realpath -m "$from/$path")
            if [[ $to/ != "$PWD"/* && -e $to ]]; then
                echo "$file:$line: $path"
            fi
        done
    done |
    breach 'paths that leave the tree'

grep -rnE '\b(TO[D]O|FIX[M]E|XX[X])\b' --include='*.[chS]' --include='*.md' \
    --include='*.cmake' --include=CMakeLists.txt --exclude-dir=build . |
    breach 'unfinished by its own words'

exit $bad
