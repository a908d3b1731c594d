# Clusters of containers: docker/compose.yaml and docker/compose-service.yaml, as they
# are and under faults. By ./dev docker-test, which makes the image; some minutes.

setup_file() {
    export LOCKSTEP_IMAGE=${LOCKSTEP_IMAGE:-lockstep}
    export LOCKSTEP_SUBNET=${LOCKSTEP_SUBNET:-198.18.42.0/24}
    # Keys are for one user alone. Whoever is root here makes them for another.
    LOCKSTEP_USER=$(id -u):$(id -g)
    [ "$(id -u)" -ne 0 ] || LOCKSTEP_USER=10001:10001
    export LOCKSTEP_USER
}

setup() {
    cd "$BATS_TEST_TMPDIR" || exit
    project=lockstep-test-$$
    file=$SOURCE_DIR/docker/compose.yaml
}

teardown() {
    compose down -v -t 5 >down.out 2>&1
}

compose() {
    if command -v docker-compose >/dev/null; then
        docker-compose -p "$project" -f "$file" "$@"
    else
        docker compose -p "$project" -f "$file" "$@"
    fi
}

# job NAME [-e SED...]: docker/NAME.yaml, changed, and keys for it.
job() {
    local name=$1
    shift
    export LOCKSTEP_JOB=$PWD/$name.yaml LOCKSTEP_KEYS=$PWD/keys
    sed -e '' "$@" "$SOURCE_DIR/docker/$name.yaml" >"$LOCKSTEP_JOB"
    keygen "$LOCKSTEP_KEYS"
}

# keygen FOLDER: for $LOCKSTEP_JOB.
keygen() {
    mkdir -m 755 "$1"
    [ "$(id -u)" -ne 0 ] || chown "$LOCKSTEP_USER" "$1"
    chmod 755 "$BATS_TEST_TMPDIR"
    docker run --rm -u "$LOCKSTEP_USER" -v "$1:/keys" \
        -v "$LOCKSTEP_JOB:/job.yaml:ro" "$LOCKSTEP_IMAGE" \
        keygen /keys /job.yaml >keygen.out
}

# until_true SECONDS COMMAND...: looks twice a second.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || {
            echo "not in time: $*" >&2
            compose logs --no-color --tail 20 >&2
            return 1
        }
        sleep 0.5
    done
}

# containers [FILTER...]: ids
containers() {
    local filters=() label
    for label in "project=$project" "$@"; do
        filters+=(--filter "label=com.docker.compose.$label")
    done
    docker ps -aq "${filters[@]}"
}

# container SERVICE NUMBER
container() {
    containers "service=$1" "container-number=$2"
}

# healthy N: so many containers, and each is ready and moves.
healthy() {
    local ids id
    mapfile -t ids < <(containers)
    [ ${#ids[@]} -eq "$1" ] || return 1
    for id in "${ids[@]}"; do
        docker exec "$id" /usr/bin/lockstep health /job/job.yaml >health.out 2>&1 ||
            return 1
    done
}

# healthy_run NAME N: so many containers of that name, as Docker sees them.
healthy_run() {
    [ "$(docker ps -q --filter "name=$1" --filter health=healthy | wc -l)" -eq "$2" ]
}

# says CONTAINER TEXT
says() {
    docker logs "$1" >said.out 2>&1
    grep -qF -- "$2" said.out
}

over() {
    [ -z "$(docker ps -q --filter "label=com.docker.compose.project=$project")" ]
}

# Exit codes of all containers, each once.
exit_codes() {
    local ids
    mapfile -t ids < <(containers)
    docker inspect -f '{{.State.ExitCode}}' "${ids[@]}" | sort -un | xargs
}

# kill_node CONTAINER: the node in it, as a crash; its restart policy is not told.
# If that is the first process there, the one that kills it ends with it (137).
kill_node() {
    docker run --rm --pid "container:$1" debian:bookworm-slim sh -c '
        for process in /proc/[0-9]*; do
            [ "$(cat "$process/comm")" != lockstep ] ||
                kill -9 "${process#/proc/}"
        done' || [ "$?" -eq 137 ]
}

# part CONTAINER: from all others, for 10 s.
part() {
    docker network disconnect "${project}_default" "$1"
    sleep 10
    docker network connect "${project}_default" "$1"
}

# frozen CONTAINER: for longer than the others bear.
frozen() {
    docker pause "$1" >/dev/null
    sleep 4
    docker unpause "$1" >/dev/null
}

# down: within the grace period, and nothing is left.
down() {
    local from=$SECONDS
    compose down -v >down.out 2>&1
    [ $((SECONDS - from)) -le $((5 + 5)) ]
    [ -z "$(containers)" ]
}

@test "the image: small, without a shell, run by nobody in particular" {
    [ "$(docker image inspect -f '{{.Size}}' "$LOCKSTEP_IMAGE")" -lt 60000000 ]
    [ "$(docker image inspect -f '{{.Config.User}}' "$LOCKSTEP_IMAGE")" = 10001:10001 ]
    ! docker run --rm --entrypoint /bin/sh "$LOCKSTEP_IMAGE" -c true 2>sh.err || false
    docker run --rm --read-only --cap-drop ALL --security-opt no-new-privileges \
        --tmpfs /out:mode=1777 "$LOCKSTEP_IMAGE" \
        run /usr/share/lockstep/configs/cartpole.yaml >run.out 2>run.err
    grep -q '^solved: ' run.out
}

@test "lock step: seven containers solve it, and each ends with 0" {
    job job
    compose up --no-color >up.out 2>&1
    grep -q 'evaluator.* solved: mean return' up.out
    [ "$(containers | wc -l)" -eq 7 ]
    [ "$(exit_codes)" = 0 ]
    docker inspect -f '{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} {{.Config.User}}' \
        "$(container collector 3)" >security.out
    [ "$(cat security.out)" = "true [ALL] [no-new-privileges:true] $LOCKSTEP_USER" ]
    docker run --rm -v "${project}_results:/out" debian:bookworm-slim \
        test -s /out/cartpole/latest/policy.msgpack
    down
}

@test "lock step: killed, parted and frozen collectors come back; strangers do not" {
    job job -e '/^evaluator:/d' -e 's/^stop: .*/stop: {minutes: 1.5}/'
    compose up -d >up.out 2>&1
    until_true 60 healthy 7

    # One more than the job has.
    compose up -d --scale collector=6 >scale.out 2>&1
    until_true 30 says "$(container collector 6)" \
        "for an id of a collector, at tcp://learner:21999"
    says "$(container collector 6)" "all ids are given out: 5"
    compose up -d --scale collector=5 >scale.out 2>&1

    # A stranger, who has what is public and an enrolment key of his own making.
    keygen "$PWD/stolen"
    cp -p keys/node-?.cert stolen/
    rm stolen/node-?.cert_secret
    run docker run --rm --network "${project}_default" -u "$LOCKSTEP_USER" \
        -v "$PWD/stolen:/run/secrets:ro" -v "$LOCKSTEP_JOB:/job/job.yaml:ro" \
        "$LOCKSTEP_IMAGE" node /job/job.yaml --role collector --identity /identity
    echo "$status $output" # should this fail
    [ "$status" -eq 78 ]
    [[ $output == *"another job, or has another secret or other keys"* ]]
    says "$(container learner 1)" "is not that of /run/secrets/enrolment.cert"

    kill_node "$(container collector 1)"
    until_true 30 says "$(container learner 1)" "(collector) is lost"
    until_true 60 healthy 7
    part "$(container collector 2)"
    until_true 30 says "$(container collector 2)" "it has rejoined as a new member"
    until_true 60 healthy 7
    frozen "$(container collector 3)"
    until_true 60 healthy 7

    until_true 150 over
    [ "$(exit_codes)" = 0 ]
    [ "$(docker inspect -f '{{.RestartCount}}' "$(container collector 1)")" -eq 1 ]
    [ "$(docker inspect -f '{{.RestartCount}}' "$(container collector 2)")" -eq 0 ]
    says "$(container learner 1)" "losses "
    down
}

@test "a coordinator: from 3 to 5 collectors, faults, and on after a stop" {
    file=$SOURCE_DIR/docker/compose-service.yaml
    job service -e '/^evaluator:/d' -e 's/^stop: .*/stop: {minutes: 1.5}/'
    compose up -d >up.out 2>&1
    until_true 60 healthy 5
    compose up -d --scale collector=5 >scale.out 2>&1
    until_true 60 healthy 7
    kill_node "$(container collector 1)"
    until_true 30 says "$(container coordinator 1)" "(collector) is lost"
    until_true 60 healthy 7
    part "$(container collector 2)"
    until_true 60 healthy 7
    frozen "$(container collector 3)"
    until_true 60 healthy 7

    # All of it, told to end and begun again.
    compose stop >stop.out 2>&1
    [ "$(exit_codes)" = 0 ]
    compose start >start.out 2>&1
    until_true 60 healthy 7
    says "$(container coordinator 1)" "resuming the interrupted run"

    until_true 150 over
    [ "$(exit_codes)" = 0 ]
    says "$(container coordinator 1)" "given out again"
    says "$(container coordinator 1)" "losses "
    down
}

@test "lockstep run --as compose: the same result as with processes, and restarts" {
    local id
    [ -n "${LOCKSTEP-}" ] || skip "LOCKSTEP names no program"
    "$LOCKSTEP" run "$SOURCE_DIR/configs/cartpole.yaml" --json >processes.out 2>run.err
    "$LOCKSTEP" run "$SOURCE_DIR/configs/cartpole.yaml" --json --as compose >compose.out 2>run.err
    cmp out/cartpole/1/policy.msgpack out/cartpole/2/policy.msgpack
    grep -q '"event":"summary".*"solved":true' compose.out

    sed -e '/^evaluator:/d' -e 's/^stop: .*/stop: {minutes: 0.3}/' \
        "$SOURCE_DIR/configs/cartpole-restart.yaml" >job.yaml
    "$LOCKSTEP" run job.yaml --as compose >long.out 2>long.err &
    project=lockstep-$!
    until_true 60 healthy_run "$project" 5
    kill_node "$project-node-2"
    wait $!
    grep -q 'restarts *node 2: 1' long.out
    grep -q 'node 2 (collector) was killed by signal 9 (SIGKILL); restart 1 of 3' long.err
    [ -z "$(docker ps -aq --filter "name=$project")" ]
    [ -z "$(docker network ls -q --filter "name=$project")" ]
}
