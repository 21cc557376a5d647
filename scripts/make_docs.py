"""Writes the generated pages of docs/ from the declared settings; with --check, says which ones are stale."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

from interpreter.config.setting import Default, Setting  # noqa: E402  (needs the path above)
from interpreter.config.settings import SETTINGS  # noqa: E402
from interpreter.frontends.flags import help_text  # noqa: E402

NOTICE = "<!-- Written by `make docs` from src/interpreter/config/settings.py: change it there. -->"

SETTINGS_INTRODUCTION = """\
# Settings

Every setting is an attribute (`interpreter.auto_run`, `interpreter.llm.model`) and a key in a profile
(`llm.model: gpt-4o`, or nested); those without a dot are arguments of `OpenInterpreter(...)`. Many are also
a flag, and some an environment variable. Where two of them speak, the stronger one is heard: flag, then
environment, then profile, then the default. What your code sets is changed by a flag, and by nothing else.

A wrong type or an unknown name is an error that names the right one:

```python
interpreter.autorun = True
# UnknownSettingError: There is no setting named autorun. Did you mean auto_run?
interpreter.llm.max_tokens = "4096"
# SettingTypeError: llm.max_tokens takes int or None, not '4096' (str).
```

mypy and pyright report both lines before you run them.

*Headless* means that nobody is there to ask: standard input is no terminal, or `--stdin`.
"""

COMMAND_LINE_INTRODUCTION = """\
# The command line

`interpreter` and `i` are the same program. It starts a chat, or takes a message:

```
interpreter                               a chat
interpreter -y --plain "list my files"    one message; -y runs the code without asking
i want a venv                             one message, as a sentence that begins with I
echo "list my files" | interpreter --stdin
```

- Words that come first are a sentence that begins with "I", and are answered quickly. Words after a flag
  are the message as it stands.
- A flag between two words is part of the message (`i want to know what ls -l prints`); flags before the
  first and after the last word are flags. `--` ends the flags: everything after it is the message.
- Long flags may be shortened while they stay clear (`--mod`), and take dashes or underscores
  (`--auto-run`). Every on/off flag has a `--no-` form, and also takes `true` or `false`.
- A flag that does not exist is an error that names the closest one.
- What is piped in goes along with the message: `cat report.md | interpreter "sum it up"`.
- [Headless use](headless.md) tells of exit codes, JSON events and answers that fit a schema,
  [profiles](profiles.md) of settings in files.

The same from `interpreter --help`:
"""


def settings_page() -> str:
    parts = [NOTICE, SETTINGS_INTRODUCTION]
    for section in dict.fromkeys(row.section for row in SETTINGS):
        parts.append(f"## {section}\n")
        parts += [_entry(row) for row in SETTINGS if row.section == section]
    return "\n".join(parts).rstrip() + "\n"


def command_line_page() -> str:
    return f"{NOTICE}\n{COMMAND_LINE_INTRODUCTION}\n```text\n{help_text()}\n```\n"


def _entry(row: Setting) -> str:
    return "\n".join([f"### `{row.name}`\n", row.help, *_notes(row), "", *_facts(row)]) + "\n"


def _notes(row: Setting) -> Iterator[str]:
    if row.later:
        yield f"\n*Not yet: {row.later}.*"
    if row.inert:
        yield f"\n*Without effect: {row.inert}.*"


def _facts(row: Setting) -> Iterator[str]:
    takes = " or ".join(f"`{choice}`" for choice in row.choices) or row.kind
    yield f"- takes: {takes}" + (" or None" if row.optional else "")
    default = row.default.words if isinstance(row.default, Default) else repr(row.default)
    yield f"- default: {default}" if "`" in default or " " in default else f"- default: `{default}`"
    if row.headless is not None:
        yield f"- default in headless use: `{row.headless!r}`"
    if flags := _flags(row):
        yield f"- flag: {flags}"
    if row.env:
        yield f"- environment: `{row.env}`"


def _flags(row: Setting) -> str:
    negative = row.no_flag or (f"--no-{row.flag[2:]}" if row.flag and row.kind == "bool" else "")
    return ", ".join(f"`{flag}`" for flag in (row.flag, row.short, negative) if flag)


PAGES = {
    ROOT / "docs" / "settings.md": settings_page,
    ROOT / "docs" / "command-line.md": command_line_page,
}


def stale() -> list[Path]:
    """The pages whose file is not what the table says."""
    return [page for page, make in PAGES.items() if not page.exists() or page.read_text(encoding="utf-8") != make()]


def main() -> int:
    old = stale()
    if "--check" in sys.argv:
        for page in old:
            print(f"{page.relative_to(ROOT)} is stale: run `make docs`")
        return bool(old)
    for page in old:
        page.write_text(PAGES[page](), encoding="utf-8")
        print(f"wrote {page.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
