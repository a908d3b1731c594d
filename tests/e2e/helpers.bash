# What the tests of the program share. Nothing here sleeps: a test waits for a
# line, for a process to be gone, or for the end of a pipe.

bats_require_minimum_version 1.5.0
export LC_ALL=C
cartpole=$SOURCE_DIR/configs/cartpole.yaml
plugins=$BUILD_DIR/tests/plugins
unset LS_LOG LOCKSTEP_PLUGIN_PATH NO_COLOR

# Options that make a run go on until something ends it.
endless=(--set evaluator.solved=501 --set stop.env_step=0)

# Each test has a folder of its own to run in, and one for the secrets and
# sockets of its jobs, which are not those of the user.
enter_scratch() {
    mkdir -p "$BATS_TEST_TMPDIR/scratch"
    export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR/runtime
    mkdir -m 700 "$XDG_RUNTIME_DIR"
    cd "$BATS_TEST_TMPDIR/scratch" || return
    declare -gA pid_of=() fd_of=()
}

# untraced FUNCTION ARGUMENT...: bats looks at each command of a test, for which it
# takes a hundred times as long as a loop over lines does.
untraced() {
    local -
    set +T
    "$@"
}

# start NAME ARGUMENT...: the program, in the background; its stdout is read
# with event, its stderr is in NAME.err. That file is there once this returns:
# both ends of the pipe are opened after it.
start() {
    local name=$1 fd
    shift
    mkfifo "$name.out"
    "$LOCKSTEP" "$@" 2>"$name.err" >"$name.out" 3>&- &
    pid_of[$name]=$!
    exec {fd}<"$name.out"
    fd_of[$name]=$fd
}

# end_started: all that start has begun. One cannot end while it writes what
# nobody reads.
end_started() {
    local name
    for name in "${!pid_of[@]}"; do
        kill "${pid_of[$name]}" 2>/dev/null || true
        cat <&"${fd_of[$name]}" >/dev/null
        wait "${pid_of[$name]}" || true
    done
}

# call NODE NAME ARGUMENT...: in the run of job.yaml.
call() {
    run --separate-stderr "$LOCKSTEP" call job.yaml "$@"
}

# event NAME TEXT...: the next line of its stdout with all of these in it, as
# $line; fails when there is none.
event() {
    untraced read_event "$@"
}

read_event() {
    local name=$1 word missing
    shift
    while IFS= read -r -t 60 line <&"${fd_of[$name]}"; do
        missing=
        for word; do
            [[ $line == *"$word"* ]] || missing=$word
        done
        [[ -z $missing ]] && return 0
    done
    echo "$name never said: $*" >&2
    cat "$name.err" >&2
    return 1
}

# evaluated NAME N: its next evaluation after N updates or more. That of N may
# have been read with something else: the lines of one node wait for no other.
evaluated() {
    while event "$1" '"evaluation"'; do
        [ "$(field train_iter)" -lt "$2" ] || return 0
    done
    return 1
}

# stderr_has NAME PATTERN [LINE]: waits for it, from that line on.
stderr_has() {
    untraced read_stderr "$@"
}

read_stderr() {
    local text
    while IFS= read -r text; do
        # shellcheck disable=SC2053 # it is a pattern
        [[ $text != *$2* ]] || return 0
    done < <(timeout 60 tail -f --pid="${pid_of[$1]}" -n "+${3:-1}" "$1.err" 3>&-)
    echo "$1 never said: $2" >&2
    cat "$1.err" >&2
    return 1
}

# stop_reading NAME: what it writes does not fit into its pipe any more.
stop_reading() {
    exec 9>"$1.out"
    yes "" | dd bs=4096 count=1000 iflag=fullblock oflag=nonblock >&9 \
        2>/dev/null || true
    exec 9>&-
}

# finish NAME: wait for its end; what was left of its stdout is $rest, its exit
# code $code, its stderr $err.
finish() {
    code=0
    rest=$(cat <&"${fd_of[$1]}")
    wait "${pid_of[$1]}" || code=$?
    err=$(cat "$1.err")
}

# field KEY: its value in the JSON object $line (a number, a word, or a text
# without quotes in it).
field() {
    [[ $line =~ \"$1\":\"?([^,\"}]*) ]] && echo "${BASH_REMATCH[1]}"
}

# last_line TEXT: for a summary.
last_line() {
    line=${1##*$'\n'}
}

# figures: what must not depend on how the nodes of the run $line were run.
figures() {
    echo "$(field solved) $(field return) $(field iteration)" \
        "$(field env_step) $(field env_episode) $(field train_iter)"
}

# nodes_of NAME N: read until N nodes are in the world; their pids are $nodes,
# by id, and their endpoints $endpoints.
nodes_of() {
    local n
    declare -gA nodes=() endpoints=()
    for ((n = 0; n < 2 * $2; n++)); do
        event "$1" '"node":' '"pid":' || return
        nodes[$(field node)]=$(field pid)
        [[ $line != *'"bound"'* ]] || endpoints[$(field node)]=$(field endpoint)
    done
}

# all_gone: the nodes of nodes_of, and their socket files: `run` has waited for
# its children. (Ports go with the processes; another test may have them by
# now.)
all_gone() {
    local pid endpoint
    for pid in "${nodes[@]}"; do
        ! kill -0 "$pid" 2>/dev/null || {
            echo "process $pid is still there" >&2
            return 1
        }
    done
    for endpoint in "${endpoints[@]}"; do
        [[ $endpoint != ipc:* || ! -e ${endpoint#ipc://} ]] || {
            echo "$endpoint is still there" >&2
            return 1
        }
    done
}

# all_go: the same, for nodes whose run was killed: they need a moment.
all_go() {
    local pid
    for pid in "${nodes[@]}"; do
        timeout 30 tail -s 0.05 --pid="$pid" -f /dev/null
    done
    all_gone
}

# says TEXT: in $output of bats' run.
says() {
    [[ $output == *"$1"* ]] || {
        echo "expected: $1" >&2
        echo "$output" >&2
        return 1
    }
}

# said TEXT: in $err of finish.
said() {
    [[ $err == *"$1"* ]] || {
        echo "expected: $1" >&2
        echo "$err" >&2
        return 1
    }
}

# nobody_early N EPOCHS FILE...: in each epoch of what members said, the last to
# enter did so before the first left. All N have been through each, and it was
# so many epochs; "any" of either is fine.
nobody_early() {
    local n=$1 epochs=$2
    shift 2
    cat "$@" | awk -v n="$n" -v epochs="$epochs" '
        !/^[0-9]/ { next }
        !($1 in count) || $2 > entered[$1] { entered[$1] = $2 }
        !($1 in count) || $3 < left[$1] { left[$1] = $3 }
        { count[$1]++ }
        END {
            for (e in count) {
                seen++
                if (n != "any" && count[e] != n) {
                    print "epoch", e, "has", count[e]
                    bad++
                }
                if (left[e] < entered[e]) { print "epoch", e, "early"; bad++ }
            }
            if (epochs != "any" && seen != epochs) {
                print seen, "epochs"
                bad++
            }
            exit bad > 0
        }'
}

# four_nodes [LINE]: job.yaml, of a run that is solved when the test says so, by
# the file `solved`; begin starts it.
four_nodes() {
    export LOCKSTEP_PLUGIN_PATH=$plugins
    cat >job.yaml <<END
job: job
plugin: faulty
${1:-}
nodes: [{role: learner}, {role: collector, count: 2}, {role: evaluator}]
collector: {steps: 20}
evaluator: {episodes: 2, solved: 1000}
env: {prize: solved}
END
}

# by_hand [KEYS]: job.yaml, of nodes that are started one by one, and may come back;
# with these keys of the evaluator.
by_hand() {
    export LOCKSTEP_PLUGIN_PATH=$plugins
    cat >job.yaml <<END
job: job
plugin: faulty
world: {transport: ipc, dir: $BATS_TEST_TMPDIR/runtime}
nodes:
  - {role: learner, on_loss: restart}
  - {role: collector, on_loss: restart}
  - {role: evaluator, on_loss: restart}
collector: {steps: 20}
evaluator: {episodes: 2, solved: 1000${1+, $1}}
END
}

# three ARGUMENT...: its nodes, n0, n1 and n2.
three() {
    local id
    for id in 0 1 2; do
        start n$id node job.yaml --id $id --json "$@"
    done
}

# begin ARGUMENT...: the run of job.yaml, until it has evaluated.
begin() {
    start run run job.yaml --json --timeout 100 "$@"
    nodes_of run 4
    event run '"evaluation"'
}

# comes_back NODE: the run says that it starts the node again, and it is in the
# world again.
comes_back() {
    event run '"restarting"' "\"node\":$1,"
    event run '"started"' "\"node\":$1,"
    nodes[$1]=$(field pid)
}

# kept: the files that the last run has left, but for its record and what nodes
# that failed did last.
kept() {
    ls -A -I record -I trace -I checkpoints out/job/latest
}

# only_policy_is_left: of the last run.
only_policy_is_left() {
    local left
    left=$(kept)
    [ "$left" = policy.msgpack ] || {
        printf 'left: %s\n' "$left" >&2
        cat out/job/latest/record *.err >&2
        return 1
    }
}

# ends_solved: and nothing is left.
ends_solved() {
    touch solved
    finish run
    [ "$code" -eq 0 ] || { echo "exit $code: $err" >&2; return 1; }
    last_line "$rest"
    [ "$(field event)" = summary ]
    [ "$(field solved)" = true ]
    all_gone
    only_policy_is_left
}
