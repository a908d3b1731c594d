# The files of docker/. The clusters themselves are tried by tests/docker.
load helpers

setup() {
    enter_scratch
}

@test "the jobs of the clusters are right" {
    for job in job service; do
        run --separate-stderr "$LOCKSTEP" check "$SOURCE_DIR/docker/$job.yaml"
        [ "$status" -eq 0 ]
        [[ $output == *" is right: job cartpole"* ]]
    done
}

@test "their compose files are right" {
    command -v docker-compose >/dev/null || skip "docker-compose is not installed"
    for file in compose compose-service; do
        docker-compose -f "$SOURCE_DIR/docker/$file.yaml" config >config.out
        grep -q 'subnet: 198\.18\.' config.out
        [ "$(grep -c 'read_only: true' config.out)" -eq 3 ]
    done
}

# tool NAME: a program of that name, which notes its arguments and does what stands
# on stdin.
tool() {
    mkdir -p tools
    {
        echo '#!/bin/sh'
        echo "echo \"$1 \$*\" >>$PWD/calls"
        cat
    } >"tools/$1"
    chmod +x "tools/$1"
}

# as_compose ARGUMENT...
as_compose() {
    run --separate-stderr env PATH="$PWD/tools:/usr/bin:/bin" "$LOCKSTEP" run \
        job.yaml --as compose "$@"
}

some_job() {
    cat >job.yaml <<'END'
job: job
nodes: [{role: member, count: 2}]
barrier: {epochs: 3}
END
}

@test "run --as compose: what is missing is said, with what to do" {
    some_job
    echo 'exit 127' | tool docker
    as_compose
    [ "$status" -eq 69 ]
    [[ $stderr == *"there is no program docker; on Debian: apt-get install docker.io docker-compose" ]]
    echo 'echo "no daemon"; exit 1' | tool docker
    as_compose
    [ "$status" -eq 69 ]
    [[ $stderr == *"does not answer: no daemon; start it"* ]]
    echo 'test "$1" = version' | tool docker
    echo 'exit 1' | tool docker-compose
    as_compose
    [ "$status" -eq 69 ]
    [[ $stderr == *"docker-compose, which is not there"* ]]
    echo 'exit 0' | tool docker-compose
    LOCKSTEP_IMAGE=mine as_compose
    [ "$status" -eq 69 ]
    [[ $stderr == *"there is no image mine: make it"*"docker build -t mine -f docker/Dockerfile ."* ]]
    as_compose --set world.transport=ipc
    [ "$status" -eq 78 ]
    [[ $stderr == *"world.transport ipc does not join containers: say --set world.transport=tcp" ]]
}

@test "run --as compose: a docker that does not end is killed" {
    some_job
    # Soon, for this test.
    tool timeout <<'END'
if [ "$1" = -k ]; then
    kill='-k 0.1'
    shift 2
fi
shift
exec /usr/bin/timeout $kill 0.1 "$@"
END
    echo 'trap "" TERM; while :; do :; done' | tool docker
    as_compose
    [ "$status" -eq 69 ]
    [[ $stderr == *"does not answer"* ]]
}

@test "run --as compose: the file has each node, and what failed is cleared away" {
    some_job
    echo 'exit 0' | tool docker
    tool docker-compose <<'END'
case "$*" in
*--no-start)
    for secret in $(grep -o 'source: "[^"]*/secret/[^"]*' "$4" | cut -d'"' -f2); do
        grep -q secret-key "$secret" && echo "a key" >>calls
    done
    echo "ERROR: Pool overlaps with other one"
    exit 1
    ;;
esac
END
    TMPDIR=$PWD XDG_RUNTIME_DIR=$PWD as_compose
    [ "$status" -eq 1 ]
    [[ $stderr == *"Pool overlaps with other one; LOCKSTEP_SUBNET names another network"* ]]
    grep -q 'docker-compose -p lockstep-.* -f out/job/1/compose.yaml up --no-start' calls
    grep -q 'docker-compose -p lockstep-.* -f out/job/1/compose.yaml down -v' calls
    [ "$(grep -c 'a key' calls)" -eq 2 ]
    [ -z "$(find . -name '*.cert*')" ]
    grep -q 'command: \["node", "--id", "1",.* "--attach", "0@tcp://node-0:21500",.* "security.mode=curve",.* "--report-fd", "1", "--", "'"$PWD"'/job.yaml"\]' out/job/1/compose.yaml
    [ "$(grep -c 'target: "/run/keys/node-[01].cert_secret", read_only: true' out/job/1/compose.yaml)" -eq 2 ]
    command -v docker-compose >/dev/null || skip "docker-compose is not installed"
    # The files that it mounts are gone, which only matters to who starts it.
    docker-compose -f out/job/1/compose.yaml config >config.out
    [ "$(grep -c 'read_only: true' config.out)" -ge 2 ]
}
