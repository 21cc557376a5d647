"""Settings as objects: how one is declared, which values it takes, and the classes that hold them."""

from __future__ import annotations

import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar, dataclass_transform

from interpreter.errors import SettingTypeError, SettingValueError, UnknownSettingError

if TYPE_CHECKING:
    Stored = TypeVar("Stored")

    class PathSetting(Generic[Stored]):
        """Annotation of a setting that takes any path and stores it as a string."""

        def __get__(self, instance: object, owner: type | None = None) -> Stored: ...
        def __set__(self, instance: object, value: Stored | os.PathLike[str]) -> None: ...


TRUE_WORDS = ("true", "yes", "on", "1")
FALSE_WORDS = ("false", "no", "off", "0")

# The annotation of a setting, without `| None`, and its kind.
_KINDS_BY_ANNOTATION = {
    "bool": "bool",
    "int": "int",
    "float": "float",
    "str": "str",
    "str | Literal[False]": "str or False",
    "PathSetting[str]": "path",
    "list[str]": "list of str",
    "list[Message]": "list",
    "dict[str, Any]": "dict",
    "Callable[..., Any]": "callable",
}


class Default(NamedTuple):
    """A default that is made when it is first read: a fresh list, a folder, a text from a file."""

    make: Callable[[], Any]
    words: str


class Setting(NamedTuple):
    """Everything that code, command line, environment, profiles and docs need to know about a setting."""

    help: str
    section: str
    default: Any
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    flag: str = ""
    short: str = ""
    no_flag: str = ""
    env: str = ""
    headless: Any = None  # the default in headless mode, if it differs
    alias_of: str = ""
    secret: bool = False
    inert: str = ""  # why the setting is accepted and does nothing
    old_names: tuple[str, ...] = ()  # of earlier versions; dotted if they were not attributes of the interpreter
    wrong_names: tuple[str, ...] = ()  # words that people try, and that could have another meaning
    name: str = ""  # dotted: `auto_run`, `llm.model`; also its key in a profile
    kind: str = ""  # `bool`, `int`, `float`, `str`, `path`, `list`, `list of str`, `dict`, `callable` or `str or False`
    optional: bool = False

    @property
    def group(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def leaf(self) -> str:
        return self.name.rpartition(".")[2]

    def default_value(self) -> Any:
        return self.default.make() if isinstance(self.default, Default) else self.default


def setting(
    description: str,
    section: str,
    *,
    default: Any,
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
    flag: str = "",
    short: str = "",
    no_flag: str = "",
    env: str = "",
    headless: Any = None,
    alias_of: str = "",
    secret: bool = False,
    inert: str = "",
    old_names: tuple[str, ...] = (),
    wrong_names: tuple[str, ...] = (),
    kw_only: bool = True,
) -> Any:
    """Declare a setting: `max_blocks: int | None = setting("How many blocks ...", RUNNING, default=50)`.

    The annotation gives its kind, and `Literal[...]` its choices. `kw_only` is for type checkers, which make the
    constructor's arguments from the declarations.
    """
    return Setting(
        description,
        section,
        default,
        choices,
        minimum,
        flag,
        short,
        no_flag,
        env,
        headless,
        alias_of,
        secret,
        inert,
        old_names,
        wrong_names,
    )


def argument(*, default: None = None, kw_only: bool = True) -> Any:
    """Declare an attribute that is an argument of the constructor like the settings, but not a setting."""
    return None


# kind -> is the value of this kind, and how it is stored
_KINDS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any] | None]] = {
    "bool": (lambda value: isinstance(value, bool), None),
    "int": (lambda value: isinstance(value, int) and not isinstance(value, bool), None),
    "float": (lambda value: isinstance(value, int | float) and not isinstance(value, bool), None),
    "str": (lambda value: isinstance(value, str), None),
    "path": (lambda value: isinstance(value, str | os.PathLike), os.fspath),
    "list": (lambda value: isinstance(value, list), None),
    "list of str": (
        lambda value: isinstance(value, list | tuple) and all(isinstance(item, str) for item in value),
        lambda value: value if isinstance(value, list) else list(value),
    ),
    "dict": (lambda value: isinstance(value, Mapping), dict),
    "callable": (callable, None),
    "str or False": (lambda value: isinstance(value, str) or value is False, None),
}


def expected(row: Setting) -> str:
    accepted = " or ".join(map(repr, row.choices)) if row.choices else row.kind
    return f"{accepted} or None" if row.optional else accepted


_EXAMPLES = {"int": 1000, "float": 0.5, "str": "text", "path": "~/folder", "list of str": ["one", "two"]}


def check_value(row: Setting, value: Any) -> Any:
    """Return the value in its stored form, or raise an error with the setting, the expected values and this one."""
    if value is None and row.optional:
        return None
    fits, store = _KINDS[row.kind]
    if not fits(value):
        got = f"{value!r:.60} ({type(value).__name__})"
        plain = row.default is not None and not isinstance(row.default, Default)
        example = row.default if plain else _EXAMPLES.get(row.kind)
        advice = "" if row.choices or example is None else f" For example: {row.name} = {example!r}."
        raise SettingTypeError(f"{row.name} takes {expected(row)}, not {got}.{advice}")
    if row.choices and value not in row.choices:
        word, colon, own = value.partition(":")  # of `word:NAME`, the word with a name of the user's
        if not (colon and own and any(choice.startswith(f"{word}:") for choice in row.choices)):
            raise SettingValueError(f"{row.name} takes {expected(row)}, not {value!r:.60}.")
    if row.minimum is not None and value < row.minimum:
        raise SettingValueError(f"{row.name} must be at least {row.minimum:g}, not {value!r}.")
    return store(value) if store else value


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in TRUE_WORDS + FALSE_WORDS:
        raise ValueError(text)
    return word in TRUE_WORDS


_PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": _parse_bool,
    "int": int,
    "float": float,
    "list of str": lambda text: [item.strip() for item in text.split(",") if item.strip()],
    "str or False": lambda text: False if text.strip().lower() == "false" else text,
}


def parse_value(row: Setting, text: str, given_as: str = "") -> Any:
    """Parse a value from the command line or the environment."""
    if row.optional and row.kind not in ("str", "path") and text.strip().lower() in ("none", ""):
        return None
    try:
        value = _PARSERS.get(row.kind, str)(text)
    except ValueError:
        raise SettingTypeError(f"{given_as or row.name} takes {expected(row)}, not {text!r:.60}.") from None
    return check_value(row._replace(name=given_as or row.name), value)


def converted(row: Setting, value: Any) -> Any:
    """Convert a value from code of a slightly wrong type if it can mean only one thing; return any other as it is."""
    kind = row.kind
    if value is None and not row.optional:
        return {"str": "", "bool": False}.get(kind)
    if value is False and "off" in row.choices:
        return "off"
    if isinstance(value, bool) and "never" in row.choices:  # it was an on/off setting
        return row.default if value else "never"
    if kind == "str" and isinstance(value, os.PathLike):
        return os.fspath(value)
    if kind == "bool" and isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if kind == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "int" and not isinstance(value, bool) and hasattr(value, "__index__"):
        return operator.index(value)
    if kind in ("bool", "int", "float") and isinstance(value, str):
        with suppress(ValueError):
            return _PARSERS[kind](value)
    return value


# A weaker source never replaces the value of a stronger one.
STRENGTH = {"default": 0, "profile": 1, "environment": 2, "flag": 3, "code": 3}

# The source of plain assignments, and its file: a profile in Python assigns as code does.
_speaker: ContextVar[tuple[str, str]] = ContextVar("speaker", default=("code", ""))

# Group -> last part of the name -> setting.
GROUPS: dict[str, Mapping[str, Setting]] = {}

Class = TypeVar("Class", bound="type[SettingsGroup]")


class SettingsGroup:
    """Base of the objects that hold settings: `class Llm(LlmSettings)`.

    Code may set any attribute. The old name of a setting sets that setting, and a name that looks like a misspelled
    one is stored; both warn once. With `strict_settings` both are errors; in profiles, a misspelled name is.
    """

    _group: ClassVar[str]
    setting_rows: ClassVar[Mapping[str, Setting]]  # by attribute name
    _declared: ClassVar[frozenset[str]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        bases = cls.__mro__[:-1]
        cls._declared = frozenset(name for base in bases for name in (*vars(base), *base.__annotations__))

    if not TYPE_CHECKING:  # type checkers would accept any name

        def __getattr__(self, name: str) -> Any:
            row = self.setting_rows.get(name)
            # A property that raised AttributeError also leads here: raise its own error.
            if name.startswith("_") or hasattr(type(self), name) or (row is None and name in self._declared):
                return object.__getattribute__(self, name)
            if row is None:
                row = None if self._is_strict() else renamed(self._group, name)
                if row is None:
                    raise _unknown(self, name)
                return getattr(*_owner(self._root(), row.name))
            if row.alias_of:
                return getattr(*_stored_in(self, row))
            return self.__dict__.setdefault(name, row.default_value())

        def __setattr__(self, name: str, value: Any) -> None:
            row = None if name.startswith("_") else self.setting_rows.get(name)
            if row is not None:
                _offer(self, row, value, *_speaker.get())
            elif name.startswith("_") or name in self._declared:
                object.__setattr__(self, name, value)
            elif self._is_strict():
                raise _unknown(self, name)
            else:
                self._set_undeclared(name, value)

    def _root(self) -> Any:
        return self if not self._group else getattr(self, "interpreter", None)

    def _is_strict(self) -> bool:
        return getattr(self._root(), "strict_settings", False)

    def _set_undeclared(self, name: str, value: Any) -> None:
        dotted = f"{self._group}.{name}" if self._group else name
        row = renamed(self._group, name)
        if row is not None and isinstance(self._root(), SettingsGroup):
            _warn_once(f"{dotted} is now {row.name}.")
            setattr(*_owner(self._root(), row.name), value)
            return
        close = closest_setting(name, self._group, 0.8)
        if close is not None and name not in self.__dict__:
            if _speaker.get()[0] == "profile":
                raise _unknown(self, name)
            _warn_once(f"{dotted} is not a setting. Did you mean {close}?")
        object.__setattr__(self, name, value)

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *self.setting_rows}


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
            if not isinstance(declared, Setting):
                continue
            kind, choices = annotation.replace(" | None", ""), declared.choices
            if kind.startswith("Literal["):
                choices = tuple(word.strip(" '") for word in kind[len("Literal[") : -1].split(","))
                kind = "str"
            rows[name] = declared._replace(
                name=f"{group}.{name}" if group else name,
                kind=_KINDS_BY_ANNOTATION[kind],
                optional=" | None" in annotation,
                choices=choices,
            )
        cls._group, cls.setting_rows = group, MappingProxyType(rows)
        GROUPS[group] = cls.setting_rows
        return cls

    return register


def setting_named(name: str) -> Setting:
    group, _, leaf = name.rpartition(".")
    return GROUPS[group][leaf]


def apply(group: SettingsGroup, values: Mapping[str, Any], source: str = "profile", where: str = "") -> None:
    """Set many settings; keys may be dotted or nested: `{"llm.model": x}`, `{"llm": {"model": x}}`.

    `where` is the file that the values come from.
    """
    for name, value in values.items():
        owner, leaf = _owner(group, name)
        row = owner.setting_rows.get(leaf)
        if row is not None:
            _offer(owner, row, value, source, where)
        elif isinstance(value, Mapping) and isinstance(getattr(owner, leaf, None), SettingsGroup):
            apply(getattr(owner, leaf), value, source, where)
        elif source == "code" or (leaf in owner._declared and not callable(getattr(type(owner), leaf, None))):
            setattr(owner, leaf, value)
        else:
            raise _unknown(owner, leaf)


Given = tuple[Any, str, str]  # the value of a setting, its source, and the file of that


def given_settings(group: SettingsGroup) -> dict[str, Given]:
    """Collect the settings that have been given or read, by dotted name, including those of inner groups."""
    rows = [row for row in group.setting_rows.values() if not row.alias_of and row.leaf in vars(group)]
    given: dict[str, Given] = {row.name: (vars(group)[row.leaf], *_given(group, row)) for row in rows}
    for name in GROUPS:
        inner = vars(group).get(name)
        if isinstance(inner, SettingsGroup):
            given |= given_settings(inner)
    return given


def give_settings(group: SettingsGroup, given: Mapping[str, Given]) -> None:
    """Set these settings, each as its source did."""
    for name, (value, source, where) in given.items():
        owner, leaf = _owner(group, name)
        _offer(owner, owner.setting_rows[leaf], value, source, where)


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Parse the settings that environment variables give, by dotted name."""
    given = [row for row in _all() if row.env and environ.get(row.env)]
    return {row.name: parse_value(row, environ[row.env], row.env) for row in given}


def headless_defaults() -> dict[str, Any]:
    """Return the defaults that differ in headless mode; pass them to `apply` with the source `default`."""
    return {row.name: row.headless for row in _all() if row.headless is not None}


def sources(group: SettingsGroup) -> dict[str, str]:
    """Map each setting of this object to its source: default, profile, environment, flag or code."""
    return {row.name: _given(group, row)[0] for row in group.setting_rows.values()}


def origins(group: SettingsGroup) -> dict[str, str]:
    """Describe each setting's source as text, with the file, variable or flag that set it."""
    by_name = {}
    for row in group.setting_rows.values():
        source, where = _given(group, row)
        where = {"environment": row.env, "flag": row.flag or row.no_flag}.get(source) or where
        by_name[row.name] = f"{source} {where}".rstrip()
    return by_name


@contextmanager
def speaking_as(source: str, where: str) -> Iterator[None]:
    """Mark assignments to settings in this context as from this source; they don't replace a stronger one."""
    token = _speaker.set((source, where))
    try:
        yield
    finally:
        _speaker.reset(token)


def renamed(group: str, name: str) -> Setting | None:
    """Find the setting that had this name in an earlier version, as an attribute of this group."""
    dotted = f"{group}.{name}" if group else name
    old = [row for row in _all() if dotted in row.old_names]
    is_wrong = any(name in row.wrong_names for row in _all())
    return old[0] if old else GROUPS["llm"].get(name) if not group and not is_wrong else None


def closest_setting(name: str, group: str = "", cutoff: float = 0.6) -> str | None:
    """Guess the setting that `name` most likely stands for; return its dotted name."""
    leaf = name.rpartition(".")[2]
    for row in _all():
        if leaf in row.wrong_names or leaf in row.old_names:
            return row.name
    ranked = sorted(_all(), key=lambda row: (row.group != group, bool(row.alias_of)))
    same = [row.name for row in ranked if row.leaf == leaf]
    by_leaf = {row.leaf: row.name for row in reversed(ranked)}
    close = closest(leaf, by_leaf, cutoff)
    return same[0] if same else by_leaf[close] if close else None


def closest(word: str, known: Iterable[str], cutoff: float) -> str | None:
    """Guess which known word was meant. Letters in another order are the likeliest mistake."""
    from difflib import get_close_matches

    names = list(known)
    swapped = [name for name in names if sorted(name) == sorted(word)]
    return next(iter(swapped or get_close_matches(word, names, n=1, cutoff=cutoff)), None)


def _all() -> Iterator[Setting]:
    for rows in GROUPS.values():
        yield from rows.values()


def _owner(group: SettingsGroup, name: str) -> tuple[SettingsGroup, str]:
    *parts, leaf = name.split(".")
    for part in parts:
        inner = getattr(group, part)
        if not isinstance(inner, SettingsGroup):
            raise _unknown(group, name)
        group = inner
    return group, leaf


def _offer(group: SettingsGroup, row: Setting, value: Any, source: str, where: str) -> None:
    """Store the value, unless a stronger source has set it; an invalid one is an error either way."""
    value = check_value(row, converted(row, value) if source == "code" else value)
    owner, leaf = _stored_in(group, row)
    if STRENGTH[_given(group, row)[0]] <= STRENGTH[source]:
        object.__setattr__(owner, leaf, value)
        owner.__dict__.setdefault("_sources", {})[leaf] = (source, where)


def _stored_in(group: SettingsGroup, row: Setting) -> tuple[SettingsGroup, str]:
    """Return the object that holds the value and the name of its attribute; an alias leads to its target."""
    return _owner(group, row.alias_of) if row.alias_of else (group, row.leaf)


def _given(group: SettingsGroup, row: Setting) -> tuple[str, str]:
    owner, leaf = _stored_in(group, row)
    given: dict[str, tuple[str, str]] = owner.__dict__.get("_sources", {})
    return given.get(leaf, ("default", ""))


_warned: set[str] = set()


def _warn_once(text: str) -> None:
    """Warn about the line of the user's code that led here."""
    if text in _warned:
        return
    _warned.add(text)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "interpreter":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, UserWarning, stacklevel=level)


def _unknown(group: SettingsGroup, name: str) -> UnknownSettingError:
    return unknown_setting(f"{group._group}.{name}" if group._group else name)


def unknown_setting(name: str) -> UnknownSettingError:
    """Make the error for a dotted name that is not a setting."""
    close = closest_setting(name, name.rpartition(".")[0])
    advice = f"Did you mean {close}?" if close else "See docs/settings.md for the full list."
    return UnknownSettingError(f"There is no setting named {name}. {advice}")
