"""`computer.files` with edits that fit: `replace`, `patch`, and anchors and notebooks in `read`."""

from __future__ import annotations

from typing import Any

import interpreter.computer_api.files as files
from interpreter.computer_api.at_session import do

EDITS, NOTEBOOKS = "interpreter.repo.edits", "interpreter.repo.notebooks"


class Files(files.Files):
    """Finds, reads and edits files, as the session's code could do it itself: no further."""

    def read(
        self, path: str, start: int | None = None, end: int | None = None, numbers: bool = False, anchors: bool = False
    ) -> str:
        """Return the text of a file, or its lines from `start` to `end`, counted from 1.

        `numbers` adds numbers, `anchors` names for `replace`. Without any of these, a notebook is read as its cells.
        """
        if anchors:
            return str(do(self.computer, EDITS, "read_anchored", path=path, start=start, end=end))
        if path.endswith(".ipynb") and start is None and end is None and not numbers:
            return str(do(self.computer, NOTEBOOKS, "read", path=path))
        return super().read(path, start, end, numbers)

    def replace(self, path: str, old: str, new: str, cell: str | None = None) -> dict[str, Any]:
        """Replace a text that occurs once in a file, or what `12:a3f` or `12:a3f..15:b01` of read(anchors=True) names.

        Several lines are whole lines. An error shows the nearest lines with their numbers. With `cell`, the text is in
        that cell of a notebook.
        """
        return dict(do(self.computer, EDITS, "replace", path=path, old=old, new=new, cell=cell))

    def patch(self, patch: str) -> list[dict[str, Any]]:
        """Change several files at once, all or none: `*** Begin Patch`, `*** Update File: a.py`, `@@ def f`, -+ lines.

        `*** Add File:`, `*** Delete File:` and `*** Move to:` work, too; `*** End Patch` is the last line.
        """
        return [dict(row) for row in do(self.computer, EDITS, "patch", patch=patch)]
