"""How Open Interpreter was installed here, and the command that adds packages to this installation.

The name on the package index belongs to the original, so no command looks our own package up there: a checkout is
named by its folder, and elsewhere the version pins the one that is installed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from interpreter.errors import UsageError
from interpreter.host import processes
from interpreter.version import __version__

_PACKAGE = "open-interpreter"
_OF_EXTRA = re.compile(r"(?P<requirement>.+?)\s*;\s*(?:\((?P<marker>.+)\) and )?extra == ['\"](?P<extra>[\w-]+)['\"]")


def extras() -> dict[str, list[str]]:
    """List the requirements of each extra that users can add; empty if the package itself is not installed."""
    requirements: dict[str, list[str]] = {}
    for line in _metadata()[0]:
        if (row := _OF_EXTRA.fullmatch(line)) and row["extra"] not in ("dev", "docs"):
            requirements.setdefault(row["extra"], []).append(
                "; ".join(filter(None, (row["requirement"], row["marker"])))
            )
    return requirements


def install_command(extra: str) -> list[str]:
    """Return the command that adds an extra to this installation. Raises UsageError for an unknown extra."""
    known = extras()
    if known and extra not in known:
        raise UsageError(
            f"There is no extra {extra!r}. Available: {', '.join(sorted(known))}. "
            "For packages that your code imports, use %pip install in the chat."
        )
    import tomllib

    url, folder = _source()
    if Path(sys.prefix, "pipx_metadata.json").is_file():
        return ["pipx", "inject", _PACKAGE, *known.get(extra, ())]
    if (receipt := Path(sys.prefix, "uv-receipt.toml")).is_file():
        # uv replaces the whole tool, so name the extras and packages that it already has.
        tools = {row["name"]: row for row in tomllib.loads(receipt.read_text("utf-8"))["tool"]["requirements"]}
        wanted = f"[{','.join(sorted({extra, *tools.pop(_PACKAGE).get('extras', ())}))}]"
        source = f" @ {url}" if url else f"=={__version__}"
        ours = ["-e", folder + wanted] if folder else [_PACKAGE + wanted + source]
        return ["uv", "tool", "install", *ours, *(part for name in tools for part in ("--with", name))]
    return pip_command(*(["-e", f"{folder}[{extra}]"] if folder else [f"{_PACKAGE}[{extra}]=={__version__}"]))


def install_hint(extra: str) -> str:
    """Return `install_command` as a line for the user's shell; in the folder of a checkout, with relative paths."""
    argv, here = install_command(extra), os.getcwd()
    if _source()[1] == here:
        argv = [f".{part.removeprefix(here)}" if part.startswith(f"{here}[") else part for part in argv]
        argv = [part.removeprefix(here + os.sep) for part in argv]
    return shlex.join(argv)


def pip_command(*arguments: str) -> list[str]:
    """Return a command that installs packages into our own Python: with pip, or with uv if there is no pip."""
    if find_spec("pip") is None and (uv := processes.which("uv")):
        return [uv, "pip", "install", "--python", sys.executable, *arguments]
    return [sys.executable, "-m", "pip", "install", *arguments]


def _source() -> tuple[str, str]:
    """Return the URL that the package was installed from, and its folder if it is an editable checkout; "" if none."""
    from urllib.request import url2pathname

    source = _metadata()[1]
    control = source.get("vcs_info", {})
    url = source.get("url", "") if not control else f"{control['vcs']}+{source['url']}@{control['commit_id']}"
    return url, url2pathname(url.removeprefix("file://")) if source.get("dir_info", {}).get("editable") else ""


def _metadata() -> tuple[list[str], dict[str, Any]]:
    """Return the package's declared requirements and its install source; empty if the package is not installed."""
    from importlib.metadata import distribution

    with suppress(ImportError):
        return (package := distribution(_PACKAGE)).requires or [], json.loads(
            package.read_text("direct_url.json") or "{}"
        )
    return [], {}
