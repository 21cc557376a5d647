"""List the sentences that src/ can show to a user, each with its file and line.

    python scripts/strings.py                              all of them
    python scripts/strings.py --sample 200 --seed 7        200 at random, to read with fresh eyes
    python scripts/strings.py --docstrings policy/         docstrings instead, in files whose path contains "policy/"

Every literal or f-string of at least two words counts, whether it is raised, printed or in a table.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "interpreter"
SENTENCE = re.compile(r"(?<![\\\w.])[A-Za-z]{2,}[,.:;]? [^\W\d_]?[a-z{%'`\"]")
CODE = r"(def|import|from|class|SELECT|INSERT) "
NOT_PROSE = re.compile(rf"\(\?[:P<!=]|\\[bswd]|^\s*[(<]|^{CODE}|\n{CODE}")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="", help="only files whose path contains this")
    parser.add_argument("--docstrings", action="store_true", help="docstrings instead of strings")
    parser.add_argument("--sample", type=int, metavar="N", help="show N at random")
    parser.add_argument("--seed", type=int, default=0, help="repeat the same selection")
    options = parser.parse_args()
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if options.part in str(path.relative_to(SOURCE))]
    found = [(path.relative_to(SOURCE), *row) for path in paths for row in sorted(strings(path, options.docstrings))]
    if options.sample:
        found = sorted(random.Random(options.seed).sample(found, min(options.sample, len(found))))
    for path, line, text in found:
        print(f"{path}:{line}: {text!r}")


if __name__ == "__main__":
    main()
