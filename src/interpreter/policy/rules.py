"""A rule: the patterns it is made of, whether it matches a step, and the narrowest rule to propose for a block.

`ask` and `deny` match when any effect of the step fits; `allow` only when it covers every one of them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from interpreter.config.homes import homes, our_folder
from interpreter.host.exposure import is_inside
from interpreter.policy.analysis import Effect, Effects, EffectStep, analyze
from interpreter.policy.analysis.notes import is_of_system

Decision = Literal["allow", "ask", "deny"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
NOTHING = "nothing"
# The two halves of `network`.
NETWORK_KINDS = ("get", "send")


OUR_OWN = "built in"  # the source of the rules that come with the package


@dataclass(frozen=True)
class Rule:
    """One rule of a policy file; empty fields don't restrict it."""

    decision: Decision
    language: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # beginnings of commands, word by word; a word may be a pattern
    path: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    does: tuple[str, ...] = ()  # kinds of effects, or `nothing`
    call: tuple[str, ...] = ()  # tools of the computer that code calls: `computer.mouse.*`
    folder: str = ""  # the workspace that the rule applies to
    reason: str = ""
    name: str = ""
    match: tuple[str, ...] = field(default=(), compare=False)
    no_match: tuple[str, ...] = field(default=(), compare=False)
    source: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    def __str__(self) -> str:
        conditions = [f"{name} {', '.join(given)}" for name, given in self.conditions.items()]
        return f"{self.decision}: {'; '.join(conditions) or 'everything'}"

    @property
    def sentence(self) -> str:
        """Describe in plain words what a rule allows."""
        changes = [word for kind, word in _ON_FILES.items() if kind in self.does]
        doing = [f"{_listed(changes)} {_listed([*map(_describe_files, self.path)]) or 'files'}"] if changes else []
        hosts = {kind: f" {_listed(self.host)}".rstrip() for kind in (*NETWORK_KINDS, "network")}
        doing += [phrase + hosts.get(kind, "") for kind, phrase in _DOING.items() if kind in self.does]
        doing += [f"calling {_listed(self.call)}"] if self.call else []
        commands = [command for command in self.command if command.strip("<>&|0123456789")]  # without redirections
        if commands:
            doing.insert(0, f"the command{'s' if len(commands) > 1 else ''} {_listed(commands)}")
        where = f" This applies when you work in {self.folder}." if self.folder else ""
        if self.does == (NOTHING,) and not doing:
            return f"Always allow {_listed(self.language)} code that changes nothing.{where}"
        language = f", in {_listed(self.language)} code" if self.language and not commands else ""
        return f"Always allow {', '.join(doing) or 'anything'}{language}.{where}"

    @property
    def conditions(self) -> dict[str, Sequence[str]]:
        """List what restricts the rule, by the names that the file uses."""
        given: dict[str, Sequence[str]] = {
            name: getattr(self, name) for name in ("language", "command", "does", "path", "host", "call")
        }
        return {name: value for name, value in given.items() if value} | (
            {"folder": [self.folder]} if self.folder else {}
        )

    @property
    def where(self) -> str:
        position = f"{self.source}:{self.line}" if self.line else self.source
        return f"{self.name} ({position})" if self.name else position

    def matches(self, step: EffectStep, folders: Folders) -> bool:
        if self.language and step.language not in self.language:
            return False
        loosely = self.decision != "allow"
        if self.command and not any(_begins(step.words, command, loosely) for command in self.command):
            return False
        if not loosely:
            return (step.fixed or not self.command) and all(self._covers(effect, folders) for effect in step.effects)
        has_target = bool(self.path or self.host or self.call)
        if step.effects and (self.does or has_target):
            return any(self._fits(effect, folders) for effect in step.effects)
        return not has_target and self.does in ((), (NOTHING,))

    def _fits(self, effect: Effect, folders: Folders) -> bool:
        return (
            (not self.does or self._named(effect))
            and (not self.call or self._calls(effect))
            and (not self.path or _any_path(effect, self.path, folders, loosely=True))
            and (not self.host or (effect.kind == "network" and _any_host(effect, self.host)))
        )

    def _covers(self, effect: Effect, folders: Folders) -> bool:
        if effect.kind == "unknown":
            return False  # what the text does not tell is asked
        if self.call and (effect.kind == "computer" or not (self.does or self.path or self.host or self.command)):
            return self._calls(effect)
        if effect.kind == "program":
            return effect.known or bool(self.command)
        if self.does and not self._named(effect):
            return False
        if effect.kind == "network" and self.host:
            return effect.known and _any_host(effect, self.host)
        if (effect.full or effect.place) and self.path:
            return effect.known and _any_path(effect, self.path, folders, loosely=False)
        # Restricted to some paths or hosts, it says nothing about the rest.
        return bool(self.does or self.command) or not (self.path or self.host)

    def _calls(self, effect: Effect) -> bool:
        return effect.kind == "computer" and any(fnmatchcase(effect.what, pattern) for pattern in self.call)

    def _named(self, effect: Effect) -> bool:
        return effect.kind in self.does or (effect.kind == "network" and effect.how in self.does)


def holds_in(folder: str, workspace: str) -> bool:
    """Return whether an entry for a folder (empty: for all folders) applies to a workspace."""
    return not folder or is_inside(workspace, os.path.realpath(os.path.expanduser(folder)))


@lru_cache(1024)  # a long block has the same few calls again and again
def _begins(words: tuple[str, ...], command: str, loosely: bool) -> bool:
    """Return whether a command begins like the rule's; `loosely`: also if its program is in another folder."""
    wanted = _split(command)
    if len(words) < len(wanted) or not wanted:
        return False
    named = "/" not in wanted[0] and (loosely or is_of_system(words[0]))
    program = words[0].rsplit("/", 1)[-1] if named else words[0]
    return all(fnmatchcase(word, pattern) for word, pattern in zip([program, *words[1:]], wanted, strict=False))


@lru_cache(1024)
def _split(command: str) -> tuple[str, ...]:
    """Split a rule's command into words; cached, because each step of a block is compared with each rule."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return tuple(command.split())


def _any_path(effect: Effect, patterns: Sequence[str], folders: Folders, loosely: bool) -> bool:
    if not effect.full:
        return False
    whole = loosely and effect.kind == "delete" and effect.how == "tree"
    if any(matches_path(effect.full, pattern, folders, above_too=whole, in_both=loosely) for pattern in patterns):
        return True
    # `rm -r da*`; a path that is only known at run time is no reason to deny
    return loosely and effect.known and any(may_be(effect.full, pattern, folders, whole) for pattern in patterns)


def _any_host(effect: Effect, patterns: Sequence[str]) -> bool:
    return any(
        pattern == "*" or (effect.known and (fnmatchcase(effect.what, pattern) or effect.what.endswith(f".{pattern}")))
        for pattern in map(str.lower, patterns)
    )


_ON_FILES = {"read": "reading", "write": "writing", "delete": "deleting"}
_DOING = {
    "get": "downloading from",
    "send": "sending data to",
    "network": "contacting",
    "install": "installing packages",
    "database": "changing databases",
    "kill": "stopping processes",
    "program": "running programs",
    "secret": "reading secrets",
}


def _describe_files(pattern: str) -> str:
    """Describe a path pattern in plain English."""
    if pattern in ("{workspace}", "{workspace}/*", "{workspace}/**"):
        return "files in this folder"
    path = pattern.removeprefix("{workspace}/").replace("[[]", "[")
    return f"files in {path.rstrip('*')}" if path.endswith("/*") else path


def _listed(items: Sequence[str]) -> str:
    *first, last = items or ("",)
    return f"{', '.join(first)} and {last}" if first else last


# -- verdicts ---


@dataclass(frozen=True)
class StepVerdict:
    """The rules' verdict on one step of a block."""

    text: str
    line: int
    decision: Decision
    rule: Rule | None  # the strictest that matches; None if none does

    @property
    def reason(self) -> str:
        return "no rule covers it" if self.rule is None else self.rule.reason or str(self.rule)


@dataclass(frozen=True)
class Verdict:
    """The rules' verdict on a block: the strictest of the verdicts on its steps."""

    decision: Decision
    rules: tuple[Rule, ...]
    reason: str
    parts: tuple[StepVerdict, ...]

    @property
    def by_rule(self) -> bool:
        """Return whether a rule decided; otherwise the mode does."""
        return bool(self.rules)


def judge_steps(rules: Sequence[Rule], steps: Sequence[EffectStep], folders: Folders) -> Verdict:
    parts = []
    for step in steps:
        matching = [rule for rule in rules if rule.matches(step, folders)]
        if any(rule.decision == "allow" for rule in matching):  # of the user: what we ask about is theirs to allow
            matching = [rule for rule in matching if not (rule.decision == "ask" and rule.source == OUR_OWN)]
        rule = max(matching, key=lambda rule: DECISIONS.index(rule.decision), default=None)
        parts.append(StepVerdict(step.text, step.line, rule.decision if rule else "ask", rule))
    # A command that changes nothing on its own, such as `cd`, counts only if there is nothing else.
    pairs = zip(steps, parts, strict=True)
    counting = [part for step, part in pairs if part.rule or step.effects or not step.is_command] or parts
    if not counting:
        return Verdict("ask", (), "there is no code in it", ())
    strictest = max(DECISIONS.index(part.decision) for part in counting)
    # A rule that asks comes before the lack of one: it also holds in a mode that would run the rest.
    deciding = [part for part in counting if DECISIONS.index(part.decision) == strictest]
    ruled = [part for part in deciding if part.rule] if DECISIONS[strictest] != "allow" else deciding
    decisive = tuple(dict.fromkeys(part.rule for part in ruled if part.rule))
    reason = "; ".join(dict.fromkeys(part.reason for part in ruled or deciding))
    return Verdict(DECISIONS[strictest], decisive, reason, tuple(parts))


# -- path patterns ---


class Folders(NamedTuple):
    """The values of `{workspace}`, `{config}` and `~` in a pattern; links are resolved."""

    workspace: str
    config: str
    home: str
    account_home: str = ""  # if it differs from `home`: what is denied in one is denied in the other


def folders_for(workspace: str) -> Folders:
    own, *account = homes()
    return Folders(os.path.realpath(workspace), os.path.realpath(our_folder()), own, *account)


def matches_path(path: str, pattern: str, folders: Folders, above_too: bool = False, in_both: bool = False) -> bool:
    """Match a path to a pattern; `in_both`: for both homes; `above_too`: folders above what it covers match, too."""
    if in_both and folders.account_home and pattern.startswith("~"):
        other = folders._replace(home=folders.account_home)
        if matches_path(path, pattern, other, above_too):
            return True
    whole = _whole(pattern, folders)
    if _compiled(whole).fullmatch(path):
        return True
    fixed = re.split(r"[*?\[]", whole, maxsplit=1)[0]
    return above_too and is_inside(os.path.dirname(fixed) if fixed != whole else fixed, path.removesuffix("/*"))


def may_be(path: str, pattern: str, folders: Folders, above_too: bool = False) -> bool:
    """Return whether the pattern could cover a path with stars, or with `above_too` something inside that path."""
    if not re.search(r"[*?\[]", path):
        return False
    if folders.account_home and pattern.startswith("~"):
        other = Folders(folders.workspace, folders.config, folders.account_home)
        if may_be(path, pattern, other, above_too):
            return True
    given, wanted = path.split("/"), _whole(pattern, folders).split("/")
    for name, meant in zip(given, wanted, strict=False):
        if meant == "**":
            return True
        if not (fnmatchcase(meant, name) or fnmatchcase(name, meant)):
            return False
    return len(given) == len(wanted) or (above_too and len(given) < len(wanted))


@lru_cache(maxsize=1024)
def _whole(pattern: str, folders: Folders) -> str:
    text = pattern.replace("{workspace}", folders.workspace).replace("{config}", folders.config)
    if text == "~" or text.startswith("~/"):
        text = folders.home.rstrip("/") + text[1:]
    if not text.startswith("/") and not text.startswith("**"):
        text = f"{folders.workspace.rstrip('/')}/{text.removeprefix('./')}"
    return text.rstrip("/") or "/"


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    pieces = []
    for part in re.split(r"(/\*\*$|\*\*/|\*\*|\*|\?|\[[^\]/]+\])", pattern):
        if part.startswith("[") and part.endswith("]"):
            pieces.append("[" + re.sub("^!", "^", re.sub(r"([\\[])", r"\\\1", part[1:])))
        else:
            pieces.append(_PIECES.get(part) or re.escape(part))
    return re.compile("".join(pieces), re.DOTALL)


_PIECES = {
    "/**": "(/.*)?",  # the folder itself, and all that is in it
    "**/": "(.*/)?",
    "**": ".*",
    "*": "[^/]*",
    "?": "[^/]",
}


# Programs whose second word decides what they do.
_WITH_VERBS = frozenset(
    "git npm pnpm yarn docker podman kubectl cargo go gh brew apt apt-get uv poetry conda systemctl "
    "terraform helm make just dotnet bundle gem composer aws gcloud az".split()
)


_ANYTHING = ("install",)
_ANYWHERE = ("install", "kill", "database")


def propose_rule(
    language: str,
    code: str,
    effects: Effects | None = None,
    workspace: str | None = None,
    *,
    wider: bool = False,
) -> Rule | None:
    """Return the narrowest sensible rule that allows this block; None if it should have no rule.

    `wider`: it also allows the same on other files in the same folders.
    """
    analysis = effects or analyze(language, code, workspace or os.getcwd())
    if analysis.unknown or analysis.of("secret") or not analysis.steps:
        return None  # code that the analysis can't judge must not be allowed permanently
    if any(effect.kind == "computer" and effect.how in ("sends", "unknown") for effect in analysis.all):
        return None  # sending asks each time
    network = analysis.of("network")
    touched = analysis.of("write", "delete", "database") + (network if analysis.language != "shell" else ())
    if not all(effect.known for effect in touched):
        return None
    steps = [step for step in analysis.steps if step.effects or not step.is_command] or list(analysis.steps)
    shell_only = all(step.is_command for step in steps)
    kinds = {effect.how if effect.kind == "network" else effect.kind for effect in analysis.all}
    is_opaque = any(effect.kind == "program" and not effect.known for effect in analysis.all)
    files = (effect for effect in analysis.of("read", "write", "delete", "database") if effect.full)
    return Rule(
        "allow",
        language=tuple(dict.fromkeys(step.language for step in steps)),
        command=tuple(dict.fromkeys(_command(step, wider) for step in steps)) if shell_only else (),
        does=() if is_opaque else tuple(sorted(kinds - {"program", "computer"})) or (NOTHING,),
        path=tuple(dict.fromkeys(_pattern(effect, analysis.workspace, wider) for effect in files)),
        host=tuple(dict.fromkeys(effect.what for effect in network)) if all(effect.known for effect in network) else (),
        call=tuple(dict.fromkeys(effect.what for effect in analysis.calls)),
        folder=analysis.workspace,
        reason='said "always" at the prompt',
    )


def _command(step: EffectStep, wider: bool) -> str:
    """Return as much of the command as describes it, and all of it if no path or host restricts it."""
    arguments = step.words
    if not arguments:
        return step.text
    program = arguments[0].rsplit("/", 1)[-1]
    known = all(effect.known for effect in step.effects if effect.kind == "program")
    if not known or any(effect.kind in (_ANYTHING if wider else _ANYWHERE) for effect in step.effects):
        return _joined(arguments)
    if program in _WITH_VERBS and len(arguments) > 1 and not arguments[1].startswith("-"):
        return _joined(arguments[:2])
    return _joined([program])


def _joined(words: Sequence[str]) -> str:
    """Quote words as a rule needs them: a literal star is escaped."""
    escaped = (re.sub(r"([*?\[])", r"[\1]", word) for word in words)
    return " ".join(word if re.fullmatch(r"[^\s'\"\\]+", word) else shlex.quote(word) for word in escaped)


def _pattern(effect: Effect, workspace: str, wider: bool) -> str:
    """Return a pattern for just this path; if wider, in the workspace, for the files of its folder."""
    full = effect.full.replace("[", "[[]")  # which is a letter in most names of files, and no set of letters
    if effect.place != "workspace":
        return full
    inside = os.path.relpath(full, workspace)
    if inside == ".":
        return "{workspace}"
    if not wider:
        return f"{{workspace}}/{inside}"
    folder = os.path.dirname(inside)
    return f"{{workspace}}/{folder}/*" if folder else "{workspace}/*"
