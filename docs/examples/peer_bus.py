"""A peer of a Lockstep job, written from docs/wire-format.md alone: who is there, events,
streams and calls. To be short it does without long events, dialling again what broke,
and modes of security but PLAIN.
"""
import hmac, secrets, struct, sys, time
import zmq
from peer_wire import *

WINDOW = 1024, 8 << 20                          # messages and bytes that each node may have under way

class Node:                                     # another one, and the link to it
    def __init__(self, endpoint, sub):
        self.endpoint, self.sub, self.heard = endpoint, sub, time.monotonic()
        self.link, self.challenge = secrets.randbits(63) + 1, secrets.token_hex(16).encode()
        self.who = self.present = None          # (id, incarnation): as proved; as its presence says
        self.ready, self.got = False, [0, 0]    # messages and bytes that it sent outside its stream
        self.sent, self.waiting, self.number, self.acked = {}, [], 0, 0  # the stream to it
        self.room = 16, 2 << 20                 # what everybody has room for at first
        self.next, self.repeats, self.acks = 1, 0, 0  # the stream from it

class Peer:
    def __init__(self, job, id, secret, bind="tcp://127.0.0.1:*"):
        self.job, self.id, self.secret, self.incarnation = job, id, secret, secrets.randbits(63) + 1
        self.nodes, self.listeners, self.sequences = [], set(), {}
        self.events, self.served, self.channels = {}, {}, {b"ls.call": self.on_call}
        self.heartbeats, self.due, self.leaving, self.at_tick = 0, 0, False, lambda: None
        self.zmq, self.poller = zmq.Context(), zmq.Poller()
        self.zap, self.pub = self.zmq.socket(zmq.REP), self.zmq.socket(zmq.XPUB)
        self.zap.bind("inproc://zeromq.zap.01")  # where libzmq asks who may come in
        self.pub.plain_server, self.pub.xpub_verboser, self.pub.sndhwm = True, True, 0
        self.pub.bind(bind)
        self.endpoint = self.pub.last_endpoint.rstrip(b"\0")
        self.poller.register(self.zap), self.poller.register(self.pub, zmq.POLLIN)

    # ---- who may come in, and who is there

    def password(self, id, incarnation, address):
        claim = struct.pack(">IQ", id, incarnation) + address
        digest = keyed_hash(self.secret, b"lockstep password 2", claim).hex().encode()
        return b"2 %x %s %s" % (incarnation, digest, address)

    def proof(self, id, incarnation, address, challenge):
        claim = struct.pack(">IQH", id, incarnation, len(address)) + address + challenge
        return keyed_hash(self.secret, b"lockstep proof 2", claim)

    def on_zap(self):
        version, request, domain, address, identity, mechanism, *shown = self.zap.recv_multipart()
        try:
            wanted = self.password(int(shown[0]), int(shown[1].split()[1], 16), self.endpoint)
            good = hmac.compare_digest(wanted, shown[1])
        except (IndexError, ValueError, struct.error):  # a stranger may show anything
            good = False
        answer = [b"200", b"", shown[0], b""] if good else [b"400", b"", b"", b""]
        self.zap.send_multipart([version, request, *answer])

    def attach(self, endpoint):
        node = Node(endpoint, self.zmq.socket(zmq.SUB))
        node.sub.plain_username = b"%d" % self.id
        node.sub.plain_password = self.password(self.id, self.incarnation, endpoint)
        node.sub.reconnect_ivl, node.sub.rcvhwm = -1, 0  # a new connection would have to be proved again
        topics = [b"a%s\0" % node.challenge, b"c\0", b"i%d\0" % self.id]
        for event in self.events:
            topics += [b"e%s\0" % event, b"l%x/%d/%s" % (node.link, self.id, event)]
        presence = b"~H2/%x//%s/%d/%x/0///%s" % (
            node.link, self.job, self.id, self.incarnation, self.endpoint)
        for topic in topics + [presence]:       # it comes last: all else is in force by then
            node.sub.subscribe(topic)
        node.sub.connect(endpoint.decode())
        self.poller.register(node.sub, zmq.POLLIN)
        self.nodes.append(node)
        return node

    def drop(self, node):                       # its SUB closed: so this peer's presence there ends
        self.poller.unregister(node.sub)
        node.sub.close(linger=0)
        self.nodes.remove(node)

    def on_subscription(self):
        frame = self.pub.recv(copy=False)
        on, topic = frame.bytes[0], frame.bytes[1:]
        user = frame.get("User-Id").encode() if on else None  # the end of a connection has none
        if topic[:1] == b"a" and on:            # a challenge
            proof = self.proof(self.id, self.incarnation, self.endpoint, topic[1:-1])
            self.publish(topic, PROOF, bin32(proof), name=self.job)
        elif topic[:1] == b"l":                 # a listening
            link, id, event = topic[1:].split(b"/", 2)
            if not on:
                self.listeners.discard((link, int(id), event))
            elif id == user:
                self.listeners.add((link, int(id), event))
        elif topic[:3] == b"~H2":               # a presence
            _, link, _, job, id, incarnation, config, role, labels, endpoint = topic.split(b"/", 9)
            node = next((n for n in self.nodes if n.endpoint == endpoint), None)
            if on and (job, id) == (self.job, user):
                node = node or self.attach(endpoint)
                node.present = int(id), int(incarnation, 16)
                self.heartbeat()                # it reads that it is listed before all else that is for it
            elif node and node.present == (int(id), int(incarnation, 16)):
                self.drop(node)

    # ---- what is said

    def publish(self, topic, kind, *more, name=b"", sequence=0):
        self.pub.send(topic + array(fix(2), fix(kind), u32(xxh32(self.job, 2)), u32(self.id),
                                    u64(self.incarnation), u64(sequence), fix(0), str8(name), *more))

    def tell(self, node, kind, *more, **fields):
        self.publish(b"i%d\0" % node.who[0], kind, *more, **fields)

    def limits(self, node):                     # all that came has been handled, so all the window is free
        return [u64(got + free) for got, free in zip(node.got, WINDOW)] + [u64(got) for got in node.got]

    def heartbeat(self):
        self.heartbeats += 1
        members = [array(u32(n.present[0]), u64(n.present[1]), fix(READY if n.ready else PRESENT), i32(0),
                         str8(n.endpoint), u64(0), u64(0), *self.limits(n)) for n in self.nodes if n.present]
        self.publish(b"c\0", HEARTBEAT, u64(0), bin32(array32(members)),
                     name=self.job, sequence=self.heartbeats)

    def credit(self, node):
        self.tell(node, CREDIT, *self.limits(node), sequence=node.who[1])

    def emit(self, event, data):                # to all that listen, each once and in order
        self.sequences[event] = self.sequences.get(event, 0) + 1
        listening = {id for _, id, name in self.listeners if name == event}
        for node in self.nodes:
            if node.ready and node.who[0] in listening:
                self.send(node, event, data, EVENT, self.sequences[event])

    def send(self, node, name, data, of, sequence=0):  # in the stream to that node
        node.waiting.append((name, data, of, sequence))
        self.push(node)

    def push(self, node):                       # what it has room for
        while node.waiting and len(node.sent) < node.room[0] and \
                sum(len(m[1]) for m in [*node.sent.values(), node.waiting[0]]) <= node.room[1]:
            node.number += 1
            node.sent[node.number] = node.waiting.pop(0)
            self.transmit(node, node.number)

    def transmit(self, node, number):
        name, data, of, sequence = node.sent[number]
        self.tell(node, RELIABLE, u64(node.who[1]), u64(number), fix(of), u32(len(data)), u32(0), bin32(data),
                  name=name, sequence=sequence)

    # ---- what is heard

    def on_message(self, node):
        head, *tail = node.sub.recv_multipart()
        topic, header = head.split(b"\0", 1)
        version, kind, job, id, incarnation, sequence, flags, name, *more = read(header)
        if kind == PROOF and topic[1:] == node.challenge:
            proof = self.proof(id, incarnation, node.endpoint, node.challenge)
            if proof in (more[0][:32], more[0][32:]):
                node.who = id, incarnation
        if kind == PROOF or node.who != (id, incarnation):
            return                              # nobody's, as long as nothing is proved
        name, data, node.heard = name or topic[1:], tail[0] if tail else more[-1], time.monotonic()
        if kind == HEARTBEAT:
            for at, life, state, _, _, *sent in read(data):
                if (at, life) == (self.id, self.incarnation) and state in (PRESENT, READY):
                    node.got = sent[:2]         # what is missing was lost on the way
                    if not node.ready and node.present == node.who:
                        node.ready = True
                        self.credit(node), self.heartbeat()  # from here on this peer counts
        elif kind in (EVENT, CHUNK, BATCH):
            for each in data if kind == BATCH else [data]:
                node.got = [node.got[0] + 1, node.got[1] + len(each)]
                if kind != CHUNK:
                    self.events[name](id, each)
            if node.got[0] % (WINDOW[0] // 4) == 0:
                self.credit(node)
        elif kind == CREDIT and flags & TELL:
            self.credit(node)
        elif kind == RELIABLE and more[0] == self.incarnation:
            self.on_reliable(node, name, data, *more[1:3])
        elif kind == ACK and more[0] == self.incarnation and sequence > node.acked:
            node.acked, node.room = sequence, (more[4], more[5])
            node.sent = {number: m for number, m in node.sent.items() if number > more[1]}
            self.push(node)
        elif kind == CHANNEL and name in self.channels:
            self.channels[name](node, data)
        elif kind == FAREWELL:
            self.drop(node)
        elif kind == VERDICT and more[1] == self.incarnation:
            sys.exit(f"node {id} says: {more[0]}")  # it is no member; it may begin anew, in a new incarnation

    def on_reliable(self, node, name, data, number, of):
        node.repeats += number < node.next
        if number == node.next:                 # what comes early is not kept: it will come again
            node.next += 1
            if of == CHANNEL and name in self.channels:
                self.channels[name](node, data)
            elif of == EVENT:
                self.events[name](node.who[0], data)
        node.acks += 1
        self.tell(node, ACK, u64(node.who[1]), u64(node.next - 1), u64(0), u64(node.repeats),
                  u64(WINDOW[0]), u64(WINDOW[1]), sequence=node.acks)

    def on_call(self, node, data):
        version, kind, to, number, *more = read(data)
        if kind == 1 and to == self.incarnation:
            done = self.served.get(more[2], lambda *_: None)(node, more[3])
            end, what = (fix(4), bin16(b"task name error")) if done is None else (fix(3), bin32(done))
            self.send(node, b"ls.call", array(fix(1), end, u64(node.who[1]), u64(number), what), CHANNEL)

    # ---- time

    def run(self, until):
        while not until():
            for socket, _ in self.poller.poll(50):
                node = next((n for n in self.nodes if n.sub is socket), None)
                if socket is self.zap:
                    self.on_zap()
                elif socket is self.pub:
                    self.on_subscription()
                elif node:
                    self.on_message(node)
            now = time.monotonic()
            if now >= self.due:
                self.tick(now, now - self.due > 1)
                self.due = now + 0.25

    def tick(self, now, late):
        self.heartbeat()
        if self.leaving:
            self.publish(b"c\0", FAREWELL, i32(0))
        for node in self.nodes:
            if late:                            # this peer stood still: it accuses nobody of that
                node.heard = now
            if now - node.heard > 2:
                sys.exit(f"{node.endpoint.decode()} is silent")
            for number in list(node.sent)[:256]:
                self.transmit(node, number)     # it may have been lost
        self.at_tick()

    def leave(self):
        self.run(lambda: not any(node.sent or node.waiting for node in self.nodes))
        self.leaving, self.due = True, 0
        self.run(lambda: not self.nodes)        # whoever has read the farewell takes its presence back
        self.zmq.destroy(linger=500)
