"""What may be changed in a C source, one small mistake at a time.

Only what is inside functions, and only what a test could see: no log lines, no
assertions, no wiping of keys, and nothing that only frees (the sanitizers look
at that)."""

import random
import re
from collections import namedtuple

# A mistake: `text` takes the place of what is at [start, end).
Site = namedtuple("Site", "kind start end text")

FLIPPED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
STATUSES = ("LS_EINVAL", "LS_EIO", "LS_ETIMEDOUT", "LS_ECLOSED", "LS_EAGAIN")
NOT_CALLS = re.compile(
    r"(if|for|while|switch|return|sizeof|assert|free|explicit_bzero"
    r"|ls_log_\w+|ls_take|\w+_(free|fini|destroy))$")


def masked(source):
    """The same length, but blank where there is no code: comments, strings,
    and lines for the preprocessor."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(
        r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
        r"|^[ \t]*#(?:\\\n|[^\n])*",
        blank, source, flags=re.S | re.M)


def bodies(code):
    """Where functions are, as .clang-format has them: from a brace that is the
    first of its line to the next such one."""
    for match in re.finditer(r"^\{\n.*?^\}", code, re.S | re.M):
        yield match.span()


def closing(code, at):
    """The place after the parenthesis that closes the one at `at`."""
    depth = 0
    while True:
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
        if depth == 0:
            return at


def comparisons(code, start, end, rng):
    for match in re.compile(r"(?<= )(<=|>=|==|!=|<|>)(?=[ \n])").finditer(
            code, start, end):
        yield Site("comparison", *match.span(), FLIPPED[match.group()])


def junctions(code, start, end, rng):
    for match in re.compile(r"&&|\|\|").finditer(code, start, end):
        yield Site("junction", *match.span(),
                   "||" if match.group() == "&&" else "&&")


def numbers(code, start, end, rng):
    """Off by one. Lengths of arrays and {0} say little of what is done."""
    for match in re.compile(r"(?<![\w.{])(\d+)(?=[uUlL]*(?![\w.]))").finditer(
            code, start, end):
        declared = re.search(r"\b(char|int|double|\w+_t) \w+\[$",
                             code[start:match.start()])
        if declared or re.match(r"0[xX0-9]", match.group()):
            continue
        n = int(match.group())
        other = n + 1 if n == 0 or rng.random() < 0.5 else n - 1
        yield Site("number", *match.span(), str(other))


def conditions(code, start, end, rng):
    for match in re.compile(r"\bif (?=\()").finditer(code, start, end):
        after = closing(code, match.end())
        yield Site("condition", match.end(), after, None)


def calls(code, start, end, rng):
    """Calls whose result nobody uses are left out."""
    for match in re.compile(r"(?<=\n)[ \t]+((?:\(void\))?(\w+))(?=\()").finditer(
            code, start, end):
        before = code[start:match.start()].rstrip()
        after = closing(code, match.end())
        if (before[-1] in ";{}:)" or before.endswith("else")) \
                and code[after] == ";" and not NOT_CALLS.match(match.group(2)):
            yield Site("call", match.start(1), after, None)


def statuses(code, start, end, rng):
    """Not that of an error of which only the text is used."""
    error = r"LS_E(?!NOMEM)[A-Z]+"  # memory does not run out in tests
    returned = re.compile(r"\breturn (status|err|LS_OK|%s|true|false);" % error)
    for match in returned.finditer(code, start, end):
        word = match.group(1)
        if word in ("true", "false"):
            other = "false" if word == "true" else "true"
        elif word in ("status", "err"):
            other = "LS_OK"
        else:
            other = rng.choice([s for s in STATUSES if s != word])
        yield Site("status", *match.span(1), other)
    given = re.compile(r"(?<!\(void\))\bls_error\((%s)" % error)
    for match in given.finditer(code, start, end):
        yield Site("status", *match.span(1), rng.choice(
            [s for s in STATUSES if s != match.group(1)]))


def constants(code, start, end, rng):
    """A constant takes the place of another one of its family in this file."""
    name = re.compile(r"\b(?!LS_E[A-Z]+\b|LS_OK\b)([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b")
    known = sorted(set(name.findall(code)))
    family = lambda word: word[:word.rindex("_")]
    for match in name.finditer(code, start, end):
        word = match.group()
        others = [w for w in known if w != word and family(w) == family(word)]
        if word in ("LS_NOW", "LS_FOREVER"):
            others = ["LS_FOREVER" if word == "LS_NOW" else "LS_NOW"]
        if others:
            yield Site("constant", *match.span(), rng.choice(others))
    for match in re.compile(r"(?<!return )\b(true|false)\b").finditer(
            code, start, end):
        yield Site("constant", *match.span(),
                   "false" if match.group() == "true" else "true")


KINDS = (comparisons, junctions, numbers, conditions, calls, statuses,
         constants)


def change_of(source, site):
    """Its text, where it depends on what was there."""
    was = source[site.start:site.end]
    if site.kind == "condition":
        return "(!%s)" % was
    if site.kind == "call":
        return "(void)0" + "\n" * was.count("\n")
    return site.text


def sites(source, rng):
    code = masked(source)
    asserts = [(m.start(), closing(code, m.end() - 1))
               for m in re.finditer(r"\bassert\(", code)]
    found = [site for start, end in bodies(code) for kind in KINDS
             for site in kind(code, start, end, rng)]
    return [s._replace(text=change_of(source, s)) for s in found
            if not any(a <= s.start < b for a, b in asserts)]


def draw(sources, seed):
    """(path, site) for ever different ones, each kind as often as another.
    sources: {path: text}."""
    rng = random.Random(seed)
    left = {}
    for path in sorted(sources):
        for site in sites(sources[path], rng):
            left.setdefault(site.kind, []).append((path, site))
    while left:
        kind = rng.choice(sorted(left))
        of_kind = left[kind]
        at = rng.randrange(len(of_kind))
        of_kind[at], of_kind[-1] = of_kind[-1], of_kind[at]
        yield of_kind.pop()
        if not of_kind:
            del left[kind]
