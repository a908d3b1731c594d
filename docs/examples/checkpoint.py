"""python3 checkpoint.py FOLDER [EPOCH]: its checkpoints, or the arrays of one, as in docs/checkpoints.md."""

import os
import sys

import msgpack
try:
    from xxhash import xxh3_64_intdigest as xxh3
except ImportError:
    xxh3 = None  # its checksums are not looked at
TYPES = {"bytes": "B", "u8": "B", "i32": "i", "i64": "q", "f32": "f", "f64": "d"}


def read(name):
    with open(os.path.join(sys.argv[1], name), "rb") as file:
        return file.read()


def shards(name, check=None):
    """The shards of an entry; check: what the checksum in its tail must be."""
    data, at, found = read(name), 0, {}
    size, told = (int.from_bytes(part, "little") for part in (data[-16:-8], data[-8:]))
    manifest, good = data[-26 - size : -26], data[-26:-16] == b"\xc4\x18lsvault1"
    good = good and check in (None, told) and (not xxh3 or xxh3(manifest, seed=size) == told)
    for shard in msgpack.unpackb(manifest)["shards"] if good else []:
        inside = "file" not in shard
        found[shard["name"]] = bytes = data[at : at + shard["size"]] if inside else read(shard["file"])
        at += shard["size"] if inside else 0
        good = good and len(bytes) == shard["size"] and (not xxh3 or xxh3(bytes) == shard["xxh3"])
    return found if good else sys.exit(f"{name} is damaged")


for epoch in sys.argv[2:] or sorted(n[9:] for n in os.listdir(sys.argv[1]) if n[:9] == "manifest."):
    manifest = msgpack.unpackb(shards(f"manifest.{int(epoch):06d}")["value"])
    print("epoch", manifest["epoch"], *(entry["node"] for entry in manifest["entries"]))
    for entry in manifest["entries"] if sys.argv[2:] else []:
        found = shards(f"{entry['node']}.{int(epoch):06d}", entry["xxh3"])
        for blob in msgpack.unpackb(found["blob_names"])["blobs"]:
            array = memoryview(found[blob["name"]]).cast(TYPES[blob["type"]]).tolist()
            print("", entry["node"], blob["name"], blob["shape"], array)
