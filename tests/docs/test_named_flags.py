"""The flags and commands in the documentation exist, and every command is explained."""

from __future__ import annotations

import re
from pathlib import Path

from interpreter.config.settings import SETTINGS
from interpreter.frontends.flags import COMMANDS as FLAGS
from interpreter.frontends.terminal.magics import COMMANDS
from interpreter.leaves import subcommand

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHOWN = re.compile(r"^(?:[^`\n]*\| |\$ )?interpreter (.*)", re.MULTILINE)
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def known_flags() -> set[str]:
    flags = {row.flag for row in SETTINGS if row.flag} | {row.no_flag for row in SETTINGS if row.no_flag}
    flags |= {f"--no_{row.flag[2:]}" for row in SETTINGS if row.flag} | {flag.flag for flag in FLAGS}
    return {flag.replace("-", "_") for flag in flags} | {"__help", "__version"}


def test_every_flag_in_an_example_exists() -> None:
    shown = [
        (page.name, flag)
        for page in PAGES
        for block in FENCE.findall(page.read_text("utf-8"))
        for line in SHOWN.findall(block)
        if subcommand(line.split()) is None  # those have other flags
        for flag in re.findall(r"(?<!\S)--[a-z][\w-]*", line.split("#")[0])
    ]
    assert len(shown) > 30
    assert [row for row in shown if row[1].replace("-", "_") not in known_flags()] == []


def test_magics_md_lists_exactly_the_existing_commands() -> None:
    page = (ROOT / "docs" / "magics.md").read_text("utf-8")
    tables = "\n".join(line for line in page.splitlines() if line.startswith("| `%"))
    listed = set(re.findall(r"`%([a-z_]+)", tables)) - {"name"}
    assert listed | {"debug"} == {row.name for row in COMMANDS}
