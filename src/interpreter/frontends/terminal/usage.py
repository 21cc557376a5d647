"""The text of `--help`, made from the table of settings."""

from __future__ import annotations

from textwrap import wrap

from interpreter.config.settings import SETTINGS, Setting
from interpreter.frontends.terminal.exit_codes import MEANINGS
from interpreter.frontends.terminal.flags import COMMANDS, Command

_COLUMN = 30
_WIDTH = 80

_USAGE = """\
Usage: interpreter [flags]                start a chat
       interpreter [flags] "a message"    say one thing, and see it done
       i want a venv                      the same, with an I in front"""

_FOOTER = """\
An on/off flag has a --no- form, a flag may be shortened while it stays clear,
and dashes and underscores are the same. A flag between the words of a message
is part of the message; everything after -- is.

In the chat, a message that begins with three double quotes (\""") goes on until
three more, and %help lists the commands. Ctrl-C stops the model or the running
code; Ctrl-D ends the chat.

Settings: what a flag says is heard before an environment variable, that before
the profile, and that before the default. --debug_config shows what holds.
Text that is piped in goes along with the message."""


def help_text() -> str:
    """What `interpreter --help` prints."""
    lines = [_USAGE]
    sections: dict[str, list[Setting | Command]] = {}
    for row in SETTINGS:
        if row.flag or row.no_flag:
            sections.setdefault(row.section, []).append(row)
    sections["Commands"] = list(COMMANDS)
    for heading, rows in sections.items():
        lines += ["", f"{heading}:"]
        for flag in rows:
            lines += _help_lines(flag)
    codes = [f"  {code:<4} {words}" for code, words in MEANINGS.items()]
    return "\n".join([*lines, "", _FOOTER, "", "Exit codes:", *codes])


def _help_lines(row: Setting | Command) -> list[str]:
    left = "  " + _spelling(row)
    right = wrap(_explanation(row), _WIDTH - _COLUMN, break_long_words=False, break_on_hyphens=False)
    first = [left] if len(left) > _COLUMN - 2 else [left.ljust(_COLUMN) + right.pop(0)]
    return first + [" " * _COLUMN + line for line in right]


def _explanation(row: Setting | Command) -> str:
    words = row.help.replace("`", "")
    if not row.flag:
        words = f"Do not {words[0].lower()}{words[1:]}"
    if isinstance(row, Setting) and row.kind != "bool" and isinstance(row.default, int | float | str):
        words += f" Default: {row.default}." if row.default != "" else ""
    return f"{words} (Not there yet.)" if row.later else words


def _spelling(row: Setting | Command) -> str:
    names = ", ".join(filter(None, (row.short, row.flag or getattr(row, "no_flag", ""))))
    if isinstance(row, Command):
        return f"{names} {row.value}".rstrip()
    if row.kind == "bool":
        return f"{names} | {row.no_flag}" if row.flag and row.no_flag else names
    value = "|".join(row.choices) or {"int": "N", "float": "NUMBER", "path": "PATH"}.get(row.kind, "TEXT")
    return f"{names} {value}"
