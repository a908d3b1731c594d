#!/usr/bin/env python3
"""Real runs, each with one signal at a random moment: does any hang, leave something,
end with the wrong code, or touch what is not its own?

    storm.py LOCKSTEP CONFIG [RUNS [SEED]]

Each run would last for ever and is ended by SIGINT after one to three seconds, unless what
it met ends it: kill -9, SIGTERM or SIGSTOP (0.1 to 30 s, mostly short) of any node, at any moment after
all have begun. Every fourth is then repeated by the same command, up to an end: it has to
go on, and to end well. Failures are printed with their seed, and counted: exit 1.
"""
import collections, json, os, pathlib, random, select, signal, subprocess, sys, tempfile, time

ENDLESS = ["--set", "evaluator.solved=501", "--set", "stop.env_step=0"]
PATIENCE_S = 60
MINE = "out/mine.txt", "out/9/mine.txt", "mine.txt"  # 9: a folder named as runs are

# What a run may exit with, by what happened to one of its nodes. A loss or an end of a node
# fails the run (1), names a peer that could not be reached (69), or is borne until SIGINT.
CODES = {signal.SIGKILL: {1, 69, 130}, signal.SIGTERM: {1, 69, 130, 143},
         signal.SIGSTOP: {1, 69, 124, 130}}
KNOWN = {"policy.msgpack", "checkpoint.msgpack", "checkpoints", "record", "journal", "policy",
         "data", "trace"}


def is_alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


class Run:
    """One run in a folder of its own, whose events are read as they come."""

    def __init__(self, folder, arguments):
        environment = dict(os.environ, XDG_RUNTIME_DIR=str(folder / "runtime"))
        self.process = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE,
                                        stderr=open(folder / "stderr", "w"), env=environment)
        self.pids, self.started, self.rest, self.last = {}, set(), b"", {}

    def read(self, until_s):
        """Take events in until that time; False: there will be no more."""
        wait = max(0.0, until_s - time.monotonic())
        if not select.select([self.process.stdout], [], [], wait)[0]:
            return True
        data = os.read(self.process.stdout.fileno(), 65536)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.last = json.loads(line)
            if self.last["event"] in ("bound", "started"):
                self.pids[self.last["node"]] = self.last["pid"]
            if self.last["event"] == "started":
                self.started.add(self.last["node"])
        return bool(data)

    def read_for(self, seconds):
        until_s = time.monotonic() + seconds
        more = True
        while more and time.monotonic() < until_s:
            more = self.read(until_s)
        return more

    def end(self):
        """Its exit code; None: it hangs, and was killed."""
        until_s = time.monotonic() + PATIENCE_S
        while self.read(until_s) and time.monotonic() < until_s:
            pass
        try:
            code = self.process.wait(max(0.1, until_s - time.monotonic()))
            # SIGINT may come when all is done, and find nobody who handles it any more.
            return 130 if code == -signal.SIGINT else code
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def strike(run, draw):
    """One signal for one node. Returns what, and until when it stands still."""
    what = draw.choice(sorted(CODES))
    pid = run.pids[draw.choice(sorted(run.pids))]
    until_s = time.monotonic() + 0.1 * 300 ** draw.random() if what == signal.SIGSTOP else 0
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        pass
    return what, pid, until_s


def parts_of(folder, run):
    """What nodes were writing as they were killed, by the storm or since they did not end
    when told to: who opens the folder next removes it."""
    return [path for pid in run.pids for path in
            (folder / "out" / "latest").glob(f".part@{run.pids[pid]}@*")]


def leftovers(folder, run, code):
    faults = [f"process {pid} is still there" for pid in run.pids.values() if is_alive(pid)]
    known = KNOWN if code in (0, 130) else KNOWN | {"failure.json"}
    for path in MINE:
        if (folder / path).read_text() != "mine\n":
            faults.append(f"{path} is not as it was")
    for path in (folder / "out" / "latest").glob("*"):
        if path.name not in known and not (code and path in parts_of(folder, run)):
            faults.append(f"{path.name} is left")
    for path in (folder / "runtime").rglob("*"):
        # One killed while it offers its memory leaves that: the next to offer removes it.
        offered = path.name.lstrip(".").startswith("offer-")
        if path.is_socket() and not (code and offered):
            faults.append(f"the socket {path} is left")
    return faults


def again(folder, arguments):
    """The same command, up to an end."""
    run = Run(folder, arguments + ["--set", "stop.env_step=2000000"])
    code = run.end()
    faults = leftovers(folder, run, code)
    if code != 0:
        faults.append(f"the same command ends with {code}")
    return faults


def one(lockstep, config, seed):
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="lockstep-storm-") as name:
        folder = pathlib.Path(name)
        for path in MINE:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text("mine\n")
        (folder / "runtime").mkdir(mode=0o700)
        command = [lockstep, "run", config, "--json", "--out", "out"]
        run = Run(folder, command + ENDLESS)
        until_s = time.monotonic() + PATIENCE_S
        while not (run.pids and run.started >= set(run.pids)) and run.read(until_s):
            if time.monotonic() > until_s:
                break
        length, moment = draw.uniform(1, 3), draw.random()
        more = run.read_for(length * moment)
        what, pid, stands_until_s = strike(run, draw)
        more = more and run.read_for(length * (1 - moment))
        if stands_until_s:
            run.read_for(stands_until_s - time.monotonic())
            if is_alive(pid):
                os.kill(pid, signal.SIGCONT)
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGINT)
        code = run.end()
        faults = leftovers(folder, run, code)
        if code is None:
            faults.append("it hangs")
        elif code not in CODES[what]:
            faults.append(f"exit {code}")
        if (seed % 4 == 0 or parts_of(folder, run)) and not faults:
            faults = again(folder, command)
        if faults:
            print(f"seed {seed}: {signal.Signals(what).name} of {pid}: " + "; ".join(faults))
            print((folder / "stderr").read_text()[-2000:], flush=True)
        return what, code, not faults


def main():
    lockstep, config = (os.path.abspath(path) for path in sys.argv[1:3])
    runs = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    seen, bad = collections.Counter(), 0
    for seed in range(first, first + runs):
        what, code, good = one(lockstep, config, seed)
        seen[f"{signal.Signals(what).name} {code}"] += 1
        bad += not good
        if sys.stderr.isatty():
            print(f"\r{seed - first + 1} of {runs}, {bad} bad", end="", file=sys.stderr)
    print(f"{runs} runs, {bad} bad:", ", ".join(f"{k}: {n}" for k, n in sorted(seen.items())))
    return bad > 0


sys.exit(main())
