# lockstep keygen: what it writes, for whom, and what it never touches.
load helpers

setup() {
    enter_scratch
    umask 022
}

# keygen ARGUMENT...: one that must do.
keygen() {
    run --separate-stderr "$LOCKSTEP" keygen "$@"
    [ "$status" -eq 0 ] || { echo "$stderr" >&2; return 1; }
}

# refused CODE TEXT ARGUMENT...
refused() {
    local code=$1 text=$2
    shift 2
    run --separate-stderr "$LOCKSTEP" keygen "$@"
    [ -z "$output" ]
    output=$stderr
    [ "$status" -eq "$code" ] || { echo "exit $status: $stderr" >&2; false; }
    says "$text"
}

# files FOLDER: their modes and names, on one line.
files() {
    (cd "$1" && stat -c '%a %n' -- * | tr '\n' ' ')
}

write_job() {
    cat >job.yaml <<'END'
job: good
plugin: cartpole
nodes: [{role: learner}, {role: collector, count: 2},
        {role: evaluator}]
evaluator: {solved: 475}
END
}

@test "a certificate and a secret key for each node" {
    keygen keys --id 3 --id 40
    [ "$(files keys)" = "644 node-3.cert 600 node-3.cert_secret \
644 node-40.cert 600 node-40.cert_secret " ]
    [ "$(stat -c %a keys)" = 700 ]
    says "made keys/node-3.cert and keys/node-3.cert_secret"
    says "scp -p keys/*.cert keys/node-3.cert_secret HOST"
    grep -q 'id = "40"' keys/node-40.cert
    [[ $(<keys/node-40.cert) != *secret-key* ]]
    [ "$(grep -h public-key keys/*.cert | sort -u | wc -l)" -eq 2 ]
    # what the secret file adds is its secret
    local secret
    secret=$(sed -n 's/.*secret-key = "\(.*\)"/\1/p' keys/node-3.cert_secret)
    [ ${#secret} -eq 40 ]
    [[ $output$stderr != *"$secret"* ]]
}

@test "every node of a job, with its role and label" {
    write_job
    keygen keys/ job.yaml
    [ "$(find keys -type f | wc -l)" -eq 8 ]
    grep -q 'role = "learner"' keys/node-0.cert
    grep -q 'labels = "planned"' keys/node-0.cert
    grep -q 'role = "evaluator"' keys/node-3.cert_secret
    says "made keys/node-0.cert and keys/node-0.cert_secret  learner [planned]"
}

@test "one node of a job, that was added" {
    write_job
    keygen keys job.yaml
    local before
    before=$(cat keys/*)
    keygen keys job.yaml --set nodes.1.count=3 --id 4
    [ "$(find keys -type f | wc -l)" -eq 10 ]
    rm keys/node-4.cert*
    [ "$(cat keys/*)" = "$before" ]
}

@test "one line of JSON" {
    write_job
    keygen keys job.yaml --id 0 --enrolment --json
    [ "$output" = '{"event":"keygen","made":[{"id":0,"role":"learner",'\
'"labels":"planned","certificate":"keys/node-0.cert",'\
'"secret":"keys/node-0.cert_secret"},{"enrolment":true,'\
'"certificate":"keys/enrolment.cert",'\
'"secret":"keys/enrolment.cert_secret"}]}' ]
}

@test "a key for those who ask for an id" {
    keygen keys --enrolment
    [ "$(files keys)" = "644 enrolment.cert 600 enrolment.cert_secret " ]
    grep -q 'enrolment = "yes"' keys/enrolment.cert
}

@test "nothing is overwritten, and then nothing is written" {
    keygen keys --id 3
    local before
    before=$(cat keys/*)
    refused 78 'keys/node-3.cert is there already' keys --id 2 --id 3
    says "nothing was written"
    [ "$(cat keys/*)" = "$before" ]
    rm keys/node-3.cert
    refused 78 'keys/node-3.cert_secret is there already' keys --id 3
    keygen keys --enrolment
    refused 78 'keys/enrolment.cert is there already' keys --enrolment
}

@test "a folder is made, but not where there is none, nor where all may write" {
    refused 78 'absent/keys is to be made in is not there' absent/keys --id 3
    mkdir open
    chmod 777 open
    refused 78 'chmod go-w open' open --id 3
    [ -z "$(ls -A open)" ]
    touch file
    refused 78 'file is not a folder' file --id 3
}

@test "usage: exit 2, with what to write" {
    refused 2 'which folder?'
    refused 2 'lockstep keygen keys --id 3' keys
    refused 2 'whole number' keys --id x
    write_job
    refused 2 'it has 0, 1, 2, 3' keys job.yaml --id 9
    refused 78 'absent.yaml' keys absent.yaml
    [ ! -e keys ]
}

@test "help on keygen teaches by example" {
    run "$LOCKSTEP" help keygen
    [ "$status" -eq 0 ]
    says "  lockstep keygen keys job.yaml "
    says "  scp -p keys/*.cert keys/node-3.cert_secret box3:keys/"
    run "$LOCKSTEP" --help
    says "lockstep keygen"
}
