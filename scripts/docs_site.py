"""A MkDocs hook: adds pages outside docs/ to the site, and leaves those of deleted leaves out of the navigation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.leaves import ROWS

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parent.parent
OUTSIDE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-reports.md",
}


def navigation(entries: list[Any]) -> list[Any]:
    """Return the navigation without the pages of leaves that this checkout lacks."""
    present = {page for leaf in ROWS if leaf.is_present for page in leaf.docs}
    absent = {page for leaf in ROWS for page in leaf.docs} - present
    kept = []
    for entry in entries:
        ((title, target),) = entry.items()
        shown = navigation(target) if isinstance(target, list) else target not in absent
        if shown:
            kept.append({title: target if shown is True else shown})
    return kept


def on_config(config: Any) -> Any:
    config.nav = navigation(config.nav)
    return config


def on_files(files: Files, config: Any) -> Files:
    from mkdocs.structure.files import File

    for name, place in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        for other, target in OUTSIDE.items():
            text = text.replace(f"]({other}", f"]({Path(target).name}")
        text = "---\nsearch:\n  boost: 0.5\n---\n" + re.sub(r"\]\(docs/", "](../", text)  # the guides come first
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    for name, place in OUTSIDE.items():
        markdown = markdown.replace(f"](../{name}", f"]({place}")
    return markdown
