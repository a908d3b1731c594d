"""What an entry of a vault holds (docs/state.md), such as what a run has learned:

    python3 entry.py out/cartpole/latest/policy.msgpack

Its checksums are looked at if the package xxhash is there."""

import os
import struct
import sys

import msgpack

try:
    from xxhash import xxh3_64_intdigest as xxh3
except ImportError:
    xxh3 = None

TAIL = struct.Struct("<2s8sQQ")


def damaged(path, why):
    sys.exit(f"{path} is damaged: {why}")


def read_manifest(path, data):
    """The manifest, and what stands in front of it."""
    if len(data) < TAIL.size:
        damaged(path, "it is too short")
    head, magic, size, check = TAIL.unpack(data[-TAIL.size :])
    end = len(data) - TAIL.size
    if head != b"\xc4\x18" or magic != b"lsvault1" or size > end:
        damaged(path, "it does not end as an entry does")
    manifest = data[end - size : end]
    if xxh3 and xxh3(manifest, seed=size) != check:
        damaged(path, "its manifest has another checksum")
    return msgpack.unpackb(manifest), data[: end - size]


def read_entry(path):
    """Each shard: its name, and its bytes."""
    with open(path, "rb") as file:
        manifest, rest = read_manifest(path, file.read())
    for shard in manifest["shards"]:
        if "file" in shard:
            of = os.path.join(os.path.dirname(path), shard["file"])
            with open(of, "rb") as file:
                data = file.read()
        else:
            of, data, rest = path, rest[: shard["size"]], rest[shard["size"] :]
        if len(data) != shard["size"] or xxh3 and xxh3(data) != shard["xxh3"]:
            damaged(of, f"{shard['name']} is not what was written")
        yield shard["name"], data


for name, data in read_entry(sys.argv[1]):
    print(f"{name}: {len(data)} bytes")
    if sys.argv[1].endswith(".msgpack"):
        for key, value in msgpack.unpackb(data).items():
            print(f"  {key}: {value if key != 'weights' else '...'}")
