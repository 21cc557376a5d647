"""TypeScript blocks: the JavaScript driver, after the types have been removed. They are not checked."""

from __future__ import annotations

import re
from pathlib import Path

from interpreter.languages.javascript import JavaScript
from interpreter.runtimes import built_in
from interpreter.runtimes.protocol import Frame

__all__ = ["TypeScript"]

STRIPS_TYPES = (22, 13)  # the first version of Node that does it itself
COMPILERS = ("esbuild", "typescript")


class TypeScript(built_in.TypeScript, JavaScript):
    """Node with the variables of earlier TypeScript blocks."""

    def version(self) -> str | None:
        version = super().version()
        if version is None or tuple(map(int, re.findall(r"\d+", version)[:2])) >= STRIPS_TYPES:
            return version
        # Older versions of Node need a compiler, which npm must have installed where the driver looks.
        here, node = Path(self.context.cwd), Path(self._node() or "/usr/bin/node").resolve()
        shared = [node.parent.parent / "lib", Path("/usr/local/lib")]
        folders = [folder / "node_modules" for folder in (here, *here.parents, *shared)]
        folders += [Path(each) for each in self.context.own_environment().get("NODE_PATH", "").split(":") if each]
        return version if any((folder / name).is_dir() for folder in folders for name in COMPILERS) else None

    def fields(self) -> Frame:
        return {**super().fields(), "typescript": True}
