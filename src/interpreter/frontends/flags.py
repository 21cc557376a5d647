"""Command-line flags: the parser, `--help` and shell completion, all generated from the table of settings."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from textwrap import wrap
from typing import Any, NamedTuple

from interpreter.config.setting import Setting, closest, parse_value, setting_named
from interpreter.config.settings import SETTINGS
from interpreter.errors import SettingError, UsageError
from interpreter.frontends.exit_codes import MEANINGS
from interpreter.leaves import ROWS, leaves

_IN_FULL = ("--mode",)  # can't be abbreviated: `--mod` has always been --model


class CommandFlag(NamedTuple):
    """A flag that is not a setting: it selects what the program does."""

    name: str
    help: str
    short: str = ""
    value: str = ""  # the name of its value, or the choices; in brackets if optional

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.value.split("|")) if "|" in self.value else ()


COMMANDS = (
    CommandFlag("profile", "Load a profile, by name, path or URL.", "-p", "NAME"),
    CommandFlag("trust_profile", "Load a profile from a URL without asking first."),
    CommandFlag("fast", "Load the profile `fast`.", "-f"),
    CommandFlag("vision", "Load the profile `vision`.", "-vi"),
    CommandFlag("local", "Pick a model that runs on this machine.", "-l"),
    CommandFlag("codestral", "Load the profile `codestral`."),
    CommandFlag("llama3", "Load the profile `llama3`."),
    CommandFlag("groq", "Load the profile `groq`."),
    CommandFlag("assistant", "Load the profile `assistant`."),
    CommandFlag("profiles", "Open the folder with your profiles, or print its path."),
    CommandFlag("reset_profile", "Restore one or all built-in profiles. Your own are kept.", value="[NAME]"),
    CommandFlag("debug_config", "Print every setting, its value and where it was set."),
    CommandFlag("setup", "Pick a model again: with a key, from a local server, or the built-in one."),
    CommandFlag("install", "Install what EXTRA needs, such as server or os. Asks first; -y doesn't.", value="EXTRA"),
    CommandFlag("models", "List the models you can use now. FILTER searches their names.", value="[FILTER]"),
    CommandFlag("conversations", "Pick an earlier conversation and continue it."),
    CommandFlag("resume", "Continue the conversation whose id starts with ID. Without ID, pick one.", value="[ID]"),
    CommandFlag("continue", "Continue the last conversation in this folder."),
    CommandFlag("stdin", "Read one message from standard input, answer in plain text, and exit.", "-s"),
    CommandFlag("json", "Print one JSON event per line instead of text. See docs/headless.md."),
    CommandFlag("output_schema", "Make the final answer JSON that matches this JSON Schema.", value="FILE"),
    CommandFlag("completion", "Print a completion script for your shell.", value="bash|zsh|fish"),
    *(CommandFlag(row.name, row.help, row.short, row.value) for leaf in ROWS for row in leaf.flags),
    CommandFlag("policy_check", "Print whether your rules allow CODE, and why. See docs/policy.md.", value="CODE"),
    CommandFlag("language", "The language of the code for `--policy_check`. Default: shell.", value="LANGUAGE"),
    CommandFlag("doctor", "Print what this installation lacks, and packages of others that fail."),
    CommandFlag("version", "Print the version."),
    CommandFlag("help", "Print this help.", "-h"),
)


class Parsed(NamedTuple):
    settings: dict[str, Any]  # by dotted name, only what was given
    actions: dict[str, Any]  # the commands given: True, or the value of those that take one
    message: str | None
    shortcut: bool  # the words came first (`i want a venv`): answer quickly
    notices: tuple[str, ...]  # lines to show, about flags that do nothing or not yet what they say


class Flag(NamedTuple):
    """A flag with its spellings, what it is about, and the value it sets; None if it takes a value."""

    names: tuple[str, ...]
    target: Setting | CommandFlag
    switch: bool | None
    offered: bool = True  # by completion


Found = tuple[str, Flag, str | None]  # as it was spelled, the flag, and its value


@cache
def flags() -> list[Flag]:
    options = []
    for row in SETTINGS:
        if not (row.flag or row.no_flag):
            continue
        positive = tuple(filter(None, (row.flag or f"--{row.leaf}", row.short if row.flag else "")))
        negative = tuple(filter(None, (row.no_flag or f"--no-{row.flag[2:]}", "" if row.flag else row.short)))
        if row.kind == "bool":
            options += [Flag(positive, row, True, offered=bool(row.flag)), Flag(negative, row, False)]
        else:
            options.append(Flag(positive, row, None))
    for command in COMMANDS:
        names = tuple(filter(None, (command.flag, command.short)))
        options.append(Flag(names, command, None if command.value else True))
    return [*options, Flag(("--debug_mode",), setting_named("verbose"), True, offered=False)]  # the old name


def parse(argv: Sequence[str], prog: str = "interpreter") -> Parsed:
    """Read a command line: flags, then words; flags may also follow the words."""
    given, at = _leading_flags(argv)
    positional = list(argv[at:])
    if positional[:1] == ["--"]:
        positional = positional[1:]
    else:
        positional, tail = _split_tail(positional)
        given += tail
        if (
            len(positional) == 1
            and "--" not in argv
            and prog != "i"
            and os.path.isdir(os.path.expanduser(positional[0]))
        ):
            workspace = os.path.abspath(os.path.expanduser(positional.pop()))
            given.insert(0, ("--workspace", _options()["--workspace"], workspace))
    settings: dict[str, Any] = {}
    actions: dict[str, Any] = {}
    notices: dict[str, None] = {}
    for spelled, flag, text in given:
        row = flag.target
        into = settings if isinstance(row, Setting) else actions
        into[row.name] = _value(spelled, flag, text)
        if spelled == "--debug_mode":
            notices["--debug_mode is now --verbose."] = None
        elif isinstance(row, Setting) and row.inert:
            notices[f"{spelled} does nothing: {row.inert}."] = None
    shortcut = bool(positional) and (prog == "i" or (at == 0 and positional[0] == argv[0]))
    message = " ".join(["I", *positional] if shortcut else positional) or None
    return Parsed(settings, actions, message, shortcut, tuple(notices))


def _leading_flags(argv: Sequence[str]) -> tuple[list[Found], int]:
    leading: list[Found] = []
    at = 0
    while at < len(argv) and _looks_like_flag(argv[at]):
        more, at = _take(argv, at)
        leading += more
    return leading, at


def _split_tail(positional: list[str]) -> tuple[list[str], list[Found]]:
    """Split words from the flags after them; a flag between two words belongs to the sentence."""
    if "--" in positional:
        at = positional.index("--")
        return positional[:at] + positional[at + 1 :], []
    for start in range(1, len(positional)):
        if not _looks_like_flag(positional[start]):
            continue
        try:
            tail, end = _leading_flags(positional[start:])
        except UsageError:
            continue
        if start + end == len(positional):
            return positional[:start], tail
    for word in positional:
        if word.startswith("--") and _lookup(word) is None and closest(_with_underscores(word), _options(), 0.8):
            raise _unknown(word)
    return positional, []


def _looks_like_flag(word: str) -> bool:
    return word.startswith("-") and word not in ("-", "--")


def _take(argv: Sequence[str], at: int) -> tuple[list[Found], int]:
    """Return the flag at this place with its value, and the place after it; of `-yv`, both."""
    word, equals, inline = argv[at].partition("=")
    flag = _lookup(word)
    if flag is None:
        letters = [f"-{letter}" for letter in argv[at][1:]]
        cluster = [(letter, known, None) for letter in letters if (known := _options().get(letter)) is not None]
        if len(cluster) < len(letters) or any(known.switch is None for _, known, _ in cluster):
            raise _unknown(word)
        return [*cluster], at + 1
    following = argv[at + 1] if at + 1 < len(argv) else None
    if equals:
        if flag.switch and isinstance(flag.target, CommandFlag):
            raise UsageError(f"{word} doesn't take a value.")
        return [(word, flag, inline)], at + 1
    if flag.switch is not None:
        # Old pages show `--offline true`, and `--auto_run false` must not turn auto_run on.
        given = isinstance(flag.target, Setting) and (following or "").lower() in ("true", "false")
        return [(word, flag, following if given else None)], at + 1 + given
    is_number = following is not None and following[1:].replace(".", "", 1).isdigit()  # such as -1
    if following is None or (_looks_like_flag(following) and not is_number):
        if isinstance(flag.target, CommandFlag) and flag.target.value.startswith("["):
            return [(word, flag, None)], at + 1
        raise UsageError(f"{word} needs a value.")
    return [(word, flag, following)], at + 2


def _lookup(word: str) -> Flag | None:
    """Find the option that a flag means: itself, or the only one that it is the beginning of."""
    options = _options()
    if not word.startswith("--"):
        return options.get(word)
    name = _with_underscores(word)
    if name in options:
        return options[name]
    known = [flag for flag in options if flag.startswith(name) and flag not in _IN_FULL]
    longer = [flag for flag in known if not flag.startswith("--no_")] or known
    shortest = min(longer, key=len, default="")
    if shortest and all(flag.startswith(shortest) for flag in longer):
        return options[shortest]  # `--mod` is --model, although there is --models
    if len({options[flag] for flag in longer}) > 1:
        raise UsageError(f"{word} is ambiguous: {', '.join(longer)}.")
    return options[longer[0]] if longer else None


@cache
def _options() -> dict[str, Flag]:
    """Map every spelling to its flag; long ones with underscores only."""
    return {_with_underscores(name): flag for flag in flags() for name in flag.names}


def _with_underscores(name: str) -> str:
    return "--" + name[2:].replace("-", "_") if name.startswith("--") else name


def _value(spelled: str, flag: Flag, text: str | None) -> Any:
    """Return the value of a setting, or of a command: True if it takes none."""
    row = flag.target
    if text is None:
        return True if isinstance(row, CommandFlag) else flag.switch
    if isinstance(row, CommandFlag):
        if row.choices and text not in row.choices:
            raise UsageError(f"{spelled} takes {' or '.join(row.choices)}, not {text!r}.")
        return text
    try:
        value = parse_value(row, text, spelled)
    except SettingError as error:
        raise UsageError(str(error)) from None
    return value if flag.switch is None else value == flag.switch


def _unknown(word: str) -> UsageError:
    close = closest(_with_underscores(word), _options(), 0.6)
    advice = f"Did you mean {close}?" if close else "See `interpreter --help`."
    return UsageError(f"There is no flag {word}. {advice}")


# -- help ----------------------------------------------------------------------------------------------------------

_COLUMN, _WIDTH = 30, 80
_VALUE_NAMES = {"int": "N", "float": "NUMBER", "path": "PATH"}

_USAGE = """\
Usage: interpreter [flags]                start a chat
       interpreter [flags] FOLDER         start a chat that works in that folder
       interpreter [flags] "a message"    answer one message and exit
       i want a venv                      the same, written as a sentence"""

_FOOTER = """\
On/off flags have a --no- form. You can shorten a flag as long as it stays
unambiguous, and use dashes or underscores. A flag between the words of a
message is part of the message, and so is everything after --.

In the chat, start a message with three double quotes (\""") to write several
lines, and end it the same way. %help lists the commands. Ctrl-C stops the model
or the running code; Ctrl-D exits.

Settings come from flags, environment variables, the profile and the defaults,
in that order of precedence. --debug_config shows the settings in effect.
Piped input is sent along with the message."""


def help_text() -> str:
    lines = [_USAGE]
    sections: dict[str, list[Setting | CommandFlag]] = {}
    for setting in SETTINGS:
        if setting.flag or setting.no_flag:
            sections.setdefault(setting.section, []).append(setting)
    missing = {row.name for leaf in ROWS if not leaf.is_present for row in leaf.flags}
    sections["Commands"] = [command for command in COMMANDS if command.name not in missing]
    for heading, rows in sections.items():
        lines += ["", f"{heading}:"]
        for row in rows:
            left = "  " + ", ".join(filter(None, (row.short, row.flag or getattr(row, "no_flag", ""))))
            description = row.help.replace("`", "")
            if isinstance(row, CommandFlag):
                left = f"{left} {row.value}".rstrip()
            elif row.kind == "bool":
                left += f" | {row.no_flag}" if row.flag and row.no_flag else ""
            else:
                left += " " + ("|".join(row.choices) or _VALUE_NAMES.get(row.kind, "TEXT"))
                if isinstance(row.default, int | float | str) and row.default != "":
                    description += f" Default: {row.default}."
            if not row.flag:
                description = f"Do not {description[0].lower()}{description[1:]}"
            right = wrap(description, _WIDTH - _COLUMN, break_long_words=False, break_on_hyphens=False)
            lines.append(left if len(left) > _COLUMN - 2 else left.ljust(_COLUMN) + right.pop(0))
            lines += [" " * _COLUMN + line for line in right]
    subcommands = [each for leaf in leaves() for each in leaf.subcommands]
    lines += ["", "Subcommands:"] if subcommands else []
    for each in subcommands:
        right = wrap(each.help, _WIDTH - _COLUMN)
        left = f"  {each.words} {each.arguments}".rstrip()
        lines.append(left if len(left) > _COLUMN - 2 else left.ljust(_COLUMN) + right.pop(0))
        lines += [" " * _COLUMN + line for line in right]
    codes = [f"  {code:<4} {description}" for code, description in MEANINGS.items()]
    return "\n".join([*lines, "", _FOOTER, "", "Exit codes:", *codes])


# -- completion ----------------------------------------------------------------------------------------------------

PROGRAMS = ("interpreter", "i")

_BASH = r"""# Completion for bash. In ~/.bashrc: source <(interpreter --completion bash)
_interpreter() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} own
    COMPREPLY=()
    # bash splits `--flag=value` into three words.
    [[ $cur == "=" ]] && cur=""
    [[ $prev == "=" ]] && prev=${COMP_WORDS[COMP_CWORD-2]}
    # Treat dashes and underscores alike.
    [[ $prev == --* ]] && own=${prev:2} && prev=--${own//-/_}
    case $prev in
@LINES@
    esac
    if [[ $cur == -* ]]; then
        local flags="@FLAGS@"
        [[ $cur == --*-* ]] && flags="$flags @DASHED@"
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    fi
}
complete -o default -F _interpreter @PROGRAMS@
"""

_ZSH = r"""#compdef @PROGRAMS@
# Completion for zsh. In ~/.zshrc, after compinit: source <(interpreter --completion zsh)
_interpreter_profiles() {
    local -a names
    names=(@BUILTIN@ "@FOLDER@"/*(N:t))
    compadd -a names
    _files
}
_interpreter() {
    _arguments -M 'm:{-_}={_-}' \
@LINES@
        '*:message:_files'
}
compdef _interpreter @PROGRAMS@
"""

_FISH = r"""# Completion for fish: interpreter --completion fish > ~/.config/fish/completions/interpreter.fish
function __interpreter_profiles
    set -l config $HOME/.config
    set -q XDG_CONFIG_HOME; and set config $XDG_CONFIG_HOME
    for file in "@FOLDER@"/*
        string replace -r '.*/' '' -- $file
    end
end

@LINES@
"""

# What completes the value of a flag, by what it takes.
_VALUES = {
    "bash": {
        "choices": 'COMPREPLY=($(compgen -W "{choices}" -- "$cur")); return',
        "folders": "compopt -o dirnames +o default 2>/dev/null; return",
        "profiles": 'own=$(cd "{folder}" 2>/dev/null && ls); '
        'COMPREPLY=($(compgen -W "{builtin} $own" -f -- "$cur")); return',
        "files": "return",  # bash's own
        "any": "return",
    },
    "zsh": {
        "choices": ":value:({choices})",
        "folders": ":folder:_files -/",
        "profiles": ":profile:_interpreter_profiles",
        "files": ":file:_files",
        "any": ":value: ",
    },
    "fish": {
        "choices": "-x -a '{choices}' ",
        "folders": "-x -a '(__fish_complete_directories)' ",
        "profiles": "-r -F -a '{builtin} (__interpreter_profiles)' ",
        "files": "-r -F ",
        "any": "-x ",
    },
}


def completion_script(shell: str) -> str:
    """Write the script of `--completion`, which completes flags and their values in this shell."""
    from interpreter.config.profiles import builtin_names

    folder = "${XDG_CONFIG_HOME:-$HOME/.config}/open-interpreter/profiles"
    if sys.platform == "darwin":
        folder = "$HOME/Library/Application Support/open-interpreter/profiles"
    names = " ".join(builtin_names())
    completed = []
    for flag in flags():
        row, takes = flag.target, "any"
        if row.name in ("profile", "reset_profile"):
            takes = "profiles"
        elif row.choices:
            takes = "choices"
        elif isinstance(row, Setting):
            takes = "folders" if row.leaf == "workspace" else "files" if row.kind == "path" else "any"
        elif row.value == "FILE":
            takes = "files"
        value = "" if flag.switch is not None else _VALUES[shell][takes]
        # The first sentence, without characters that mean something to a shell.
        description = re.sub("[`\"'$]", "", row.help).partition(". ")[0].rstrip(".")
        value = value.format(choices=" ".join(row.choices), folder=folder, builtin=names)
        if flag.offered:
            completed.append((flag, f"Not: {description}" if flag.switch is False else description, value))
    script, lines = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[shell], []
    spellings = [name for flag, _, _ in completed for name in flag.names]
    if shell == "fish":  # fish has no ${NAME:-otherwise}
        folder = folder.replace("${XDG_CONFIG_HOME:-$HOME/.config}", "$config")
        for program in PROGRAMS:
            for flag, description, value in completed:
                kinds = ["l" if name.startswith("--") else "s" if len(name) == 2 else "o" for name in flag.names]
                spelled = " ".join(f"-{kind} {name.lstrip('-')}" for kind, name in zip(kinds, flag.names, strict=True))
                lines.append(f"complete -c {program} {spelled} {value}-d '{description}'")
    elif shell == "zsh":
        for flag, description, value in completed:
            description = description.replace("[", "(").replace("]", ")").replace(":", "\\:")
            lines += [f"        '{name}[{description}]{value}' \\" for name in flag.names]
    else:
        lines = [f"        {'|'.join(flag.names)}) {value} ;;" for flag, _, value in completed if flag.switch is None]
    filled = {
        "FLAGS": " ".join(spellings),
        "DASHED": " ".join("--" + name[2:].replace("_", "-") for name in spellings if "_" in name),
        "LINES": "\n".join(lines),
        "BUILTIN": names,
        "FOLDER": folder,
        "PROGRAMS": " ".join(PROGRAMS),
    }
    for name, text in filled.items():
        script = script.replace(f"@{name}@", text)
    return script.rstrip()
