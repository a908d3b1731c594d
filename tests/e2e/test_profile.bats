# lockstep profile, and lockstep trace of recordings whose truth is known.
load helpers

setup() {
    enter_scratch
    mkdir -p run/trace
    "$BUILD_DIR/tests/e2e/recorded/recorded" run/trace "${iterations:-40}"
}

trace() {
    run --separate-stderr "$LOCKSTEP" trace "$@"
}

# query FILTER: of the one line of JSON in $output.
query() {
    jq -re "$1" <<<"$output"
}

@test "the table names the one that all wait for, its step, and what it costs" {
    trace run
    [ "$status" -eq 0 ]
    says "story: 40 iterations of 5 nodes; clocks agree within "
    says "collector 3 caused 99% of all waiting (3.20 s), 100% of it in env_step"
    says "env_step on collector 3 at the median of the others: -66% per iteration"
    [[ $output != *"collector 1 caused"* ]]
}

@test "the same as one line of JSON" {
    trace run --json
    [ "${#lines[@]}" -eq 1 ]
    [ "$(query '.blame[] | select(.share > 0.01) | "\(.node) \(.step)"')" = \
        "3 env_step" ]
    query '.steps[] | select(.node == 3 and .step == "env_step") |
           .p50_ms > 29.9 and .p50_ms < 30.1 and .works > 0.98'
    query '.clock_error_us > 0 and .clock_error_us < 150'
    query '.faster[0] | .at == "median of others" and (.gain - 0.66 | fabs) < 0.01'
}

@test "a job's folder means its latest run" {
    mkdir -p out/story/7
    mv run/trace out/story/7/
    ln -s 7 out/story/latest
    trace out/story
    [ "$status" -eq 0 ]
    says "collector 3 caused"
}

@test "Perfetto's protobuf has the sums of the table, and arrows" {
    trace run --out run.pftrace
    [ "$status" -eq 0 ]
    [ -z "$output" ]
    run "$SOURCE_DIR/tests/e2e/perfetto.py" run.pftrace
    echo "$output"
    [ "$status" -eq 0 ]
    query '.processes == ["collector 1", "collector 2", "collector 3",
                          "collector 4", "learner 0"]'
    query '.ms["collector 3/step/env_step"] - 1200 | fabs < 1'
    query '.ms["learner 0/step/env_step"] - 400 | fabs < 1'
    query '.ms["learner 0/wait/step"] - 808 | fabs < 1'
    # Each message, and each of the four that collector 3 has let go.
    query '.arrows >= 40 + 40 * 4'
}

@test "a page that needs nothing else" {
    trace run --html run.html
    [ "$status" -eq 0 ]
    [[ $(head -c 15 run.html) == "<!DOCTYPE html>" ]]
    run ! grep -E 'src=|href=|https?:|url\(' run.html
    grep -qF 'weights \u003cof> \u00223\u0022' run.html
    grep -qF '<p>collector 3 caused 99% of all waiting' run.html
}

@test "Prometheus' text form" {
    trace run --metrics run.prom
    [ "$status" -eq 0 ]
    run ! grep -vE '^(# (HELP|TYPE) |lockstep_[a-z_]+(\{[^ ]*\})? [0-9.e+-]+$)' run.prom
    grep -E '^lockstep_step_blamed_seconds_total\{.*node="3".*step="env_step"\} 3\.2' run.prom
    grep -E '^lockstep_step_seconds_count\{.*node="0".*step="env_step"\} 40$' run.prom
}

# profile ARGUMENT...: a job whose first collector that steps is slow, by 5 ms in
# each of ten steps; its pid is in slow.
profile() {
    cat >slow.yaml <<'END'
job: slow
plugin: faulty
nodes: [{role: learner}, {role: collector, count: 3}, {role: evaluator}]
collector: {steps: 10}
env: {slow: slow, slow_ms: 5}
END
    LOCKSTEP_PLUGIN_PATH=$plugins run --separate-stderr "$LOCKSTEP" profile \
        slow.yaml --steps 8 --set "env.slow=$PWD/slow" "$@"
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
}

@test "the slow one of real processes is named, with its step and its part" {
    profile --json --trace run.pftrace
    local started=$output slow
    slow=$(jq -r "select(.event == \"started\" and .pid == $(cat slow)) | .node" \
        <<<"$started")
    last_line "$output"
    output=$line
    query ".blame | max_by(.share) | .node == $slow and .step == \"collect\" and
           .of_step > 0.7"
    # Four wait 50 ms in each of eight iterations.
    query ".blame[] | select(.node == $slow) | .seconds > 1.5"
    query ".faster[0] | .node == $slow and .at == \"median of others\" and .gain > 0"
    query '.iterations == 9' # in the last one the evaluator works alone
    "$SOURCE_DIR/tests/e2e/perfetto.py" run.pftrace >sums
    # The work of a step in the table is its slices less its waits.
    jq -e --argjson ms "$(query \
        ".steps[] | select(.node == $slow and .step == \"collect\") | .worked_s * 1000")" \
        ".ms[\"collector $slow/step/collect\"] - \$ms | fabs < 1" sums
}

@test "the same of threads, in a table" {
    profile --as threads
    [[ $output =~ collector\ [123]\ caused\ [0-9]+%\ of\ all\ waiting ]]
    [[ $output =~ collect\ on\ collector\ [123]\ at\ the\ median\ of\ the\ others ]]
    [ -e out/slow/latest/trace/node-4.lstrace ]
}

@test "numbers have a point, whatever locale a plugin sets" {
    # Of the locales of a system nothing is needed: localedef complains of the rest.
    printf '%s\n' LC_NUMERIC 'decimal_point ","' 'thousands_sep ""' 'grouping -1' \
        'END LC_NUMERIC' >numbers
    printf '%s\n' CHARMAP '<U0000> /x00 NUL' '<U002C> /x2c COMMA' 'END CHARMAP' >letters
    run localedef -c -i ./numbers -f ./letters ./comma
    LOCPATH=$PWD LC_ALL='' LC_NUMERIC=comma profile --as threads --set env.locale=true --metrics run.prom --html run.html
    [[ $output =~ all\ waiting:\ [0-9]+\.[0-9]+\ s ]]
    grep -qE '^lockstep_step_seconds_sum\{.*\} [0-9]+\.[0-9]+$' run.prom
    run ! grep -vE '^(# (HELP|TYPE) |lockstep_[a-z_]+(\{[^}]*\})? [0-9.e+-]+$)' run.prom
    grep -qE '<td>[0-9]+\.[0-9]+%' run.html
}

@test "in a simulation wrong clocks change nothing but the time that is shown" {
    profile --as sim --json
    [[ $output != *$'\n\n'* ]] # each line is an object
    last_line "$output"
    # Of three that end at the same time, whom the others wait for is a matter
    # of nanoseconds.
    local right wrong who='.blame | max_by(.share) |
        "\(.step) \(.seconds * 100 | round)"'
    right=$(jq -re "$who" <<<"$line")
    rm slow
    echo 'random: {skew: {offset_ms: 3000, drift: 0.0001}}' >skew.yaml
    profile --as sim --json --faults skew.yaml
    last_line "$output"
    wrong=$(jq -re "$who" <<<"$line")
    [[ $right =~ ^collect\  ]]
    [ "$right" = "$wrong" ]
    jq -e '.clock_error_us > 0 and .clock_error_us < 1000' <<<"$line"
}

@test "a job with a coordinator has the steps alone" {
    run --separate-stderr "$LOCKSTEP" profile \
        "$SOURCE_DIR/configs/cartpole-service.yaml" --steps 2
    [ "$status" -eq 0 ]
    says "nobody waited in a barrier or an exchange"
    [[ $output =~ [12]\ learner\ +learn\  ]]
}

@test "what cannot be profiled is said" {
    run --separate-stderr "$LOCKSTEP" profile "$cartpole" --faults all
    [ "$status" -eq 2 ]
    [[ $stderr == *"--faults is for a simulation: add --as sim"* ]]
    run --separate-stderr "$LOCKSTEP" profile \
        "$SOURCE_DIR/configs/barrier.yaml" --steps 3
    [ "$status" -eq 2 ]
    [[ $stderr == *"--steps: members do as many epochs"* ]]
}

@test "only files of its own are replaced, and what is in the way is known before the run" {
    local option
    for option in --trace --html --metrics; do
        echo mine >file
        run --separate-stderr "$LOCKSTEP" profile "$cartpole" $option file
        [ "$status" -eq 78 ]
        [[ $stderr == "lockstep: $option: file exists, and is not "*": name another file" ]]
        [ "$(<file)" = mine ]
        run --separate-stderr "$LOCKSTEP" profile "$cartpole" $option none/file
        [ "$status" -eq 78 ]
        [[ $stderr == "lockstep: $option: writing none/file: its folder does not exist" ]]
        [ ! -e out ]
        trace run ${option/--trace/--out} file
        [ "$status" -eq 78 ]
        rm file
        trace run ${option/--trace/--out} file
        trace run ${option/--trace/--out} file
        [ "$status" -eq 0 ]
    done
}

@test "what is not a recording is refused by its name" {
    trace nowhere
    [ "$status" -ne 0 ]
    [[ $stderr == *"nowhere/trace"* ]]
    head -c 100 run/trace/node-1.lstrace >run/trace/half
    mv run/trace/half run/trace/node-1.lstrace
    trace run
    [ "$status" -ne 0 ]
    [[ $stderr == *"run/trace/node-1.lstrace: "* ]]
    trace
    [ "$status" -eq 2 ]
    [[ $stderr == *"which run?"* ]]
    trace run --out "$PWD/none/run.pftrace"
    [ "$status" -eq 78 ]
}
