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
