"""Objects whose public attributes are settings: checked when set, defaults made when first read."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform

from interpreter.config.settings.setting import (
    Setting,
    argument,
    check_value,
    parse_value,
    setting,
)
from interpreter.errors import UnknownSettingError

# A weaker source never replaces what a stronger one said.
STRENGTH = {"default": 0, "profile": 1, "environment": 2, "flag": 3, "code": 3}

# In whose name plain assignments are made, and where that was said: a profile in Python assigns as code does.
_speaker: ContextVar[tuple[str, str]] = ContextVar("speaker", default=("code", ""))

# Group -> last part of the name -> setting.
GROUPS: dict[str, Mapping[str, Setting]] = {}

Class = TypeVar("Class", bound="type[SettingsGroup]")


class SettingsGroup:
    """Base of the objects that hold settings: `class Llm(LlmSettings, closed=True)`.

    Names declared on the class (attributes, methods, properties, annotations) and names that begin with an
    underscore are free. A closed class refuses all others; a subclass that is not closed is a user's own, and takes
    any name that does not look like a misspelled setting.
    """

    _group: ClassVar[str]
    _rows: ClassVar[Mapping[str, Setting]]
    _declared: ClassVar[frozenset[str]]
    _closed: ClassVar[bool]

    def __init_subclass__(cls, closed: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._closed = closed
        cls._declared = frozenset(_declared_names(cls))

    if not TYPE_CHECKING:  # type checkers would accept any name

        def __getattr__(self, name: str) -> Any:
            row = self._rows.get(name)
            # A property that raised AttributeError also leads here: its own words are the ones to show.
            if name.startswith("_") or hasattr(type(self), name) or (row is None and name in self._declared):
                return object.__getattribute__(self, name)
            if row is None:
                raise _unknown(self, name)
            if row.alias_of:
                owner, target = _owner(self, row.alias_of)
                return getattr(owner, target)
            return self.__dict__.setdefault(name, row.default_value())

        def __setattr__(self, name: str, value: Any) -> None:
            row = None if name.startswith("_") else self._rows.get(name)
            if row is not None:
                _offer(self, row, value, *_speaker.get())
            elif name.startswith("_") or self._is_free(name):
                object.__setattr__(self, name, value)
            else:
                raise _unknown(self, name)

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *self._rows}

    def _is_free(self, name: str) -> bool:
        return name in self._declared or (not self._closed and not closest_setting(name, self._group, 0.8))


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(setting, argument))
def settings_class(group: str) -> Callable[[Class], Class]:
    """Decorate the class that declares the settings of a group.

    Type checkers see a dataclass: every setting is an attribute, and an argument of the constructor that subclasses
    inherit. The values of the attributes are taken off the class, since instances make their own.
    """

    def register(cls: Class) -> Class:
        rows: dict[str, Setting] = {}
        for name, annotation in cls.__annotations__.items():
            declared = vars(cls)[name]
            delattr(cls, name)
            if isinstance(declared, Setting):
                rows[name] = declared.declared_as(group, name, annotation)
        cls._group, cls._rows = group, MappingProxyType(rows)
        GROUPS[group] = cls._rows
        return cls

    return register


def setting_named(name: str) -> Setting:
    """The setting with this dotted name."""
    group, _, leaf = name.rpartition(".")
    return GROUPS[group][leaf]


def apply(group: SettingsGroup, values: Mapping[str, Any], source: str = "profile", where: str = "") -> None:
    """Set many settings; keys may be dotted or nested: `{"llm.model": x}`, `{"llm": {"model": x}}`.

    `where` is the file that says so.
    """
    for name, value in values.items():
        owner, leaf = _owner(group, name)
        row = owner._rows.get(leaf)
        if row is not None:
            _offer(owner, row, value, source, where)
        elif isinstance(value, Mapping) and isinstance(getattr(owner, leaf), SettingsGroup):
            apply(getattr(owner, leaf), value, source, where)
        elif leaf in owner._declared and not callable(getattr(type(owner), leaf, None)):
            setattr(owner, leaf, value)
        else:
            raise _unknown(owner, leaf)


def copy_settings(group: SettingsGroup, to: SettingsGroup) -> None:
    """Give another object the same settings, from the same sources; those of the groups in it too."""
    for row in group._rows.values():
        if not row.alias_of and row.leaf in vars(group):
            _offer(to, row, copy.deepcopy(vars(group)[row.leaf]), *_given(group, row))
    for name in GROUPS:
        inner = vars(group).get(name)
        if isinstance(inner, SettingsGroup):
            copy_settings(inner, getattr(to, name))


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings that environment variables give, by dotted name."""
    given = [row for row in _all() if row.env and environ.get(row.env)]
    return {row.name: parse_value(row, environ[row.env], row.env) for row in given}


def headless_defaults() -> dict[str, Any]:
    """What differs where nobody is there to ask; give it to `apply` with the source `default`."""
    return {row.name: row.headless for row in _all() if row.headless is not None}


def sources(group: SettingsGroup) -> dict[str, str]:
    """Who gave each setting of this object its value: default, profile, environment, flag or code."""
    return {row.name: _source(group, row) for row in group._rows.values()}


def origins(group: SettingsGroup) -> dict[str, str]:
    """The same in words, with the file, variable or flag that said it."""
    return {row.name: _origin(group, row) for row in group._rows.values()}


@contextmanager
def speaking_as(source: str, where: str) -> Iterator[None]:
    """Assignments to settings in here come from this source, and give way to a stronger one."""
    token = _speaker.set((source, where))
    try:
        yield
    finally:
        _speaker.reset(token)


def closest_setting(name: str, group: str = "", cutoff: float = 0.6) -> str | None:
    """The setting that somebody who wrote `name` most likely meant, as a dotted name."""
    leaf = name.rpartition(".")[2]
    for row in _all():
        if leaf in row.wrong_names:
            return row.name
    ranked = sorted(_all(), key=lambda row: (row.group != group, bool(row.alias_of)))
    same = [row.name for row in ranked if row.leaf == leaf]
    by_leaf = {row.leaf: row.name for row in reversed(ranked)}
    close = closest(leaf, by_leaf, cutoff)
    return same[0] if same else by_leaf[close] if close else None


def closest(word: str, known: Iterable[str], cutoff: float) -> str | None:
    """The one that the word was meant to be; letters in another order are the likeliest mistake."""
    from difflib import get_close_matches

    names = list(known)
    swapped = [name for name in names if sorted(name) == sorted(word)]
    return next(iter(swapped or get_close_matches(word, names, n=1, cutoff=cutoff)), None)


def _all() -> Iterator[Setting]:
    for rows in GROUPS.values():
        yield from rows.values()


def _declared_names(cls: type) -> Iterator[str]:
    for base in cls.__mro__[:-1]:
        yield from vars(base)
        yield from base.__annotations__


def _owner(group: SettingsGroup, name: str) -> tuple[SettingsGroup, str]:
    *parts, leaf = name.split(".")
    for part in parts:
        inner = getattr(group, part)
        if not isinstance(inner, SettingsGroup):
            raise _unknown(group, name)
        group = inner
    return group, leaf


def _offer(group: SettingsGroup, row: Setting, value: Any, source: str, where: str) -> None:
    """Store the value, unless a stronger source has spoken; a wrong one is refused either way."""
    value = check_value(row, value)
    if STRENGTH[_source(group, row)] <= STRENGTH[source]:
        _store(group, row, value, source, where)


def _store(group: SettingsGroup, row: Setting, value: Any, source: str, where: str) -> None:
    if row.alias_of:
        owner, leaf = _owner(group, row.alias_of)
        _store(owner, owner._rows[leaf], value, source, where)
        return
    object.__setattr__(group, row.leaf, value)
    group.__dict__.setdefault("_sources", {})[row.leaf] = (source, where)


def _given(group: SettingsGroup, row: Setting) -> tuple[str, str]:
    if row.alias_of:
        owner, leaf = _owner(group, row.alias_of)
        return _given(owner, owner._rows[leaf])
    given: dict[str, tuple[str, str]] = group.__dict__.get("_sources", {})
    return given.get(row.leaf, ("default", ""))


def _source(group: SettingsGroup, row: Setting) -> str:
    return _given(group, row)[0]


def _origin(group: SettingsGroup, row: Setting) -> str:
    source, where = _given(group, row)
    where = {"environment": row.env, "flag": row.flag or row.no_flag}.get(source) or where
    return f"{source} {where}".rstrip()


def _unknown(group: SettingsGroup, name: str) -> UnknownSettingError:
    return unknown_setting(f"{group._group}.{name}" if group._group else name)


def unknown_setting(name: str) -> UnknownSettingError:
    """The error for a dotted name that is no setting."""
    close = closest_setting(name, name.rpartition(".")[0])
    advice = f"Did you mean {close}?" if close else "docs/settings.md lists all of them."
    return UnknownSettingError(f"There is no setting named {name}. {advice}")
