#!/usr/bin/env bash
# peer.sh SOURCE NODE TRANSPORT: docs/examples/peer.py in a world with two nodes,
# each a process, over tcp or ipc.
set -uo pipefail
source=$1 node=$2 transport=$3
epochs=20

# The Python that has the packages need not be the first one.
for python in python3 /usr/bin/python3; do
    "$python" -c 'import zmq, msgpack' 2>/dev/null && break
    python=
done
[ -n "$python" ] || {
    printf '%s\n' 'foreign: no Python with zmq and msgpack here: apt install python3-zmq python3-msgpack' >&2
    exit 77
}

work=$(mktemp -d)
pids=()
# shellcheck disable=SC2317 # by the trap
finish() {
    kill "${pids[@]}" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
cd "$work" || exit 1
(umask 077 && head -c 32 /dev/urandom >secret)

bind() {
    case $transport in
    ipc) printf '%s\n' "ipc://$work/$1.ipc" ;;
    tcp) printf '%s\n' 'tcp://127.0.0.1:*' ;;
    esac
}

# start ID SEED: a node; its endpoint is $endpoint.
start() {
    local fd
    mkfifo "$1.out"
    "$node" "$1" 3 "$(bind "$1")" secret "$2" $epochs >"$1.out" &
    pids+=($!)
    exec {fd}<"$1.out"
    read -r -t 60 word endpoint <&"$fd" && [ "$word" = at ] || exit 1
    cat <&"$fd" >"$1.said" &
    readers+=($!)
    exec {fd}<&-
}

readers=()
start 7 -
first=$endpoint
start 4000000007 "$first"
PYTHONDONTWRITEBYTECODE=1 timeout 100 "$python" \
    "$source/docs/examples/peer.py" lockstep 1 secret "$first" 2 $epochs \
    >peer.said
code=$?
bad=0
[ $code -eq 0 ] || {
    echo "peer.py: exit $code" >&2
    head peer.said ./*.said >&2
    exit 1
}
for pid in "${pids[@]}"; do
    wait "$pid" || bad=1
done
pids=()
wait "${readers[@]}"

# like FILE, with what it must say on standard input
like() {
    diff -u --label 'what it must say' --label "$1" - "$1" >&2 || bad=1
}
for id in 7 4000000007; do
    like $id.said <<END
double twicetwice
epochs $epochs of 3 members
counted 300, wrong 0
left
refused 0
END
done
sort peer.said >peer.sorted
{
    for ((epoch = 0; epoch < epochs; epoch++)); do
        echo "epoch $epoch flags 5"
    done
    echo 'greet 7 hello'
    echo 'greet 4000000007 hello'
} | sort | like peer.sorted
exit $bad
