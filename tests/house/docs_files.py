#!/usr/bin/env python3
"""docs_files.py SOURCE [write]: docs/files.md lists every file of the code with the
first sentence of its first comment; with `write`, put it there. A .c without one is
told of by the header of its name."""
import pathlib
import re
import sys

HEAD = """# Every file

From the first comment of each, by `tests/house/docs_files.py . write`. A layer links
only what stands above it here; in each, the public headers (`include/lockstep/`) are the
manual.
"""


def said(path):
    """The first sentence of its first comment; "" when it has none."""
    begins = re.match(r"/\* ?(.*?)\*/", path.read_text(), re.S)
    if not begins:
        return ""
    lines = [re.sub(r"^ \*( |$)", "", line) for line in begins[1].split("\n")]
    text = " ".join("\n".join(lines).split("\n\n")[0].split())
    text = re.sub(rf"^(Design notes: - |{re.escape(path.name)} - )", "", text)
    return re.split(r"\.(?: |$)", text)[0]


def folder_of(layer, path):
    """Under which heading: public headers and inline ones stand with the rest."""
    parts = path.parent.parts
    cut = [i for i, part in enumerate(parts) if part in ("include", "inline")]
    return "/".join(parts[:cut[0]] if cut else parts) or layer


def layers(root):
    """The folders of the product, from the lowest up, as they are built."""
    text = (root / "CMakeLists.txt").read_text()
    return re.findall(r"^add_subdirectory\(((?:framework/|middleware|nodes)[^)]*)\)",
                      text, re.M)


def rows(root, layer):
    """Heading -> rows, of a layer."""
    files = sorted(path.relative_to(root) for path in (root / layer).rglob("*")
                   if path.suffix in (".c", ".h", ".S"))
    headers = {path.stem: path for path in files if path.suffix == ".h"}
    text = {path: said(root / path) for path in files}
    beside = {}
    for path in files:
        if not text[path]:
            if path.suffix == ".h" or not text.get(headers.get(path.stem)):
                sys.exit(f"{path}: begin it with a comment that says what it is")
            beside.setdefault(headers[path.stem], []).append(path)
    found = {}
    for path in sorted(files, key=lambda p: ("include" not in p.parts, p)):
        if text[path]:
            folder = folder_of(layer, path)
            names = ", ".join(f"`{str(one).removeprefix(folder + '/')}`"
                              for one in [path, *beside.get(path, [])])
            found.setdefault(folder, []).append(f"- {names} - {text[path]}")
    return found


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    page = HEAD
    for layer in layers(root):
        for folder, lines in sorted(rows(root, layer).items()):
            page += f"\n## {folder}\n\n" + "\n".join(lines) + "\n"
    path = root / "docs/files.md"
    if sys.argv[2:] == ["write"]:
        path.write_text(page)
    elif not path.exists() or path.read_text() != page:
        sys.exit("docs/files.md is not what the files say: "
                 "run tests/house/docs_files.py . write")


main()
