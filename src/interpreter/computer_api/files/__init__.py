"""`computer.files` and `computer.docs`: work on the session's files; a relative path starts in its directory."""

from __future__ import annotations

from typing import Any

from interpreter.computer_api.at_session import do, do_in_python
from interpreter.computer_api.files.work.texts import get_close_matches_in_text
from interpreter.computer_api.tool import ComputerTool

__all__ = ["Docs", "Files", "get_close_matches_in_text"]


class Files(ComputerTool):
    """Finds, reads and edits files, as the session's code could do it itself: no further."""

    def search(
        self,
        query: str,
        path: str | None = None,
        max_results: int = 100,
        names: bool = True,
        content: bool = True,
        regex: bool = False,
        ignore_case: bool | None = None,
        glob: str | None = None,
        hidden: bool = False,
        **more: Any,
    ) -> list[dict[str, Any]]:
        """Find files by name and lines by content: [{path, line, text}]; `glob` such as "*.py" limits the files."""
        # Parameters of the original that have no effect here.
        if unknown := set(more) - {"verbose", "python_docstrings_only"}:
            raise TypeError(f"search() doesn't take {', '.join(sorted(unknown))}. See computer.help('files').")
        return list(
            do(
                self.computer,
                "search",
                "search",
                apart=regex,  # an expression can take forever and would block this process
                query=query,
                path=path,
                most=max(1, max_results),
                names=names,
                content=content,
                regex=regex,
                ignore_case=ignore_case,
                glob=glob,
                hidden=hidden,
            )
        )

    def read(self, path: str, start: int | None = None, end: int | None = None, numbers: bool = False) -> str:
        """Return the text of a file, or its lines from `start` to `end`, counted from 1; `numbers` adds numbers."""
        return str(do(self.computer, "texts", "read", path=path, start=start, end=end, numbers=numbers))

    def edit(self, path: str, original_text: str, replacement_text: str) -> dict[str, Any]:
        """Replace a text everywhere in a file: {path, replaced: how often}; an error names what is close to it."""
        return dict(
            do(
                self.computer,
                "texts",
                "edit",
                path=path,
                original_text=original_text,
                replacement_text=replacement_text,
            )
        )


class Docs(ComputerTool):
    """Searches docstrings, here on this machine; nothing is imported for it."""

    def search(
        self,
        query: str,
        module: str | None = None,
        paths: str | list[str] | None = None,
        max_results: int = 5,
    ) -> list[dict[str, Any]]:
        """Find functions and classes by their docstrings, in a module or in source files; it is not imported."""
        return list(
            do_in_python(
                self.computer,
                "docstrings",
                "search",
                query=query,
                module=module,
                paths=paths,
                most=max(1, max_results),
            )
        )
