#!/usr/bin/env python3
"""perfetto.py TRACE: what a trace of Perfetto holds, as one line of JSON.

It reads the protobuf by itself, by the numbers of the fields in
trace_packet.proto and track_event.proto, and is strict: slices end in order,
on a thread that was described, and every arrow has two ends."""
import collections
import json
import struct
import sys


def fields(data):
    """The fields of a message: (number, value); bytes of those with a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 1:
            (value,) = struct.unpack_from("<Q", data, at)
            at += 8
        elif kind == 2:
            size = varint()
            assert at + size <= len(data), "a field is cut"
            value = data[at:at + size]
            at += size
        else:
            raise AssertionError(f"wire type {kind}")
        yield key >> 3, value


def message(data):
    out = collections.defaultdict(list)
    for number, value in fields(data):
        out[number].append(value)
    return out


def main(path):
    processes, threads = {}, {}
    stacks = collections.defaultdict(list)
    times = collections.Counter()  # ns, by process, category and name
    last = collections.defaultdict(int)
    begins, ends = collections.Counter(), collections.Counter()
    with open(path, "rb") as file:
        trace = file.read()
    for number, packet in fields(trace):
        assert number == 1, "a trace is packets"
        packet = message(packet)
        assert packet[10] == [1], "a sequence"
        for data in packet[60]:
            track = message(data)
            if track[3]:
                process = message(track[3][0])
                processes[process[1][0]] = process[6][0].decode()
            else:
                thread = message(track[4][0])
                threads[track[1][0]] = processes[thread[1][0]]
        for data in packet[11]:
            event = message(data)
            track, now = event[11][0], packet[8][0]
            assert now >= last[track], "events are in order"
            last[track] = now
            begins.update(event[47])
            ends.update(event[48])
            if event[9] == [1]:
                category, name = event[22][0].decode(), event[23][0].decode()
                stacks[track].append((threads[track], category, name, now))
            elif event[9] == [2]:
                process, category, name, then = stacks[track].pop()
                times[process, category, name] += now - then
    assert not any(stacks.values()), "every slice ends"
    assert begins == ends and set(begins.values()) <= {1}, "arrows have two ends"
    print(json.dumps({
        "processes": sorted(processes.values()),
        "arrows": len(begins),
        "ms": {"/".join(key): round(ns / 1e6, 3) for key, ns in times.items()},
    }))


main(sys.argv[1])
