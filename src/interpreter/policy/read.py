"""A policy file, from its text to its rules; a mistake in it is told with its line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from interpreter.errors import PolicyError
from interpreter.policy.analysis.effects import KINDS
from interpreter.policy.grants import GIVEN, Grant
from interpreter.policy.rules import (
    DECISIONS,
    NOTHING,
    WAYS,
    Rule,
)
from interpreter.runtimes import BUILT_IN, Registry

_KEYS = ("decision", "language", "command", "does", "path", "host", "call", "folder", "reason", "name", "examples")
_LISTS = ("language", "command", "does", "path", "host", "call")


@dataclass(frozen=True)
class PolicyFile:
    """What a file says."""

    rules: tuple[Rule, ...] = ()
    without: tuple[str, ...] = ()
    """Names of built-in rules that do not hold."""
    grants: tuple[Grant, ...] = ()
    """What sandboxes are given beyond the settings."""


def read_file(path: Path, workspace: str, registry: Registry = BUILT_IN) -> PolicyFile:
    """The rules of a file; none if it is not there."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return PolicyFile()
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(str(path), 0, f"it cannot be read ({error})", "Make it readable, or move it away.") from None
    return read_text(text, str(path), workspace, registry)


def read_text(text: str, source: str, workspace: str, registry: Registry = BUILT_IN, check: bool = True) -> PolicyFile:
    """The rules of a text; `check`: their examples must come out as they say."""
    top = _Reader(source, registry).top(text)
    if check:
        from interpreter.policy.examples import check_examples

        for rule in top.rules:
            check_examples(rule, workspace, registry)
    return top


class _Reader:
    """Goes through the nodes of a YAML text, which know their lines."""

    def __init__(self, source: str, registry: Registry) -> None:
        self.source, self._registry = source, registry

    def top(self, text: str) -> PolicyFile:
        root = self._composed(text)
        if root is None:
            return PolicyFile()
        fields = self._fields(root, ("rules", "without", "sandbox"), "a policy file")
        rules, grants = (self._listed(fields.get(name), name) for name in ("rules", "sandbox"))
        without = self._texts(fields["without"]) if "without" in fields else ()
        return PolicyFile(tuple(map(self._rule, rules)), without, tuple(map(self._grant, grants)))

    def _listed(self, node: Node | None, name: str) -> list[Node]:
        return [] if node is None or node.value in ("", "null") else self._items(node, name)

    def _grant(self, node: Node) -> Grant:
        fields = self._fields(node, (*GIVEN, "folder"), "what a sandbox is given")
        kinds = [name for name in fields if name != "folder"]
        if len(kinds) != 1:
            raise self._wrong(
                node.start_mark.line + 1, "one of host, read, write, env is wanted", "Begin one item each."
            )
        folder = self._text(fields["folder"]) if "folder" in fields else ""
        return Grant(kinds[0], self._text(fields[kinds[0]]), folder)

    def _composed(self, text: str) -> Node | None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            root: Node | None = yaml.compose(text, Loader=loader)
            return root
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            what = getattr(error, "problem", None) or str(error)
            raise self._wrong(
                mark.line + 1 if mark else 0, f"it is no YAML ({what})", "Mind the indentation and the quotes."
            ) from None

    def _rule(self, node: Node) -> Rule:
        line = node.start_mark.line + 1
        fields = self._fields(node, _KEYS, "a rule")
        if "decision" not in fields:
            raise self._wrong(line, "a rule has no `decision`", "Say allow, ask or deny.")
        decision = self._choice(fields["decision"], DECISIONS)
        lists: dict[str, Any] = {name: self._texts(fields[name]) for name in _LISTS if name in fields}
        plain = {name: self._text(fields[name]) for name in ("folder", "reason", "name") if name in fields}
        rule = Rule(decision, **lists, **plain, source=self.source, line=line)  # type: ignore[arg-type]
        rule = replace(rule, language=tuple(map(self._registry.canonical, rule.language)))
        self._known(rule.does, (*KINDS, *WAYS, NOTHING), fields.get("does"))
        if decision == "allow" and not rule.conditions.keys() - {"folder"}:
            raise self._wrong(line, "this rule allows everything", "Name what it allows, or use the mode auto (-y).")
        if "examples" not in fields:
            return rule
        examples = self._fields(fields["examples"], ("match", "no match"), "examples")
        match, no_match = (self._texts(examples[name]) if name in examples else () for name in ("match", "no match"))
        return replace(rule, match=match, no_match=no_match)

    def _fields(self, node: Node, allowed: Iterable[str], what: str) -> dict[str, Node]:
        if not isinstance(node, MappingNode):
            raise self._wrong(
                node.start_mark.line + 1, f"{what} must be made of `name: value`", "docs/policy.md has an example."
            )
        fields = {}
        for key, value in node.value:
            name = self._text(key)
            self._known([name], allowed, key)
            fields[name] = value
        return fields

    def _items(self, node: Node, name: str) -> list[Node]:
        if not isinstance(node, SequenceNode):
            raise self._wrong(node.start_mark.line + 1, f"`{name}` must be a list", "Begin each item with a dash.")
        return list(node.value)

    def _texts(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, ScalarNode):
            return (self._text(node),)
        return tuple(map(self._text, self._items(node, "this")))

    def _text(self, node: Node) -> str:
        if not isinstance(node, ScalarNode):
            raise self._wrong(
                node.start_mark.line + 1, "a text is wanted here", "Put it in quotes if it has special characters."
            )
        return str(node.value)

    def _choice(self, node: Node, choices: tuple[Any, ...]) -> Any:
        text = self._text(node)
        self._known([text], choices, node)
        return text

    def _known(self, given: Iterable[str], allowed: Iterable[str], node: Node | None) -> None:
        choices = list(allowed)
        for name in given:
            if name not in choices:
                close = get_close_matches(name, choices, n=1)
                advice = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(choices)}."
                raise self._wrong(node.start_mark.line + 1 if node else 0, f"{name!r} is not known here", advice)

    def _wrong(self, line: int, what: str, advice: str) -> PolicyError:
        return PolicyError(os.fspath(self.source), line, what, advice)
