# Hosts that are network namespaces, each plugged into tapswitch by its eth0.
# Host N has the address 198.18.77.N and runs the member with the id N.

hosts=5
member=$BUILD_DIR/tests/e2e/member/member
tapswitch=$BUILD_DIR/tests/e2e/tapswitch/tapswitch
subnet=198.18.77 # of those set aside for tests of networks: RFC 2544

namespace() {
    echo "lockstep-$$-$1"
}

# Skip the test, by name of what is missing, where hosts cannot be made.
need_namespaces() {
    local probe
    probe=$(namespace probe)
    [ "$EUID" -eq 0 ] || skip "needs root, for network namespaces"
    [ -c /dev/net/tun ] || skip "needs /dev/net/tun"
    ip netns add "$probe" 2>/dev/null ||
        skip "network namespaces are not permitted here"
    ip -n "$probe" tuntap add dev probe mode tap 2>/dev/null ||
        skip "TAP devices are not permitted here"
    ip netns del "$probe"
}

# make_hosts: and the switch between them, which as yet is a perfect one.
make_hosts() {
    local i names=()
    for ((i = 1; i <= hosts; i++)); do
        names+=("$(namespace $i)")
        ip netns add "$(namespace $i)"
    done
    mkfifo commands answers
    "$tapswitch" "${SEED:-1}" "${names[@]}" \
        <commands >answers 2>switch.err 3>&- &
    switch=$!
    exec {switch_in}>commands {switch_out}<answers
    answer ready || { cat switch.err >&2 && return 1; }
    for ((i = 1; i <= hosts; i++)); do
        ip -n "$(namespace $i)" link set eth0 addrgenmode none
        ip -n "$(namespace $i)" address add "$subnet.$i/24" dev eth0
        ip -n "$(namespace $i)" link set lo up
        ip -n "$(namespace $i)" link set eth0 up
    done
}

# remove_hosts: and end what runs on them. Whatever has been made of it.
remove_hosts() {
    local pid name
    for pid in "${pid_of[@]}" $switch; do
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    for name in $(ip netns list 2>/dev/null | cut -d' ' -f1); do
        [[ $name != "lockstep-$$-"* ]] || ip netns del "$name"
    done
}

# answer WORD: read the next answer of the switch, which begins with this; the
# rest of it is $answer.
answer() {
    IFS= read -r -t 120 answer <&"$switch_out"
    [[ $answer == "$1"* ]] || {
        echo "expected: $1, the switch said: $answer" >&2
        return 1
    }
    answer=${answer#"$1"}
    answer=${answer# }
}

# tell COMMAND: in force when it returns, at $answer.
tell() {
    echo "$*" >&"$switch_in"
    answer ok
}

# begin N ARGUMENT...: a member on host N that endures; what it says is in
# N.out, which ends with "ended". A pipe that it alone holds tells when it does:
# the shell does not hear of a child's end while it reads.
begin() {
    local n=$1
    shift
    mkfifo "$n.life"
    {
        cat "$n.life"
        echo ended >>"$n.out"
    } 3>&- {switch_in}>&- &
    touch "$n.out"
    nsenter --net="/run/netns/$(namespace "$n")" "$member" "$n" "$hosts" \
        "${topology:-mesh}" "tcp://$subnet.$n:21500" "tcp://$subnet.1:21500" \
        endure "$@" >>"$n.out" 2>>"$n.err" 3>&- {switch_in}>&- 9>"$n.life" &
    pid_of[$n]=$!
}

# begin_again N ARGUMENT...: one that was killed; what it said is in N.1.out.
begin_again() {
    lines "$1" begins_with ended
    mv "$1.out" "$1.1.out"
    rm "$1.life"
    begin "$@"
}

begin_all() {
    local i
    for ((i = 1; i <= hosts; i++)); do
        begin $i "$@"
    done
}

# lines N FUNCTION ARGUMENT...: read what member N says, from its first line on,
# until FUNCTION is content with one; that is $line.
lines() {
    untraced read_lines "$@"
}

read_lines() {
    local n=$1
    shift
    while IFS= read -r -t 120 line; do
        "$@" && return 0
        [ "$line" != ended ] || break
    done < <(exec tail -n +1 -f "$n.out" 3>&- {switch_in}>&-)
    echo "member $n never said: $*" >&2
    tail -n 3 "$n.out" "$n.err" >&2
    return 1
}

begins_with() {
    [[ $line == "$1"* ]]
}

# Epoch $1 or a later one.
is_epoch() {
    [[ $line =~ ^[0-9]+ ]] && [ "${BASH_REMATCH[0]}" -ge "$1" ]
}

# One that was entered after the time $1.
is_entered_after() {
    local entered
    [[ $line =~ ^[0-9]+\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -gt "$1" ]
}

# A word that may be followed by a time, after the time $2.
is_after() {
    [[ $line =~ ^$1\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -gt "$2" ]
}

# end N...: tell the first of them to end, and wait until all did, well.
end() {
    local n code=0
    kill -TERM "${pid_of[$1]}"
    for n; do
        wait "${pid_of[$n]}" || {
            code=$?
            cat "$n.err" >&2
        }
    done
    return $code
}

# report WHAT: how long epochs took, member 1 saw them, and what the switch did.
report() {
    echo stats >&"$switch_in"
    answer sent
    {
        awk '/^[0-9]/ { if (last) print ($3 - last) / 1e6; last = $3 }
            !/^[0-9]/ { last = 0 }' 1.out | sort -n | awk -v what="$1" '
            { all[NR] = $1 }
            END { printf "# %s: %d epochs, ms from one to the next: " \
                "median %.1f, 99 %% %.1f, max %.1f\n", what, NR + 1,
                all[int((NR + 1) / 2)], all[int(NR * .99) + 1], all[NR] }'
        echo "# frames: sent $answer"
    } >&3
}
