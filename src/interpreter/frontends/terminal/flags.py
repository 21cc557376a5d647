"""The command line: its flags come from the table of settings, its words are a message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from interpreter.config.settings import (
    SETTINGS,
    Setting,
    closest,
    parse_value,
    setting_named,
)
from interpreter.errors import SettingError, UsageError

_IN_FULL = ("--mode",)  # no beginning of it will do: `--mod` has always been --model


class Command(NamedTuple):
    """A flag that is no setting: it chooses what the program does."""

    name: str
    help: str
    short: str = ""
    value: str = ""
    """Name of the value it takes, or the words to choose from; in brackets where it may be left out."""
    later: str = ""

    @property
    def flag(self) -> str:
        return f"--{self.name}"

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(self.value.split("|")) if "|" in self.value else ()


COMMANDS = (
    Command("profile", "Load a profile: its name, its file or its address.", "-p", "NAME"),
    Command("trust_profile", "Load a profile from an address without showing it and asking first."),
    Command("fast", "Load the profile `fast`.", "-f"),
    Command("vision", "Load the profile `vision`.", "-vi"),
    Command("local", "Choose a model that runs on this machine.", "-l"),
    Command("codestral", "Load the profile `codestral`."),
    Command("llama3", "Load the profile `llama3`."),
    Command("groq", "Load the profile `groq`."),
    Command("assistant", "Load the profile `assistant`."),
    Command("profiles", "Open the folder of your profiles, or print where it is, and end."),
    Command("reset_profile", "Put a built-in profile back as it was, or all; yours are kept.", value="[NAME]"),
    Command("debug_config", "Print every setting, its value, and who gave it, and end."),
    Command("local_models", "Open the folder of downloaded models, or print where it is, and end."),
    Command("setup", "Choose the model anew: a key, a server on this machine, or the built-in one."),
    Command("models", "List the models that can be used now, those with FILTER in their names.", value="[FILTER]"),
    Command("conversations", "Choose an earlier conversation and go on with it."),
    Command("resume", "Go on with the conversation whose id begins with ID; without ID, choose one.", value="[ID]"),
    Command("continue", "Go on with the last conversation in this folder."),
    Command("server", "Serve over HTTP and WebSocket.", later="the server is not there yet"),
    Command("stdin", "Take one message from standard input, answer in plain text, and end.", "-s"),
    Command("json", "Print one JSON event per line instead of text; see docs/headless.md."),
    Command("output_schema", "Make the final answer JSON that fits this JSON Schema.", value="FILE"),
    Command("completion", "Print a script that completes flags in your shell, and end.", value="bash|zsh|fish"),
    Command("shell_hook", "Print what `wtf` needs in your shell's rc file, and end.", value="bash|zsh"),
    Command("policy_check", "Tell what the rules say of CODE, and why, and end; see docs/policy.md.", value="CODE"),
    Command("language", "The language of the code for `--policy_check`; default: shell.", value="LANGUAGE"),
    Command("version", "Print the version and end."),
    Command("help", "Print this help and end.", "-h"),
)


class Parsed(NamedTuple):
    """What a command line says."""

    settings: dict[str, Any]
    """By dotted name, only what was given."""
    actions: dict[str, Any]
    """The commands given: True, or the value of those that take one."""
    message: str | None
    shortcut: bool
    """The words came first (`i want a venv`): answer quickly."""
    notices: tuple[str, ...]
    """Lines to show, about flags that do nothing or not yet what they say."""


class _Option(NamedTuple):
    target: Setting | Command
    switch: bool | None
    """What the flag switches to; None if it takes a value."""
    value_optional: bool = False


class _Found(NamedTuple):
    flag: str
    option: _Option
    text: str | None


def parse(argv: Sequence[str], prog: str = "interpreter") -> Parsed:
    """Read a command line: flags, then words; flags may also follow the words."""
    found, at = _leading_flags(argv)
    words = list(argv[at:])
    if words[:1] == ["--"]:
        words = words[1:]
    else:
        words, tail = _split_tail(words)
        found += tail
    settings: dict[str, Any] = {}
    actions: dict[str, Any] = {}
    for flag, option, text in found:
        if isinstance(option.target, Setting):
            settings[option.target.name] = _setting_value(flag, option, text)
        else:
            actions[option.target.name] = True if text is None else _chosen(flag, option.target, text)
    shortcut = bool(words) and (prog == "i" or (at == 0 and words[0] == argv[0]))
    message = " ".join(["I", *words] if shortcut else words) or None
    return Parsed(settings, actions, message, shortcut, tuple(dict.fromkeys(_notices(found))))


def _leading_flags(argv: Sequence[str]) -> tuple[list[_Found], int]:
    found: list[_Found] = []
    at = 0
    while at < len(argv) and _looks_like_flag(argv[at]):
        more, at = _take(argv, at)
        found += more
    return found, at


def _split_tail(words: list[str]) -> tuple[list[str], list[_Found]]:
    """Words and the flags that end them; a flag between two words belongs to the sentence."""
    if "--" in words:
        at = words.index("--")
        return words[:at] + words[at + 1 :], []
    for start in range(1, len(words)):
        if not _looks_like_flag(words[start]):
            continue
        try:
            found, end = _leading_flags(words[start:])
        except UsageError:
            continue
        if start + end == len(words):
            return words[:start], found
    for word in words:
        if word.startswith("--") and _lookup(word) is None and _closest(word, cutoff=0.8):
            raise _unknown(word)
    return words, []


def _looks_like_flag(word: str) -> bool:
    return word.startswith("-") and word not in ("-", "--")


def _take(argv: Sequence[str], at: int) -> tuple[list[_Found], int]:
    """The flag at this place, with its value, and the place after it."""
    word, equals, inline = argv[at].partition("=")
    option = _lookup(word)
    if option is None:
        if cluster := _cluster(argv[at]):
            return cluster, at + 1
        raise _unknown(word)
    following = argv[at + 1] if at + 1 < len(argv) else None
    if equals:
        if option.switch and isinstance(option.target, Command):
            raise UsageError(f"{word} takes no value.")
        return [_Found(word, option, inline)], at + 1
    if option.switch is not None:
        # `--offline true` is what old pages show; `--auto_run false` must not run by itself.
        given = isinstance(option.target, Setting) and (following or "").lower() in ("true", "false")
        return [_Found(word, option, following if given else None)], at + 1 + given
    if following is None or (_looks_like_flag(following) and not _is_negative_number(following)):
        if option.value_optional:
            return [_Found(word, option, None)], at + 1
        raise UsageError(f"{word} needs a value.")
    return [_Found(word, option, following)], at + 2


def _is_negative_number(word: str) -> bool:
    return word[1:].replace(".", "", 1).isdigit()


def _lookup(word: str) -> _Option | None:
    """The option that a flag means: itself, or the only one that it is the beginning of."""
    options = _options()
    if not word.startswith("--"):
        return options.get(word)
    name = "--" + word[2:].replace("-", "_")
    if name in options:
        return options[name]
    known = [flag for flag in options if flag.startswith(name) and flag not in _IN_FULL]
    longer = [flag for flag in known if not flag.startswith("--no_")] or known
    shortest = min(longer, key=len, default="")
    if shortest and all(flag.startswith(shortest) for flag in longer):
        return options[shortest]  # `--mod` is --model, although there is --models
    if len({options[flag] for flag in longer}) > 1:
        raise UsageError(f"{word} could be {', '.join(longer)}: write a little more of it.")
    return options[longer[0]] if longer else None


def _cluster(word: str) -> list[_Found]:
    """`-yv` as `-y -v`."""
    letters = [f"-{letter}" for letter in word[1:]]
    options = [_options().get(letter) for letter in letters]
    switches = [option for option in options if option is not None and option.switch is not None]
    if len(switches) < len(letters):
        return []
    return [_Found(letter, option, None) for letter, option in zip(letters, switches, strict=True)]


@cache
def _options() -> dict[str, _Option]:
    """Every spelling of every flag; long ones with underscores only."""
    options: dict[str, _Option] = {}
    for row in SETTINGS:
        if row.flag or row.no_flag:
            options |= _setting_options(row)
    for command in COMMANDS:
        option = _Option(command, None if command.value else True, command.value.startswith("["))
        options |= {spelling: option for spelling in (command.flag, command.short) if spelling}
    # The old name of a flag.
    options["--debug_mode"] = _Option(setting_named("verbose"), True)
    return options


def _setting_options(row: Setting) -> dict[str, _Option]:
    flag = row.flag or f"--{row.leaf}"
    if row.kind != "bool":
        return {spelling: _Option(row, None) for spelling in (flag, row.short) if spelling}
    options = {flag: _Option(row, True), f"--no_{flag[2:]}": _Option(row, False)}
    if row.short:
        options[row.short] = _Option(row, bool(row.flag))
    return options


def _setting_value(flag: str, option: _Option, text: str | None) -> Any:
    row = option.target
    assert isinstance(row, Setting)
    if text is None:
        return option.switch
    try:
        value = parse_value(row, text, flag)
    except SettingError as error:
        raise UsageError(str(error)) from None
    return value if option.switch is None else value == option.switch


def _chosen(flag: str, command: Command, text: str) -> str:
    if command.choices and text not in command.choices:
        raise UsageError(f"{flag} takes {' or '.join(command.choices)}, not {text!r}.")
    return text


def _notices(found: Sequence[_Found]) -> Iterator[str]:
    for flag, option, _ in found:
        if flag == "--debug_mode":
            yield "--debug_mode is now --verbose."
        elif isinstance(option.target, Setting) and option.target.inert:
            yield f"{flag} does nothing: {option.target.inert}."
        elif option.target.later:
            yield f"{flag}: {option.target.later}."


def _closest(word: str, cutoff: float = 0.6) -> str | None:
    name = word if not word.startswith("--") else "--" + word[2:].replace("-", "_")
    return closest(name, _options(), cutoff)


def _unknown(word: str) -> UsageError:
    close = _closest(word)
    advice = f"Did you mean {close}?" if close else "`interpreter --help` lists them all."
    return UsageError(f"There is no flag {word}. {advice}")
