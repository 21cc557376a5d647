"""Policy files: reading them and pointing at mistakes, checking examples, adding rules, trusting a project's file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from interpreter.config.homes import make_folder, our_folder
from interpreter.errors import PolicyError
from interpreter.host.files import lock, write_bytes
from interpreter.policy.analysis import analyze
from interpreter.policy.analysis.effects import KINDS
from interpreter.policy.files import project_file, user_file
from interpreter.policy.rules import DECISIONS, NETWORK_KINDS, NOTHING, Rule, folders_for, judge_steps
from interpreter.runtimes import BUILT_IN, Registry

_KEYS = ("decision", "language", "command", "does", "path", "host", "call", "folder", "reason", "name", "examples")
_LISTS = ("language", "command", "does", "path", "host", "call")


class Grant(NamedTuple):
    """Access that every sandbox gets, in one workspace or in all."""

    kind: str
    value: str
    folder: str = ""


@dataclass(frozen=True)
class PolicyFile:
    rules: tuple[Rule, ...] = ()
    without: tuple[str, ...] = ()  # names of built-in rules that are switched off
    grants: tuple[Grant, ...] = ()  # what sandboxes are given beyond the settings


def read_file(path: Path, workspace: str, registry: Registry = BUILT_IN) -> PolicyFile:
    """Read the rules in a file; without the file there are none."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return PolicyFile()
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(str(path), 0, f"can't read it ({error})", "Make it readable, or move it away.") from None
    return read_text(text, str(path), workspace, registry)


def read_text(text: str, source: str, workspace: str, registry: Registry = BUILT_IN, check: bool = True) -> PolicyFile:
    """Parse rules; with `check`, raise PolicyError if an example doesn't come out as it says."""
    top = _Reader(source, registry).top(text)
    if check:
        for rule in top.rules:
            check_examples(rule, workspace, registry)
    return top


class _Reader:
    """Goes through the nodes of a YAML text, which know their lines."""

    def __init__(self, source: str, registry: Registry) -> None:
        self.source, self._registry = source, registry

    def top(self, text: str) -> PolicyFile:
        root: Node | None
        try:
            root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            what = getattr(error, "problem", None) or str(error)
            line = mark.line + 1 if mark else 0
            advice = "Check the indentation and the quotes."
            raise PolicyError(self.source, line, f"it is not valid YAML ({what})", advice) from None
        if root is None:
            return PolicyFile()
        fields = self._fields(root, ("rules", "without", "sandbox"), "a policy file")
        rules, grants = (self._items(fields.get(name), name) for name in ("rules", "sandbox"))
        without = self._texts(fields["without"]) if "without" in fields else ()
        return PolicyFile(tuple(map(self._rule, rules)), without, tuple(map(self._grant, grants)))

    def _grant(self, node: Node) -> Grant:
        fields = self._fields(node, ("host", "read", "write", "env", "folder"), "a sandbox permission")
        kinds = [name for name in fields if name != "folder"]
        if len(kinds) != 1:
            raise self._error(
                node, "each item must have exactly one of host, read, write, env", "Use one item for each."
            )
        folder = self._text(fields["folder"]) if "folder" in fields else ""
        return Grant(kinds[0], self._text(fields[kinds[0]]), folder)

    def _rule(self, node: Node) -> Rule:
        fields = self._fields(node, _KEYS, "a rule")
        if "decision" not in fields:
            raise self._error(node, "a rule has no `decision`", "Add allow, ask or deny.")
        decision = self._text(fields["decision"])
        self._known([decision], DECISIONS, fields["decision"])
        lists: dict[str, Any] = {name: self._texts(fields[name]) for name in _LISTS if name in fields}
        plain = {name: self._text(fields[name]) for name in ("folder", "reason", "name") if name in fields}
        rule = Rule(decision, **lists, **plain, source=self.source, line=node.start_mark.line + 1)  # type: ignore[arg-type]
        rule = replace(rule, language=tuple(map(self._registry.canonical, rule.language)))
        self._known(rule.does, (*KINDS, *NETWORK_KINDS, NOTHING), fields.get("does"))
        if decision == "allow" and not rule.conditions.keys() - {"folder"}:
            raise self._error(node, "this rule allows everything", "Say what it allows, or use mode auto (-y).")
        if "examples" not in fields:
            return rule
        examples = self._fields(fields["examples"], ("match", "no match"), "examples")
        match, no_match = (self._texts(examples[name]) if name in examples else () for name in ("match", "no match"))
        return replace(rule, match=match, no_match=no_match)

    def _fields(self, node: Node, allowed: Iterable[str], what: str) -> dict[str, Node]:
        if not isinstance(node, MappingNode):
            raise self._error(node, f"{what} must consist of `name: value` pairs", "docs/policy.md has an example.")
        fields = {}
        for key, value in node.value:
            name = self._text(key)
            self._known([name], allowed, key)
            fields[name] = value
        return fields

    def _items(self, node: Node | None, name: str) -> list[Node]:
        if node is None or node.value in ("", "null"):
            return []
        if not isinstance(node, SequenceNode):
            raise self._error(node, f"`{name}` must be a list", "Start each item with a dash.")
        return list(node.value)

    def _texts(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, ScalarNode):
            return (self._text(node),)
        return tuple(map(self._text, self._items(node, "this")))

    def _text(self, node: Node) -> str:
        if not isinstance(node, ScalarNode):
            raise self._error(node, "this must be text", "Put it in quotes if it has special characters.")
        return str(node.value)

    def _known(self, given: Iterable[str], allowed: Iterable[str], node: Node | None) -> None:
        choices = list(allowed)
        for name in given:
            if name not in choices:
                close = get_close_matches(name, choices, n=1)
                advice = f"Did you mean {close[0]}?" if close else f"Available: {', '.join(choices)}."
                raise self._error(node, f"{name!r} is not valid here", advice)

    def _error(self, node: Node | None, what: str, advice: str) -> PolicyError:
        return PolicyError(self.source, node.start_mark.line + 1 if node else 0, what, advice)


# -- examples -----------------------------------------------------------------------------------------------------


def check_examples(rule: Rule, workspace: str, registry: Registry = BUILT_IN) -> None:
    """Raise PolicyError if an example doesn't come out as the file says."""
    language = rule.language[0] if rule.language else "python" if rule.call else "shell"
    for wanted, examples in ((True, rule.match), (False, rule.no_match)):
        for code in examples:
            effects = analyze(language, code, workspace, registry=registry)
            verdict = judge_steps((rule,), effects.steps, folders_for(workspace))
            if (verdict.by_rule and verdict.decision == rule.decision) != wanted:
                does = f"does not match its example {code!r}" if wanted else f"matches {code!r}, but it should not"
                advice = (
                    f"Change the rule or the example. `interpreter --policy-check {code!r}` shows how it is judged."
                )
                raise PolicyError(rule.source, rule.line, f"the rule {does}", advice)


# -- adding to the user's file ------------------------------------------------------------------------------------

_HEADER = "# Rules for what runs without asking, what needs approval and what never runs. See docs/policy.md.\n"


def rule_text(rule: Rule) -> str:
    fields: dict[str, Any] = {"decision": rule.decision}
    for name, value in rule.conditions.items():
        fields[name] = value[0] if len(value) == 1 else list(value)
    fields |= {name: value for name in ("reason", "name") if (value := getattr(rule, name))}
    return yaml.safe_dump([fields], sort_keys=False, allow_unicode=True, width=100)


def save_rule(rule: Rule, workspace: str) -> Path:
    """Add a rule to the user's file; return its path."""
    wanted = replace(rule, match=(), no_match=())
    return _save("rules", rule_text(rule), workspace, lambda file: replace(file, rules=(*file.rules, wanted)))


def grant_text(grant: Grant) -> str:
    return yaml.safe_dump([{grant.kind: grant.value, "folder": grant.folder}], sort_keys=False, allow_unicode=True)


def save_grant(grant: Grant) -> Path:
    return _save("sandbox", grant_text(grant), grant.folder, lambda file: replace(file, grants=(*file.grants, grant)))


def _save(key: str, text: str, workspace: str, expected: Callable[[PolicyFile], PolicyFile]) -> Path:
    """Add an item to a list in the user's file; PolicyError if the result isn't what was expected."""
    path = Path(os.path.realpath(user_file()))  # it may be a link into a collection of such files
    for folder in (our_folder(), path.parent):
        make_folder(folder)
    with open(our_folder() / "policy.lock", "ab") as held:
        lock(held.fileno(), wait=True)  # two sessions may save at the same moment
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        before = read_text(old, str(path), workspace, check=False)
        new = _insert(old, text, key)
        after = read_text(new, str(path), workspace, check=False) if new else before
        if after != expected(before):
            raise PolicyError(str(path), 0, f"can't add to `{key}` in this file", f"Add it by hand:\n{text}")
        write_bytes(path, new.encode(), 0o600)
    return path


def _insert(old: str, item: str, key: str) -> str:
    """Return the text with the item at the end of its list; empty if it can't be inserted."""
    old = old if not old or old.endswith("\n") else f"{old}\n"
    root = yaml.compose(old, Loader=yaml.SafeLoader)
    if root is None:
        return f"{old or _HEADER}{key}:\n{item}"
    if not isinstance(root, MappingNode) or root.flow_style:
        return ""
    items = next((value for name, value in root.value if name.value == key), None)
    if items is None:
        return f"{old.rstrip()}\n\n{key}:\n{item}"
    if not items.value or (isinstance(items, ScalarNode) and items.value == "null"):
        # Replace `[]` or nothing; keep a comment after it.
        comment, newline, rest = old[items.end_mark.index :].partition("\n")
        return f"{old[: items.start_mark.index].rstrip()}{comment}\n{item}{rest}" if newline else ""
    if not isinstance(items, SequenceNode) or items.flow_style:
        return ""
    # The mark before each item is its dash; the last item ends where its last line with something in it ends.
    indent = " " * max(items.start_mark.column, 0)
    lines = old.split("\n")
    at = items.end_mark.line if items.end_mark.line < len(lines) else len(lines)
    while at > 0 and (not lines[at - 1].strip() or lines[at - 1].lstrip().startswith("#")):
        at -= 1
    added = [indent + line if line else line for line in item.rstrip("\n").split("\n")]
    return "\n".join([*lines[:at], *added, *(lines[at:] if any(lines[at:]) else [""])])


# -- a project's own rules ----------------------------------------------------------------------------------------

STORE = "trusted-policies.json"
_MAX_BYTES = 200_000


@dataclass(frozen=True)
class ProjectRules:
    """A project's policy file as it was read, and whether it is trusted."""

    folder: str
    path: Path
    text: str
    digest: str
    trusted: bool = False

    @property
    def lines(self) -> list[str]:
        """List the rules to check before trusting the file, those that allow something first, or its mistakes."""

        try:
            rules = read_text(self.text, str(self.path), self.folder).rules
        except PolicyError as error:
            return [str(error)]
        order = sorted(rules, key=lambda rule: rule.decision != "allow")
        return [f"{rule}{f' ({rule.reason})' if rule.reason else ''}" for rule in order]


def project_rules(folder: str, config: Path) -> ProjectRules | None:
    """Read the project's policy file and whether it is trusted; None if there is no file."""
    path = project_file(folder)
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError:
        return None
    digest = hashlib.sha256(data).hexdigest()
    trusted = len(data) <= _MAX_BYTES and _stored(config / STORE).get(folder) == digest
    return ProjectRules(folder, path, data.decode("utf-8", "replace"), digest, trusted)


def trust(project: ProjectRules) -> None:
    """Remember that the user trusts this text in this folder."""
    make_folder(our_folder())
    store = our_folder() / STORE
    stored = _stored(store) | {project.folder: project.digest}
    write_bytes(store, f"{json.dumps(stored, indent=1, sort_keys=True)}\n".encode(), 0o600)


def _stored(path: Path) -> dict[str, str]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # an unreadable file is not trusted
    return stored if isinstance(stored, dict) else {}
