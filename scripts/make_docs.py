"""Write the generated pages in docs/ from the declared settings; with --check, list stale ones."""

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

Set anything on this page from Python, in a [profile](profiles.md), with a flag, or in the environment:

```python
interpreter.auto_run = True
interpreter.llm.model = "gpt-4o"
```

Every setting is an attribute and a profile key (`llm.model: gpt-4o`, or nested). Settings without a dot are also
arguments of `OpenInterpreter(...)`. Many have a flag, and some an environment variable. If several give a value, the
order is: flag, then environment, then profile, then default. Only a flag overrides what your code sets.

A value of the wrong type is an error. A misspelled name warns, and is an error in profiles, in flags and with
`strict_settings=True`:

```python
interpreter.autorun = True
# UserWarning: autorun is not a setting. Did you mean auto_run?
interpreter.llm.max_tokens = "many"
# SettingTypeError: llm.max_tokens takes int or None, not 'many' (str). For example: llm.max_tokens = 1000.
```

mypy and pyright report both lines before you run them.

*Headless* means that no one can answer a question: standard input isn't a terminal, or you used `--stdin`.
"""

COMMAND_LINE_INTRODUCTION = """\
# The command line

Start a chat, or pass a message. `interpreter` and `i` are the same program:

```
interpreter                               start a chat
interpreter -y --plain "list my files"    answer one message; -y runs code without asking
i want a venv                             answer one message, "I want a venv"
echo "list my files" | interpreter --stdin
```

- Words that come first are a sentence that starts with "I", and get a quick answer. Words after a flag are the
  message as it is.
- A flag between two words is part of the message (`i want to know what ls -l prints`). Flags before the first and
  after the last word are flags. Everything after `--` is the message.
- You can shorten long flags while they stay unique (`--mod`), and use dashes or underscores (`--auto-run`). Every
  on/off flag has a `--no-` form, and also takes `true` or `false`.
- An unknown flag is an error that suggests the closest one.
- Piped input is added to the message: `cat report.md | interpreter "sum it up"`.
- [Scripts and CI](headless.md) covers exit codes, JSON events and answers that match a schema. [Profiles](profiles.md)
  keep settings in files.

This is `interpreter --help`:
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
    note = [f"\n*No effect: {row.inert}.*"] if row.inert else []
    return "\n".join([f"### `{row.name}`\n", row.help, *note, "", *_facts(row)]) + "\n"


def _facts(row: Setting) -> Iterator[str]:
    takes = " or ".join(f"`{choice}`" for choice in row.choices) or row.kind
    yield f"- takes: {takes}" + (" or None" if row.optional else "")
    default = row.default.words if isinstance(row.default, Default) else repr(row.default)
    yield f"- default: {default}" if "`" in default or " " in default else f"- default: `{default}`"
    if row.headless is not None:
        yield f"- default when headless: `{row.headless!r}`"
    negative = row.no_flag or (f"--no-{row.flag[2:]}" if row.flag and row.kind == "bool" else "")
    if flags := ", ".join(f"`{flag}`" for flag in (row.flag, row.short, negative) if flag):
        yield f"- flag: {flags}"
    if row.env:
        yield f"- environment: `{row.env}`"


PAGES = {
    ROOT / "docs" / "settings.md": settings_page,
    ROOT / "docs" / "command-line.md": command_line_page,
}


def stale() -> list[Path]:
    """Pages that no longer match the settings."""
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
