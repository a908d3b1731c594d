"""python3 sampler.py LENGTH SEED EPOCH SPREAD RANK RANKS [CONSUMED]: the samples of a rank, as in docs/samplers.md."""

import sys

MASK = (1 << 64) - 1


def mix(bits):
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
    return bits ^ bits >> 31


def generator(seed, stream):
    """xoshiro256**, its state filled by splitmix64."""
    counter, state = seed ^ mix(stream), []
    for _ in range(4):
        counter = counter + 0x9E3779B97F4A7C15 & MASK
        state.append(mix(counter))
    rotate = lambda bits, by: (bits << by | bits >> 64 - by) & MASK
    while True:
        yield rotate(state[1] * 5 & MASK, 7) * 9 & MASK
        shifted = state[1] << 17 & MASK
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = rotate(state[3], 45)


def below(numbers, bound):
    excess = (1 << 64) % bound
    return next(bits for bits in numbers if bits >= excess) % bound


def order(length, seed, epoch):
    numbers, samples = generator(seed, epoch), list(range(length))
    for i in range(length - 1, 0, -1):
        j = below(numbers, i + 1)
        samples[i], samples[j] = samples[j], samples[i]
    return samples


def of_rank(samples, spread, rank, ranks, consumed=0):
    left = len(samples) - consumed
    n = {"dist": -(-left // ranks), "cut": left // ranks, "unrepeatdist": -((rank - left) // ranks)}[spread]
    return [samples[(consumed + rank + i * ranks) % len(samples)] for i in range(n)]


if __name__ == "__main__":
    length, seed, epoch = map(int, sys.argv[1:4])
    print(*of_rank(order(length, seed, epoch), sys.argv[4], *map(int, sys.argv[5:])))
