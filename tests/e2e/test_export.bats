# `lockstep export`: what was learned, as a file that other programs load.
load helpers

setup() {
    enter_scratch
    "$LOCKSTEP" run "$cartpole" >run.txt 2>&1
}

# refused CODE TEXT ARGUMENT...
refused() {
    local code=$1 text=$2
    shift 2
    run "$LOCKSTEP" export "$@"
    [ "$status" -eq "$code" ]
    says "$text"
}

# python ...: with the reader of docs/examples.
python() {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$SOURCE_DIR/docs/examples python3 "$@"
}

@test "the file has each tensor, and its bytes are those that were saved" {
    run "$LOCKSTEP" export out/cartpole/latest --out p.safetensors
    [ "$status" -eq 0 ]
    says "p.safetensors, of out/cartpole/latest/policy.msgpack"
    says "  actor.0.weight  F32 4 x 32"
    says "  actor.0.bias    F32 32"
    [ "$(ls)" = $'out\np.safetensors\nrun.txt' ]
    run python "$SOURCE_DIR/docs/examples/policy.py" p.safetensors
    [ "$status" -eq 0 ]
    [ "$output" = "cartpole, after 7 updates
  actor.0.weight: [4, 32], 128 numbers
  actor.0.bias: [32], 32 numbers
  actor.1.weight: [32, 32], 1024 numbers
  actor.1.bias: [32], 32 numbers
  actor.2.weight: [32, 2], 64 numbers
  actor.2.bias: [2], 2 numbers" ]
    python - <<'END'
import json, struct
data = open("p.safetensors", "rb").read()
(size,) = struct.unpack_from("<Q", data)
assert size % 8 == 0 and data[8:9] == b"{" and size + 8 < len(data)
header = json.loads(data[8 : 8 + size])
assert header.pop("__metadata__")["seed"] == "0"
at = 0
for one in header.values():
    assert one["data_offsets"][0] == at # without a gap
    at = one["data_offsets"][1]
assert at == 4 * 1282 == len(data) - 8 - size
assert data[8 + size :] in open("out/cartpole/1/policy.msgpack", "rb").read()
END
}

@test "a policy that is read elsewhere keeps the pole up there" {
    "$LOCKSTEP" export out/cartpole --out p.safetensors >shown
    python - <<'END'
import math, random
from policy import act, read
_, tensors = read("p.safetensors")
draw = random.Random(1)
total = 0
for _ in range(5): # CartPole-v1
    x, v, a, w = (draw.uniform(-0.05, 0.05) for _ in range(4))
    for step in range(500):
        force = 10.0 if act(tensors, [x, v, a, w]) else -10.0
        push = (force + 0.05 * w * w * math.sin(a)) / 1.1
        spin = (9.8 * math.sin(a) - math.cos(a) * push) / (
            0.5 * (4 / 3 - 0.1 * math.cos(a) ** 2 / 1.1))
        x, v, a, w = (x + 0.02 * v, v + 0.02 * (push - 0.05 * spin * math.cos(a) / 1.1),
                      a + 0.02 * w, w + 0.02 * spin)
        total += 1
        if abs(x) > 2.4 or abs(a) > 12 * 2 * math.pi / 360:
            break
assert total / 5 > 350, total / 5
END
}

# bats test_tags=slow
@test "a policy that names no tensors is exported as the bytes that it saved" {
    cat >job.yaml <<'END'
job: job
plugin: counter
nodes: [{role: learner}, {role: collector}]
collector: {envs: 2, steps: 8}
stop: {env_step: 48}
END
    "$LOCKSTEP" run job.yaml >run.txt 2>&1
    run "$LOCKSTEP" export out/job job.yaml --out c.safetensors --json
    [ "$status" -eq 0 ]
    [ "$output" = '{"event":"export","weights":"out/job/latest/policy.msgpack","file":"c.safetensors","tensors":1}' ]
    run python -c 'from policy import read; print(read("c.safetensors")[1])'
    [ "$output" = "{'policy': ([1], (3,))}" ] # after three updates
}

# bats test_tags=slow
@test "a file that exists is not overwritten" {
    echo mine >p.safetensors
    refused 78 "p.safetensors exists: name another file, or replace it with --force" \
        out/cartpole --out p.safetensors
    [ "$(cat p.safetensors)" = mine ]
    run "$LOCKSTEP" export out/cartpole --out p.safetensors --force
    [ "$status" -eq 0 ]
    python "$SOURCE_DIR/docs/examples/policy.py" p.safetensors >shown
}

@test "what cannot be exported, or written, is named" {
    refused 78 "nothing: there is no such file or folder" nothing --out p
    refused 1 "record is damaged" out/cartpole/1/record --out p
    refused 1 "none/p" out/cartpole --out none/p
    refused 78 "out/cartpole/latest/policy.msgpack: " out/cartpole "$cartpole" \
        --set policy.hidden=16 --out p
    refused 2 "which policy? As in: lockstep export out/cartpole/latest"
    refused 2 "to which file? As in: lockstep export out/cartpole --out policy.safetensors" \
        out/cartpole
    [ ! -e p ]
    run "$LOCKSTEP" export --help
    [ "$status" -eq 0 ]
    says "--force"
}
