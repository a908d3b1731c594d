# The service job that the tests of services run: it is solved once there is a
# file `solved`.

# service_job: job.yaml. By files of its own: nobody else can take the address
# that a node had.
service_job() {
    cat >job.yaml <<'END'
job: job
plugin: faulty
world: {transport: ipc}
nodes:
  - {role: coordinator, on_loss: restart}
  - {role: learner, count: 2, on_loss: go_on}
  - {role: collector, count: 3, on_loss: restart}
collector: {steps: 20}
coordinator:
  eval_interval_s: 0
  batch: 4
  samples_per_work: 8
  retry_s: 0.1
  replay: {capacity: 64, samples_per_insert: 1, error_buffer: 8}
evaluator: {episodes: 2, solved: 1000}
env: {prize: solved}
END
}

# learns [NAME]: more than what the last of its lines until now tells.
learns() {
    untraced read_progress "$@"
}

read_progress() {
    local name=${1:-run} before
    local fd=${fd_of[$name]}
    while read -t 0 -u "$fd" && IFS= read -r -t 60 -u "$fd" line; do
        :
    done
    event "$name" '"progress"' || return
    before=$(field train_iter)
    while event "$name" '"progress"'; do
        [ "$(field train_iter)" -le "$before" ] || return 0
    done
    return 1
}

# solved_as AS: job.yaml as that, in a folder of this name; its summary is $line.
solved_as() {
    run --separate-stderr "$LOCKSTEP" run job.yaml --as "$1" --timeout 100 \
        --json --out "$1"
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
    last_line "$output"
    [ "$(field solved)" = true ]
    [ "$(field losses)" = 0 ]
}
