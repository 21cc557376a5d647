"""A MkDocs hook that adds pages outside docs/ to the site, and adjusts links to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
OUTSIDE = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security-reports.md",
}


def on_files(files: Files, config: Any) -> Files:
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
