"""draw.py, as a specification."""

import random
import unittest

import draw

FRAME = "#define LEAST 1\nstatic int table[3] = {1, 2, 3};\n\nint fn(void)\n{\n%s\n}\n"


def changes(body):
    """{(kind, what it was, what it becomes)}."""
    source = FRAME % body
    return {(s.kind, source[s.start:s.end], s.text)
            for s in draw.sites(source, random.Random(1))}


class Drawing(unittest.TestCase):
    def test_each_kind_of_mistake(self):
        self.assertIn(("comparison", "<", "<="), changes("    return a < b;"))
        self.assertIn(("junction", "&&", "||"), changes("    return a && b;"))
        self.assertIn(("number", "0", "1"), changes("    a = 0;"))
        self.assertIn(("condition", "(a && f(b))", "(!(a && f(b)))"),
                      changes("    if (a && f(b))\n        b = c;"))
        self.assertIn(("call", "f(a,\n      b)", "(void)0\n"),
                      changes("    f(a,\n      b);"))
        self.assertIn(("call", "(void)f()", "(void)0"), changes("    (void)f();"))
        self.assertIn(("status", "status", "LS_OK"), changes("    return status;"))
        self.assertIn(("status", "true", "false"), changes("    return true;"))
        self.assertIn(("constant", "IS_HERE", "IS_GONE"),
                      changes("    a = IS_HERE;\n    b = IS_GONE;"))

    def test_another_status_is_another_one(self):
        for seed in range(20):
            source = FRAME % '    return ls_error(LS_EIO, "no");'
            text = draw.sites(source, random.Random(seed))[0].text
            self.assertIn(text, set(draw.STATUSES) - {"LS_EIO"})

    def test_what_no_test_could_see_is_left_alone(self):
        for body in ('    /* a < 1 && b */ f = "1 < 2";', "    assert(a < 1);",
                     '    ls_log_warn("1");', "    free(a);", "    ls_take(A_B);",
                     "    a_destroy(&b);",
                     "    explicit_bzero(key, sizeof key);", "    char text[80];",
                     "    return LS_ENOMEM;", "    a = b->c >> d;"):
            self.assertEqual(changes(body), set(), body)

    def test_the_status_of_an_error_of_which_the_text_is_used_is_left_alone(self):
        body = '    (void)ls_error(LS_EIO, "1");'
        self.assertEqual([c[0] for c in changes(body)], ["call"])

    def test_a_call_whose_result_is_used_is_not_dropped(self):
        for body in ("    a = f();", "    return f();", "    if (f())\n    {}"):
            self.assertFalse([c for c in changes(body) if c[0] == "call"])

    def test_a_seed_always_draws_the_same_and_all_of_it_once(self):
        sources = {"b.c": FRAME % "    return a < 1 && b > 2;",
                   "a.c": FRAME % "    f();\n    return true;"}
        drawn = list(draw.draw(sources, 7))
        self.assertEqual(drawn, list(draw.draw(sources, 7)))
        self.assertNotEqual(drawn, list(draw.draw(sources, 8)))
        self.assertEqual(len(drawn), 7)
        self.assertEqual(len(set(drawn)), 7)


if __name__ == "__main__":
    unittest.main()
