"""The examples in the documentation run unchanged, with a scripted model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from model_replies import text, tool_call
from model_server import ModelServer

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples() -> list[Any]:
    found = []
    for page in PAGES:
        codes = [code for code in FENCE.findall(page.read_text("utf-8")) if "from interpreter" in code]
        for number, code in enumerate(codes, 1):
            marks = [pytest.mark.needs("chromium")] if "computer.browser" in code else []
            if number > 1:  # `make test` runs one per page
                marks.append(pytest.mark.full)
            found.append(pytest.param(code, id=f"{page.name}-{number}", marks=marks))
    return found


def answer(body: dict[str, Any]) -> Any:
    if body["messages"][-1]["role"] == "user":
        return tool_call("python", "import os; print(len(os.listdir()))")
    return text("Done.")


@pytest.mark.needs("node")
@pytest.mark.parametrize("code", examples())
def test_the_example_runs(code: str, tmp_path: Path) -> None:
    with ModelServer(replies=[answer], repeat=True) as server:
        env = {**os.environ, "OPENAI_API_KEY": "key", "OPENAI_API_BASE": server.base_url}
        subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=env, timeout=60)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub and the site give a page's headings."""
    prose = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_pages_have_targets() -> None:
    for page in [*PAGES, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"))]:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text("utf-8")):
            other = page.parent / target if target else page
            assert other.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(other), f"{page.name} links to {target}#{anchor}"
