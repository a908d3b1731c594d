"""What `lockstep export` writes (docs/runs.md), with nothing but Python:

    python3 policy.py cartpole.safetensors                 what is in it
    python3 policy.py cartpole.safetensors 0 0 0.1 0.5     cartpole's action there
"""

import json
import math
import struct
import sys

CODES = {"F32": "f", "F64": "d", "I32": "i", "U8": "B"}


def read(path):
    """Notes, and each tensor: its shape, and its numbers, row after row."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + size])
    notes = header.pop("__metadata__", {})
    tensors = {}
    for name, one in header.items():
        begin, end = one["data_offsets"]
        code = CODES[one["dtype"]]
        n = (end - begin) // struct.calcsize(code)
        numbers = struct.unpack_from(f"<{n}{code}", data, 8 + size + begin)
        tensors[name] = one["shape"], numbers
    return notes, tensors


def act(tensors, row):
    """The action that cartpole's policy takes for an observation."""
    layer = 0
    while f"actor.{layer}.weight" in tensors:
        (_, n_out), weight = tensors[f"actor.{layer}.weight"]
        _, bias = tensors[f"actor.{layer}.bias"]
        if layer > 0:
            row = [math.tanh(value) for value in row]
        row = [
            bias[j] + sum(value * weight[i * n_out + j] for i, value in enumerate(row))
            for j in range(n_out)
        ]
        layer += 1
    return row.index(max(row))


if __name__ == "__main__":
    notes, tensors = read(sys.argv[1])
    if len(sys.argv) > 2:
        print(act(tensors, [float(text) for text in sys.argv[2:]]))
    else:
        print(f"{notes['plugin']}, after {notes['train_iter']} updates")
        for name, (shape, numbers) in tensors.items():
            print(f"  {name}: {shape}, {len(numbers)} numbers")
