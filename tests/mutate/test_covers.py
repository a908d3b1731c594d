"""The table of covering tests names what is there, and all of it."""

import unittest
from pathlib import Path

import covers

ROOT = Path(__file__).resolve().parents[2]


def sources():
    return [str(f.relative_to(ROOT)) for layer in
            ("framework", "middleware", "nodes")
            for f in (ROOT / layer).rglob("*.c")]


def tests():
    """As ctest calls them."""
    found = [f for end in ("c", "bats")
             for f in (ROOT / "tests").glob("*/test_*." + end)]
    return ["hostile.curve"] + [
        "%s.%s" % (f.parent.name, f.stem.removeprefix("test_")) for f in found]


class Covers(unittest.TestCase):
    def setUp(self):
        self.rows, self.wrong = covers.read(tests())

    def test_each_test_that_it_names_is_there(self):
        self.assertEqual(self.wrong, [])

    def test_each_source_has_a_row(self):
        self.assertEqual([s for s in sources()
                          if covers.row_of(s, self.rows) is None], [])

    def test_each_row_has_a_source(self):
        used = [covers.row_of(s, self.rows) for s in sources()]
        self.assertEqual([row[0] for row in self.rows if row not in used], [])

    def test_whose_test_is_named_like_it_is_judged_by_that(self):
        for name in tests():
            layer, unit = name.split(".")
            for source in sources():
                if Path(source).stem == unit and layer in source:
                    judges = covers.judges_of(source, self.rows)
                    self.assertEqual(judges[0], name, source)


if __name__ == "__main__":
    unittest.main()
