"""What credentials.h says of its hashes, in Python's own library. Prints the
vectors of tests/bus/test_credentials.c and test_signature.c: python3 tests/bus/credentials_vectors.py
"""
from hashlib import blake2b

key, address = bytes(range(32)), b"tcp://127.0.0.1:21500"
who = (3).to_bytes(4, "big") + 0x123456789ABCDEF.to_bytes(8, "big")


def digest(purpose, rest=b"", size=32, secret=key):
    return blake2b(purpose + b"\0" + rest, key=secret, digest_size=size).hexdigest()


print("password ", digest(b"lockstep password 2", who + address))
print("proof    ", digest(b"lockstep proof 2", who + len(address).to_bytes(2, "big") + address + b"c0ffee"))
print("signature", digest(b"lockstep presence 2", b"some bytes", 16))
print("in curve ", digest(b"lockstep presence 2", b"some bytes", 64, b""))
print("sign seed", digest(b"lockstep sign 2"))
