"""Makes a page from a React block: esbuild compiles it and bundles it with React, both from npm."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

Call = Callable[..., tuple[int, str]]
Place = tuple[int, int]  # a line and a column, from 0

PACKAGES = {"react": "19", "react-dom": "19", "esbuild": "0.28"}
NEEDED = "react, react-dom and esbuild"
FILES = ("png", "jpg", "jpeg", "gif", "svg", "webp", "woff2")  # file types that are embedded in the page
COMPONENT = re.compile(r"^(?:async\s+)?(?:function|class|const|let|var)\s+([A-Z]\w*)", re.MULTILINE)
UNRESOLVED = re.compile(r'Could not resolve "((?:@[\w.-]+/)?[\w-][\w.-]*)[^"]*"')
ERROR = re.compile(r"<stdin>:(\d+):(\d+):")
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# Names that blocks may use without importing them. `$rendered` is called with what a block exports.
GIVEN = """\
import * as React from "react";
import * as DOM from "react-dom";
import { createRoot, hydrateRoot } from "react-dom/client";
const mark = (element) => Object.keys(element).some((name) => name.startsWith("__reactContainer"));
const ReactDOM = { ...DOM, createRoot, hydrateRoot, render: (what, where) => createRoot(where).render(what) };
const $rendered = (block) => {
  if ([...document.querySelectorAll("*")].some(mark)) return;
  const shown = block?.default ?? block?.$component;
  if (!shown) throw new Error("There is nothing to show. Define a component: export default function App() { ... }");
  createRoot(document.getElementById("root")).render(React.isValidElement(shown) ? shown : React.createElement(shown));
};
globalThis.$rendered = $rendered;
export { React, ReactDOM, createRoot };
export {
  Fragment, StrictMode, Suspense, createContext, forwardRef, lazy, memo, useCallback, useContext, useDeferredValue,
  useEffect, useId, useLayoutEffect, useMemo, useReducer, useRef, useState, useSyncExternalStore, useTransition,
} from "react";
"""
PAGE = """\
<!DOCTYPE html><html><head><meta charset="utf-8"><style>{style}</style></head><body><div id="root"></div>
<script>globalThis.__REACT_DEVTOOLS_GLOBAL_HOOK__ ??= {{ isDisabled: true }};</script><script>
{script}
</script><script>$rendered($block);</script></body></html>
"""


@dataclass
class Built:
    """A page, and where its lines come from: the line and column in the block, None if not from there."""

    page: str
    small: str = ""  # the minified page
    line: Callable[[int, int], Place | None] = lambda line, column: (line, column)


class BuildError(Exception):
    """The block can't be made into a page."""

    def __init__(self, message: str, missing: str = "") -> None:
        super().__init__(message)
        self.missing = missing  # the npm packages to install


def packages() -> Path:
    """Return the folder of the npm packages that React blocks install, in the home of the session."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache, "open-interpreter", "react")


def install(names: list[str], call: Call) -> bool:
    """Install npm packages for React blocks, without running their scripts. Returns whether that worked."""
    folder = packages()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    known = [f"{name}@{PACKAGES[name]}" if name in PACKAGES else name for name in names]
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--fetch-retries=1"]
    return call(["npm", "install", *options, "--prefix", str(folder), "--", *known], visibly=True)[0] == 0


def build(source: str, folder: Path, call: Call) -> Built:
    """Build the page of a block. Raises BuildError if that fails."""
    places = [Path.cwd(), *Path.cwd().parents, packages()]
    compilers = [path for each in places for path in glob(f"{each}/node_modules/@esbuild/*/bin/esbuild")]
    has_react = all(any((each / "node_modules" / name).is_dir() for each in places) for name in ("react", "react-dom"))
    if not compilers or not has_react:
        raise BuildError(f"React blocks need {NEEDED} from npm.", " ".join(PACKAGES))
    given, script = folder / "given.js", folder / "page.js"
    given.write_text(GIVEN)
    code = source
    if source.lstrip().startswith("<"):
        code = f"export default function Block() {{ return <>{source}</> }}"
    named = COMPONENT.findall(code)
    if named and not re.search(r"\bexport\s+default\b|\bas\s+default\b", code):
        code += f"\nexport {{ {'App' if 'App' in named else named[-1]} as $component }};"
    os.environ["NODE_PATH"] = str(packages() / "node_modules")
    command = [compilers[0], "--bundle", "--format=iife", "--global-name=$block", "--loader=tsx", "--jsx=automatic"]
    command += [f"--inject:{given}", f"--outfile={script}", "--color=false", "--log-level=warning"]
    command += [f"--loader:.{each}=dataurl" for each in FILES]
    made = []
    for options in (['--define:process.env.NODE_ENV="development"', "--sourcemap=external"], ["--minify"]):
        failed, log = call([*command, *options], stdin=code)
        if failed:
            unresolved = UNRESOLVED.search(log)
            raise BuildError(ERROR.sub(r"line \1, column \2:", log).strip(), unresolved[1] if unresolved else "")
        style = script.with_suffix(".css")
        made.append(PAGE.format(style=style.read_text() if style.exists() else "", script=script.read_text()))
        style.unlink(missing_ok=True)
    return Built(made[0], made[1], SourceMap(json.loads(script.with_name("page.js.map").read_text()), before=2))


class SourceMap:
    """Finds a place of the block by its place in the page, in a source map (https://sourcemaps.info/spec.html)."""

    def __init__(self, source_map: dict[str, Any], before: int) -> None:
        self._map, self._before = source_map, before
        self._rows: list[list[tuple[int, int, int, int]]] = []  # column here, source, line and column there

    def __call__(self, line: int, column: int) -> Place | None:
        if not self._rows:
            self._read()
        row = self._rows[line - self._before] if 0 <= line - self._before < len(self._rows) else []
        at = bisect_right([each[0] for each in row], column) - 1
        return row[at][2:] if at >= 0 and self._map["sources"][row[at][1]].endswith("<stdin>") else None

    def _read(self) -> None:
        source = there = column = 0
        for row in self._map["mappings"].split(";"):
            here, segments = 0, []
            for segment in filter(None, row.split(",")):
                numbers = decoded(segment)
                here += numbers[0]
                if len(numbers) >= 4:
                    source, there, column = source + numbers[1], there + numbers[2], column + numbers[3]
                    segments.append((here, source, there, column))
            self._rows.append(segments)


def decoded(segment: str) -> list[int]:
    """Decode the numbers of a segment: five bits per digit, and the lowest bit of a number is its sign."""
    numbers, value, shift = [], 0, 0
    for digit in map(DIGITS.index, segment):
        value += (digit & 31) << shift
        shift += 5
        if not digit & 32:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return numbers
