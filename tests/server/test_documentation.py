"""The examples of docs/server.md, with a real server and a real shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from model_replies import text, tool_call
from running_server import serving

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text("utf-8")


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_python_example_runs(home: Path) -> None:
    with serving(tool_call("python", "print('hi')"), text("None.")) as served:
        code = (
            examples("python")[0]
            .replace("http://127.0.0.1:8000", served.url)
            .replace('"..."', repr(served.users.token))
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


@pytest.mark.needs("curl", "jq")
def test_the_shell_example_runs(home: Path) -> None:
    with serving(text("There are 3 files.")) as served:
        code = examples("bash")[0].replace("http://127.0.0.1:8000", served.url)
        code = re.sub(r"^TOKEN=.*$", "", code, flags=re.MULTILINE)
        env = {**os.environ, "TOKEN": served.users.token}
        done = subprocess.run(["bash", "-c", code], check=True, timeout=100, env=env, capture_output=True, text=True)
        assert "There are 3 files." in done.stdout


def test_every_documented_address_exists() -> None:
    from interpreter.frontends.server.application import ALL_ROUTES

    known = {route.path for route in ALL_ROUTES}
    for name in re.findall(r"`(?:GET|POST|PUT|DELETE) (/[\w/.]+)", PAGE):
        assert name in known or name == "/login", name
    below = {path.removeprefix("/api/sessions/{id}/").partition("/")[0] for path in known}
    for name in re.findall(r"`(?:GET|POST|PUT) (\w+)", PAGE):
        assert name in below, name
