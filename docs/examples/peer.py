#!/usr/bin/env python3
"""peer.py JOB ID SECRET_FILE ENDPOINT NODES EPOCHS - one of the nodes of a Lockstep job.

Written from docs/wire-format.md alone. Attaches to the node at ENDPOINT, in a mesh in mode
plain. Once NODES nodes are ready it emits "count" 300 times, and leads the barrier "step" for
EPOCHS epochs: its ID must be the lowest. It leaves when each has emitted "greet" and called
its "double". It takes no long events, and does not dial again what broke.
"""
import contextlib, functools, hashlib, hmac, itertools, pathlib, secrets, signal, struct, sys, time
import msgpack, zmq

JOB, ID, SEED = sys.argv[1].encode(), int(sys.argv[2]), sys.argv[4].encode()
SECRET, NODES, EPOCHS = pathlib.Path(sys.argv[3]).read_bytes(), *map(int, sys.argv[5:])
LIFE = secrets.randbits(63) + 1         # this incarnation
EVENT, _, HEARTBEAT, _, CHANNEL, FAREWELL, BATCH, VERDICT, RELIABLE, ACK, PROOF = range(1, 12)
STEP, ENTERED, READY, LEFT, ABORT = b"ls.barrier.step", 1, 2, 3, 4
RULES = 2166136261 * 16777619**12 % 2**32  # FNV-1a of 12 zeros: no option is set
WINDOW, UNDER_WAY = (1024, 8 << 20), 16  # room here; messages that all have room for
FORMS = {"B": (b"", "B"), "I": (b"\xce", "I"), "Q": (b"\xcf", "Q"), "i": (b"\xd2", "i"),
         "str8": (b"\xd9", "B"), "bin16": (b"\xc5", "H"), "bin32": (b"\xc6", "I")}

def pack(forms, *values):               # msgpack itself takes the shortest form of each
    out = bytes([0x90 + len(values)])
    for (mark, code), value in zip(map(FORMS.get, forms.split()), values, strict=True):
        size, text = (len(value), value) if isinstance(value, bytes) else (value, b"")
        out += mark + struct.pack(">" + code, size) + text
    return out

def keyed_hash(purpose, id, life, rest):
    data = b"lockstep %s 2\0" % purpose + struct.pack(">IQ", id, life) + rest
    return hashlib.blake2b(data, key=SECRET, digest_size=32)
def password(id, life, address):
    digest = keyed_hash(b"password", id, life, address).hexdigest().encode()
    return b"2 %x %s %s" % (life, digest, address)
def proof(id, life, address, challenge):
    rest = struct.pack(">H", len(address)) + address + challenge
    return keyed_hash(b"proof", id, life, rest).digest()

class Node:                             # another: the link to it, and a stream each way
    def __init__(self, endpoint):
        self.endpoint, self.who, self.job = endpoint, None, 0  # the two: once proved
        self.link, self.challenge = secrets.randbits(63) + 1, secrets.token_hex(16).encode()
        self.ready, self.sent = False, [0, 0]  # messages and bytes outside its stream
        self.queue, self.acked, self.came = [], 0, 0
        self.said = 0, 0                # in the barrier: the epoch, and how far it is
        self.sub = context.socket(zmq.SUB)
        self.sub.plain_username, self.sub.reconnect_ivl, self.sub.rcvhwm = b"%d" % ID, -1, 0
        self.sub.plain_password = password(ID, LIFE, endpoint)
        self.sub.subscribe(b"a%s\0" % self.challenge)
        self.sub.connect(endpoint.decode())
        readers[self.sub] = functools.partial(on_message, self)
        nodes.append(self)
    def proved(self, who, job):         # the presence last: then all else is in force
        self.who, self.inbox, self.job = who, b"i%d\0" % who[0], job
        presence = b"~H3/%x/%s/0/0///%s/%d/%x/" % (self.link, JOB, ENDPOINT, ID, LIFE)
        listening = b"l%x/%d/greet" % (self.link, ID)
        for topic in b"c\0", b"i%d\0" % ID, b"egreet\0", listening, presence:
            self.sub.subscribe(topic)
    def send(self, of, name, data, sequence=0):  # once, and in order
        self.queue.append((of, name, data, sequence))
        self.transmit(len(self.queue) - 1)
    def transmit(self, first=0):
        fresh = enumerate(self.queue[first:UNDER_WAY], self.acked + 1 + first)
        for number, (of, name, data, sequence) in fresh:
            publish(self.inbox, RELIABLE, name, sequence, "Q Q B I I bin32",
                    self.who[1], number, of, len(data), 0, data)

def publish(topic, kind, name, sequence, forms, *more):
    header = 3, kind, nodes[0].job, ID, LIFE, sequence, 0, name
    pub.send(topic + pack("B B I I Q Q B str8 " + forms, *header, *more))
def heartbeat():
    members = [pack("I Q B i str8 Q Q Q Q Q Q", *node.who, 4 if node.ready else 1, 0,
                    node.endpoint, 0, 0, *map(sum, zip(node.sent, WINDOW)), *node.sent)
               for node in nodes if (node.endpoint, node.who) in present.values()]
    body = b"\xdd" + struct.pack(">I", len(members)) + b"".join(members)
    publish(b"c\0", HEARTBEAT, JOB, next(numbers), "Q bin32", 0, body)

def on_zap():                           # libzmq asks who may come in
    version, request, _, _, _, _, user, shown, good = *zap.recv_multipart(), False
    with contextlib.suppress(IndexError, ValueError, struct.error):  # he may show anything
        wanted = password(int(user), int(shown.split()[1], 16), ENDPOINT)
        good = hmac.compare_digest(wanted, shown)
    zap.send_multipart([version, request, b"200" if good else b"400", b"", user, b""])

def on_subscription():
    frame = pub.recv(copy=False)
    begins, topic = frame.bytes[0], frame.bytes[1:]
    if begins > 1:                      # it is none: one node says something to this one alone
        for node in nodes:
            if node.who and b"%d" % node.who[0] == frame.get("User-Id").encode():
                read(node, frame.bytes)
    elif begins and topic[:1] == b"a":
        publish(topic, PROOF, JOB, 0, "bin32", proof(ID, LIFE, ENDPOINT, topic[1:-1]))
    elif begins and topic[:3] == b"~H3":
        world, id, life, _ = topic.rsplit(b"/", 3)
        _, _, job, _, host, _, _, endpoint = world.split(b"/", 7)
        if (job, id) == (JOB, frame.get("User-Id").encode()):
            present[topic] = endpoint, (int(id), int(life, 16))
            hosts[int(id), int(life, 16)] = int(host, 16)
            if endpoint not in [node.endpoint for node in nodes]:
                Node(endpoint)
    elif not begins:
        present.pop(topic, None)

def on_message(node):
    read(node, *node.sub.recv_multipart())
def read(node, head, *second):
    topic, header = head.split(b"\0", 1)
    _, kind, job, id, life, _, _, name, *more = unpack(header)
    data = second[0] if second else more[-1]
    if kind == PROOF and not node.who:
        if proof(id, life, node.endpoint, node.challenge) in (data[:32], data[32:]):
            node.proved((id, life), job)
    elif node.who != (id, life):
        return                          # nobody's
    elif kind == HEARTBEAT:
        for at, in_life, state, _, _, *sent in unpack(data):
            if (at, in_life) == (ID, LIFE):
                node.ready, node.sent = state == 4, sent[:2]
    elif kind in (EVENT, BATCH, CHANNEL):
        for each in data if kind == BATCH else [data]:
            handle(node, name or topic[1:], each)
    elif kind == RELIABLE and more[0] == LIFE:
        if more[1] == node.came + 1:    # any other has come, or comes again
            node.came += 1
            handle(node, name, data)
        publish(node.inbox, ACK, b"", next(numbers), "Q Q Q Q Q Q",
                life, node.came, 0, 0, *WINDOW)
    elif kind == ACK and more[0] == LIFE and more[1] > node.acked:
        n = more[1] - node.acked
        node.acked, node.queue = more[1], node.queue[n:]
        node.transmit(UNDER_WAY - n)    # for these there is room now
    elif kind == VERDICT and more[1] == LIFE:
        sys.exit(f"node {id} does not have this one as a member: {more[0]}")

def handle(node, name, data):
    if name == b"greet":
        heard.add((name, node))
        print(f"greet {node.who[0]} {data.decode()}")
    elif name == b"ls.call":
        _, kind, to, number, *call = unpack(data)
        if kind == 1 and to == LIFE:
            heard.add((name, node))
            known = call[2] == b"double"
            form, end, result = ("bin32", 3, 2 * call[3]) if known else ("bin16", 4, b"no such")
            node.send(CHANNEL, name, pack("B B Q Q " + form, 1, end, node.who[1], number, result))
    elif name == STEP:
        barrier.hear(node, *unpack(data)[1:])

def mix(x):
    x = (x % 2**64 ^ x % 2**64 >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
    return x ^ x >> 31

class Barrier:                          # its leader, among members that stay
    epoch, flags, last = 0, 0, ID       # last: who entered last
    def view(self):
        members = (ID, LIFE), *(node.who for node in nodes if node.ready)
        hashes = [mix(mix(id + 0x9E3779B97F4A7C15) ^ life ^ mix(hosts[id, life]))
                  for id, life in members]
        return (sum(hashes) + mix(RULES)) % 2**64
    def hear(self, node, kind, _bits, _known, to, epoch, view, *more):
        if to == LIFE and kind == ABORT:
            sys.exit(f"node {node.who[0]} gives the epoch up: {more[-1]}")
        if to == LIFE and kind <= READY and (epoch, view) == (self.epoch, self.view()):
            self.last = node.who[0] if node.said < (epoch, ENTERED) else self.last
            node.said, self.flags = max(node.said, (epoch, kind)), self.flags | more[3]
    def wait(self, flags):              # until all are here
        self.flags, self.last = self.flags | flags, ID
        for kind in READY, LEFT:        # what it says when all have entered, and are ready
            run(lambda: all(node.said >= (self.epoch, kind - 1) for node in nodes))
            for node in nodes:
                node.send(CHANNEL, STEP, pack("B B B B Q Q Q Q Q I I I", 2, kind, kind == READY,
                    node.said[1], node.who[1], self.epoch, self.view(),
                    self.epoch + (kind == LEFT), 0, RULES, self.flags, self.last))
        print(f"epoch {self.epoch} flags {self.flags:x}")
        self.epoch, self.flags = self.epoch + 1, 0

def run(until, say=heartbeat):
    while not until():
        for socket in zmq.select(list(readers), [], [], 0.05)[0]:
            readers[socket]()
        if time.monotonic() > due[0]:
            due[0] = time.monotonic() + 0.25
            say()
            for node in nodes:
                node.transmit()         # it may have been lost

signal.alarm(100)                       # nothing waits for ever
unpack = functools.partial(msgpack.unpackb, raw=True)
context, numbers, due = zmq.Context(), itertools.count(1), [0]
nodes, present, hosts, heard, barrier = [], {}, {(ID, LIFE): 0}, set(), Barrier()
zap, pub = context.socket(zmq.REP), context.socket(zmq.XPUB)
readers = {zap: on_zap, pub: on_subscription}
zap.bind("inproc://zeromq.zap.01")
pub.plain_server, pub.sndhwm = True, 0
pub.bind("tcp://127.0.0.1:*")
ENDPOINT = pub.last_endpoint.rstrip(b"\0")
Node(SEED)
run(lambda: sum(node.ready for node in nodes) == NODES)
for number, node in itertools.product(range(300), nodes):
    node.send(EVENT, b"count", b"%d" % number, number + 1)
for _ in range(EPOCHS):
    barrier.wait(1)
run(lambda: len(heard) == 2 * NODES and not any(node.queue for node in nodes))
run(lambda: not present, lambda: publish(b"c\0", FAREWELL, b"", 0, "i", 0))
