"""The bytes of docs/wire-format.md: values in their forms, and hashes."""
import hashlib, struct
import msgpack

# kinds of messages
EVENT, CHUNK, HEARTBEAT, CREDIT, CHANNEL, FAREWELL, BATCH, VERDICT, RELIABLE, ACK, PROOF = range(1, 12)
TELL, PRESENT, READY = 8, 1, 4                  # a flag, and states of members
MASK = (1 << 32) - 1

# Each value in the one form that it has here: msgpack by itself would choose the shortest.
def fix(n): return bytes([n])
def u32(n): return b"\xce" + struct.pack(">I", n)
def u64(n): return b"\xcf" + struct.pack(">Q", n)
def i32(n): return b"\xd2" + struct.pack(">i", n)
def str8(data): return b"\xd9" + bytes([len(data)]) + data
def bin16(data): return b"\xc5" + struct.pack(">H", len(data)) + data
def bin32(data): return b"\xc6" + struct.pack(">I", len(data)) + data
def array(*items): return bytes([0x90 + len(items)]) + b"".join(items)
def array32(items): return b"\xdd" + struct.pack(">I", len(items)) + b"".join(items)
def read(data): return msgpack.unpackb(data, raw=True)

def keyed_hash(secret, purpose, data):
    return hashlib.blake2b(purpose + b"\0" + data, key=secret, digest_size=32).digest()

def xxh32(data, seed):
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    def turn(x, n):
        x &= MASK
        return (x << n | x >> 32 - n) & MASK
    words = struct.unpack_from(f"<{len(data) // 4}I", data)
    striped = len(words) & ~3
    lanes = [seed + p1 + p2, seed + p2, seed, seed - p1]
    for i, word in enumerate(words[:striped]):
        lanes[i % 4] = turn(lanes[i % 4] + word * p2, 13) * p1
    h = sum(turn(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) if striped else seed + p5
    h += len(data)
    for word in words[striped:]:
        h = turn(h + word * p3, 17) * p4
    for byte in data[len(words) * 4:]:
        h = turn(h + byte * p5, 11) * p1
    h &= MASK
    h = (h ^ h >> 15) * p2 & MASK
    h = (h ^ h >> 13) * p3 & MASK
    return h ^ h >> 16
