"""List the sentences that src/ can show to a user, each with its file and line.

    python scripts/strings.py                              all of them
    python scripts/strings.py --sample 200 --seed 7        200 at random, to read with fresh eyes
    python scripts/strings.py --docstrings policy/         docstrings instead, in files whose path contains "policy/"
    python scripts/strings.py --class-names                fail if one names a class that users don't know

Every literal or f-string of at least two words counts, whether it is raised, printed or in a table.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "interpreter"
SENTENCE = re.compile(r"(?<![\\\w.])[A-Za-z]{2,}[,.:;]? [^\W\d_]?[a-z{%'`\"]")
CODE = r"(def|import|from|class|export default|const|SELECT|INSERT) "
NOT_PROSE = re.compile(rf"\(\?[:P<!=]|\\[bswd]|^\s*[(<]|^{CODE}|\n{CODE}")

# Classes that users know, and names of other products and formats that ours share. All other classes may be renamed,
# and a search for the old name also changes messages: "Call wait() or cancel()" once became "ResolvedCall wait() ...".
KNOWN_NAMES = frozenset(
    "AsyncInterpreter BaseLanguage Computer Llm OpenInterpreter Picture Tool "
    "AppleScript Browser Calendar Chromium Completions Contacts HTML JavaScript Mail Markdown Python R React SQL SVG "
    "Access Entry File Host Preview Recording Screen".split()
)


def strings(path: Path, docstrings: bool) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant | ast.JoinedStr) or id(node) in inner or (id(node) in docs) != docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            text = ast.unparse(node)[2:-1]
        elif isinstance(node.value, str):
            text = node.value
        else:
            continue
        if docstrings or (SENTENCE.search(text) and not NOT_PROSE.search(text)):
            yield node.lineno, text


def class_names(source: Path = SOURCE) -> Iterator[str]:
    """Find the class names in sentences that users don't know.

    A name of one word, such as Answer, counts only inside a sentence: at its beginning, any word has a capital.
    """
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.py"))}
    nodes = (node for tree in trees.values() for node in ast.walk(tree))
    names = {node.name for node in nodes if isinstance(node, ast.ClassDef)} - KNOWN_NAMES
    for path in trees:
        for line, text in sorted(strings(path, docstrings=False)):
            for word in re.finditer(r"(?P<inside>(?<=[a-z,] ))?\b(?P<name>\w+)", re.sub(r"{[^{}]*}", "{}", text)):
                name = word["name"]
                if name in names and (word["inside"] is not None or re.search("[a-z0-9][A-Z]", name)):
                    yield f"{path.relative_to(source)}:{line}: {name} in {text!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="", help="only files whose path contains this")
    parser.add_argument("--docstrings", action="store_true", help="docstrings instead of strings")
    parser.add_argument("--sample", type=int, metavar="N", help="show N at random")
    parser.add_argument("--seed", type=int, default=0, help="repeat the same selection")
    parser.add_argument("--class-names", action="store_true", help="fail if one names an unknown class")
    options = parser.parse_args()
    if options.class_names:
        sys.exit("\n".join(class_names()) or None)
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if options.part in str(path.relative_to(SOURCE))]
    rows = [(path.relative_to(SOURCE), *row) for path in paths for row in sorted(strings(path, options.docstrings))]
    if options.sample:
        rows = sorted(random.Random(options.seed).sample(rows, min(options.sample, len(rows))))
    for path, line, text in rows:
        print(f"{path}:{line}: {text!r}")


if __name__ == "__main__":
    main()
