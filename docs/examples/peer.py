#!/usr/bin/env python3
"""A program that takes part in a Lockstep job as one of its nodes.

    peer.py JOB ID SECRET_FILE ENDPOINT NODES EPOCHS

It attaches to the node at ENDPOINT. Once NODES nodes are ready it emits "count" 300 times
and leads the barrier "step" for EPOCHS epochs, so its ID must be the lowest. It leaves when
each of them has emitted a "greet" and called its "double".
"""
import struct, sys
from peer_bus import Peer
from peer_wire import *

ENTERED, READY, LEFT, ABORT, EXPECT, ABSENT = range(1, 7)
ASK, AGAIN = 1, 2
MASK64 = (1 << 64) - 1

def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK64
    return x ^ x >> 31

def hash_member(id, incarnation):
    return mix(mix(id + 0x9E3779B97F4A7C15 & MASK64) ^ incarnation)

def hash_rules(group=b"", expected=0, fanout=0, go_on=0):  # FNV-1a
    h = 2166136261
    for byte in group + struct.pack(">III", expected, fanout, go_on):
        h = (h ^ byte) * 16777619 & MASK
    return h

class Barrier:
    """The leader's part of docs/barrier.md, among members that stay."""
    def __init__(self, peer, name=b"step"):
        self.peer, self.channel, self.rules = peer, b"ls.barrier." + name, hash_rules()
        self.epoch = self.since = self.phase = self.flags = self.left_flags = 0
        self.said, self.views, self.last = {}, set(), peer.id  # of this epoch, by the others
        peer.channels[self.channel], peer.at_tick = self.on_message, self.ask

    def view(self):
        members = [node.who for node in self.peer.nodes] + [(self.peer.id, self.peer.incarnation)]
        return sum(hash_member(*member) for member in members) + mix(self.rules) & MASK64

    def say(self, node, kind, bits=0, past=None):
        epoch, flags = (self.epoch, self.flags) if past is None else (past, self.left_flags)
        known = min(self.said.get(node, 0), READY)
        message = array(fix(2), fix(kind), fix(bits), fix(known), u64(node.who[1]), u64(epoch),
                        u64(self.view()), u64(self.epoch), u64(self.since),
                        u32(self.rules), u32(flags), u32(self.last))
        self.peer.tell(node, CHANNEL, bin32(message), name=self.channel)

    def wait(self, flags=0):
        """Enter the next epoch, and leave it with all others. Returns the flags of all."""
        self.phase, self.flags = ENTERED, self.flags | flags
        self.advance()
        self.peer.run(lambda: not self.phase)
        return self.left_flags

    def advance(self):
        nodes = self.peer.nodes
        if self.phase and self.views - {self.view()}:
            sys.exit("the members of the barrier do not count the same members")
        least = min((self.said.get(node, 0) for node in nodes), default=LEFT)
        if self.phase == ENTERED and least >= ENTERED:
            self.phase = READY
            for node in nodes:
                self.say(node, READY, ASK)
        if self.phase == READY and least >= READY:
            for node in nodes:
                self.say(node, LEFT)
            self.epoch, self.phase, self.left_flags, self.flags = self.epoch + 1, 0, self.flags, 0
            self.said, self.views = {}, set()

    def ask(self):                              # whoever waits asks, until it knows
        for node in self.peer.nodes:
            if self.phase and self.said.get(node, 0) < self.phase:
                self.say(node, self.phase, ASK | AGAIN)

    def on_message(self, node, data):
        _, kind, bits, known, to, epoch, view, next, since, rules, flags, last, *details = read(data)
        if to != self.peer.incarnation:
            return
        if kind == ABORT:
            sys.exit(f"node {details[0][1]} gives the epoch up: {details[0][2].decode()}")
        if kind == EXPECT and next > self.epoch:  # the others count this peer only from there on
            self.epoch = self.since = next
            self.said, self.views = {}, set()
        elif epoch < self.epoch and bits & ASK:
            self.say(node, LEFT, past=epoch)
        elif epoch == self.epoch and kind <= LEFT:
            if node not in self.said:
                self.last = node.who[0]
            self.said[node] = max(self.said.get(node, 0), kind)
            self.views.add(view)
            self.flags |= flags
            self.advance()
        if bits & AGAIN and epoch == self.epoch:
            self.say(node, self.phase or ABSENT)

def main(job, id, secret_file, endpoint, nodes, epochs):
    with open(secret_file, "rb") as file:
        peer = Peer(job.encode(), int(id), file.read())
    greeted, asked = set(), set()
    def on_greet(origin, data):
        print(f"greet {origin} {data.decode()}")
        greeted.add(origin)
    def double(node, data):
        asked.add(node.who[0])
        return data + data
    peer.events[b"greet"], peer.served[b"double"] = on_greet, double
    barrier = Barrier(peer)
    peer.attach(endpoint.encode())
    peer.run(lambda: sum(node.ready for node in peer.nodes) == int(nodes))
    for number in range(300):
        peer.emit(b"count", b"%d" % number)
    for epoch in range(int(epochs)):
        print(f"epoch {epoch} flags {barrier.wait(1):x}")
    peer.run(lambda: len(greeted) == len(asked) == int(nodes))
    peer.leave()

main(*sys.argv[1:])
