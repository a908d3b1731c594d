"""Breaks a copy of the tree in small ways, and looks which tests notice.

What is changed is drawn by draw.py, which tests are run is said in `covers`.
The copy, with a build of its own, is build/mutate: nothing else is written."""

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import covers
import draw

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "build" / "mutate"
TREE = HOME / "tree"
BUILD = TREE / "build" / "dev"
# What is to be built for a test: its program, or what is named here.
PROGRAM = ["nodes/all", "tests/nodes/plugins/all"]
BESIDES = {"nodes": PROGRAM}
FAILS = "it fails"
TARGETS = {"e2e": PROGRAM + ["tests/e2e/all", "tests/device/fake/all",
                             "docs/all"],
           "hostile": ["tests/hostile/all"]}


def fail(text):
    sys.exit("mutate: " + text)


def run(command, **how):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, **how)


# ---- the copy ------------------------------------------------------------------


def sync():
    """Make the copy what the tree is now; what is alike keeps its time."""
    listed = run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached",
                  "--others", "--exclude-standard"])
    if listed.returncode != 0:
        fail("git does not list the files: " + listed.stdout.strip())
    wanted = {name for name in listed.stdout.split("\0")
              if name and (ROOT / name).is_file()}
    for name in sorted(wanted):
        source, copy = ROOT / name, TREE / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    for folder, folders, names in os.walk(TREE):
        if Path(folder) == TREE:
            folders[:] = [f for f in folders if f != "build"]
        for name in names:
            copy = Path(folder) / name
            if str(copy.relative_to(TREE)) not in wanted:
                copy.unlink()


def configure():
    """As others build it, but that a warning is no error."""
    done = run(["cmake", "--preset", "dev", "-DCMAKE_BUILD_TYPE=Mutants",
                "-DCMAKE_C_FLAGS_MUTANTS=-O2 -g", "-DLOCKSTEP_WERROR=OFF"],
               cwd=TREE)
    if done.returncode != 0:
        fail("cmake: " + done.stdout)


def build(*targets):
    """Whether they could be built."""
    return run(["ninja", "-C", str(BUILD), *map(str, targets)]).returncode == 0


def object_of(path, cache={}):
    if not cache:
        for entry in json.loads((BUILD / "compile_commands.json").read_text()):
            name = os.path.relpath(entry["file"], TREE)
            made = re.search(r" -o (\S+)", entry["command"]).group(1)
            cache.setdefault(name, made)
    return cache.get(path)


def code_of(made):
    """What is compared: a debugger is told of each line, a test is not."""
    plain = HOME / "plain.o"
    if run(["objcopy", "--strip-debug", str(made), str(plain)]).returncode:
        fail("objcopy does not read %s" % made)
    return plain.read_bytes()


# ---- tests ---------------------------------------------------------------------


class Test:
    def __init__(self, name):
        self.name = name
        self.command = None
        self.took = 0  # seconds at most, when it passed
        self.broken = False  # it fails without any mutant

    def targets(self):
        layer, unit = self.name.split(".", 1)
        program = "tests/test_%s_%s" % (layer, unit)
        return TARGETS.get(layer, [program] + BESIDES.get(layer, []))

    def learn_command(self):
        """ctest tells it once its program is there."""
        known = ctest_list("-R", "^%s$" % re.escape(self.name))[0]
        properties = {p["name"]: p["value"] for p in known["properties"]}
        self.command = known["command"]
        self.folder = properties["WORKING_DIRECTORY"]
        self.environment = dict(
            e.split("=", 1) for e in properties.get("ENVIRONMENT", []))
        self.skips = properties.get("SKIP_RETURN_CODE")
        self.most = self.limit = properties["TIMEOUT"]

    def run(self):
        """None: it passes. Else what became of it."""
        if self.command is None:
            self.learn_command()
        begun = time.monotonic()
        process = subprocess.Popen(
            self.command, cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, **self.environment}, start_new_session=True)
        try:
            status = process.wait(self.limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_session(process)
        if status == 0 or (self.skips and status == self.skips):
            self.took = max(self.took, time.monotonic() - begun)
            self.limit = min(self.most, 15 + 8 * self.took)
            return None
        return "it does not end in %.0f s" % self.limit if status is None \
            else FAILS


def end_session(process):
    for number, wait_s in ((signal.SIGTERM, 2), (signal.SIGKILL, 5)):
        if process.poll() is None:
            try:
                os.killpg(process.pid, number)
                process.wait(wait_s)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass


def ctest_list(*which):
    listed = run(["ctest", "--preset", "dev", "--show-only=json-v1", *which],
                 cwd=TREE)
    if listed.returncode != 0:
        fail("ctest: " + listed.stdout)
    return json.loads(listed.stdout)["tests"]


def all_tests():
    return {t["name"]: Test(t["name"]) for t in ctest_list()}


# ---- one mutant ----------------------------------------------------------------


class Mutant:
    def __init__(self, path, site, source):
        self.path, self.site, self.source = path, site, source
        self.line = source.count("\n", 0, site.start) + 1
        self.column = site.start - source.rfind("\n", 0, site.start)
        self.was = " ".join(source[site.start:site.end].split())
        self.now = " ".join(site.text.split())

    def put_in(self):
        s = self.site
        text = self.source[:s.start] + s.text + self.source[s.end:]
        (TREE / self.path).write_text(text)

    def take_out(self):
        (TREE / self.path).write_text(self.source)

    def changes_code(self):
        """False: it does not compile, or to the same."""
        made = BUILD / object_of(self.path)
        if not build(object_of(self.path)):
            fail("%s does not compile as it is" % self.path)
        before = code_of(made)
        self.put_in()
        return build(object_of(self.path)) and code_of(made) != before


class DoesNotCount(Exception):
    """It says nothing of the tests, and why."""


def build_for(test):
    if not build(*test.targets()):
        raise DoesNotCount("with it %s does not build" % test.name)


def run_without(mutant, test):
    """Once for each test: how long it takes is known then, too."""
    mutant.take_out()
    build_for(test)
    verdict = test.run() and test.run()
    mutant.put_in()
    if verdict is not None:
        test.broken = True
        print("mutate: %s is left out: without any mutant, too, %s" %
              (test.name, verdict), file=sys.stderr)


def notices(mutant, test):
    """None, or what it did; twice, so that neither chance nor a machine that
    is slow just now kills a mutant."""
    build_for(test)
    verdict, limit = test.run(), test.limit
    if verdict is not None and verdict != FAILS:
        run_without(mutant, test)
        if test.broken or test.took < limit / 4:
            return None if test.broken else verdict
        build_for(test)
    return verdict and test.run()


def judge(mutant, tests):
    """(name of the test that noticed or None, what it did)."""
    for test in tests:
        if test.took == 0 and not test.broken:
            run_without(mutant, test)
        if test.broken:
            continue
        verdict = notices(mutant, test)
        if verdict is not None:
            return test.name, verdict
    passed = sum(not t.broken for t in tests)
    if passed == 0:
        raise DoesNotCount("each of its tests is left out")
    return None, "%d tests pass" % passed


def show(mutant, killer, what, as_json):
    if as_json:
        print(json.dumps({"file": mutant.path, "line": mutant.line,
                          "column": mutant.column, "kind": mutant.site.kind,
                          "was": mutant.was, "is": mutant.now,
                          "killed_by": killer, "what": what}), flush=True)
    else:
        verdict = "SURVIVED" if killer is None else "killed by " + killer
        print("%s:%d:%d: %s: %s -> %s: %s (%s)" %
              (mutant.path, mutant.line, mutant.column, mutant.site.kind,
               mutant.was, mutant.now, verdict, what), flush=True)


# ---- all of them ---------------------------------------------------------------


def sources_of(paths):
    found = {}
    for path in paths:
        at = (ROOT / path).resolve()
        files = [at] if at.is_file() else sorted(at.rglob("*.c"))
        for file in files:
            name = os.path.relpath(file, ROOT)
            if name.split("/")[0] not in ("framework", "middleware", "nodes"):
                fail("%s: it is not in framework, middleware or nodes" % path)
            if object_of(name) is not None:
                found[name] = file.read_text()
    if not found:
        fail("no C file in %s" % " ".join(paths))
    return found


def mutate(options):
    HOME.mkdir(parents=True, exist_ok=True)
    lock = open(HOME / "lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fail("another one is at work in %s" % HOME)
    sync()
    configure()
    tests = all_tests()
    rows, wrong = covers.read(tests)
    if wrong:
        fail("covers: " + wrong[0])
    sources = sources_of(options.path)
    killed, survived = 0, 0
    for path, site in draw.draw(sources, options.seed):
        if killed + survived == options.count:
            break
        mutant = Mutant(path, site, sources[path])
        try:
            if not mutant.changes_code():
                continue
            judges = [tests[n] for n in covers.judges_of(path, rows)]
            killer, what = judge(mutant, judges)
        except DoesNotCount as why:
            print("mutate: %s:%d does not count: %s" %
                  (mutant.path, mutant.line, why), file=sys.stderr)
            continue
        finally:
            mutant.take_out()
        show(mutant, killer, what, options.json)
        killed += killer is not None
        survived += killer is None
    if options.json:
        print(json.dumps({"seed": options.seed, "mutants": killed + survived,
                          "killed": killed, "survived": survived}))
    else:
        print("seed %d: %d mutants, %d killed, %d survived" %
              (options.seed, killed + survived, killed, survived))


def main():
    parser = argparse.ArgumentParser(
        prog="./dev mutate", description=__doc__.splitlines()[0])
    parser.add_argument("path", nargs="*", metavar="PATH",
                        default=["framework", "middleware", "nodes"],
                        help="files or folders with C files; all of them")
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="what is drawn; 1")
    parser.add_argument("--count", type=int, default=20, metavar="N",
                        help="how many mutants; 20")
    parser.add_argument("--json", action="store_true",
                        help="a line of JSON for each, and one at the end")
    options = parser.parse_args()
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        mutate(options)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
