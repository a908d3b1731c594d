"""Which tests judge a mutant: the table in `covers`."""

import fnmatch
from pathlib import Path

TABLE = Path(__file__).parent / "covers"


def read(tests):
    """([(beginning of paths, names of tests)], [what is wrong with them]).
    tests: the names of all."""
    rows, wrong = [], []
    for line in TABLE.read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        names = []
        for word in words[1:]:
            found = fnmatch.filter(tests, word)
            if not found:
                wrong.append("there is no test %s" % word)
            names += [n for n in found if n not in names]
        rows.append((words[0], names))
    return rows, wrong


def row_of(path, rows):
    """The first that the path begins with, or None."""
    return next((row for row in rows if path.startswith(row[0])), None)


def judges_of(path, rows):
    """Its tests; those that are named like the file come first."""
    stem = Path(path).stem
    unit = lambda name: name.split(".", 1)[1]
    return sorted(row_of(path, rows)[1], key=lambda name: (
        unit(name) != stem, unit(name) not in stem and stem not in unit(name)))
