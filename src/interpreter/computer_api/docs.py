"""The tool for documentation: what is in the source code of modules, found by words."""

from __future__ import annotations

from typing import Any

from interpreter.computer_api.at_session import do_in_python
from interpreter.computer_api.tool import Tool


class Docs(Tool):
    """Searches docstrings, here on this machine; nothing is imported for it."""

    def search(
        self,
        query: str,
        module: str | None = None,
        paths: str | list[str] | None = None,
        max_results: int = 5,
    ) -> list[dict[str, Any]]:
        """Find functions and classes by their docstrings, in a module or in source files; it is not imported."""
        found: list[dict[str, Any]] = do_in_python(
            self.computer, "docstrings", "search", query=query, module=module, paths=paths, most=max(1, max_results)
        )
        return found
