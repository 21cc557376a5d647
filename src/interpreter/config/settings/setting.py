"""One setting: how to declare it, what it says about itself, and which values it takes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from interpreter.errors import SettingTypeError, SettingValueError

if TYPE_CHECKING:
    from typing import Generic, TypeVar

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
    headless: Any = None
    """The default where nobody is there to ask, if it differs."""
    alias_of: str = ""
    secret: bool = False
    later: str = ""
    """What is not there yet; said in one line when the flag is used."""
    inert: str = ""
    """Why the setting is accepted and does nothing."""
    wrong_names: tuple[str, ...] = ()
    """Other names that people use for it, from old versions and from pages that were wrong."""
    name: str = ""
    """Dotted: `auto_run`, `llm.model`; also its key in a profile."""
    kind: str = ""
    """`bool`, `int`, `float`, `str`, `path`, `list`, `list of str`, `dict`, `callable` or `str or False`."""
    optional: bool = False

    @property
    def group(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def leaf(self) -> str:
        return self.name.rpartition(".")[2]

    def default_value(self) -> Any:
        return self.default.make() if isinstance(self.default, Default) else self.default

    def default_words(self) -> str:
        return self.default.words if isinstance(self.default, Default) else repr(self.default)

    def declared_as(self, group: str, leaf: str, annotation: str) -> Setting:
        """The same setting with its name, and with the kind and the choices that its annotation says."""
        words = annotation.replace(" | None", "")
        choices = self.choices
        if words.startswith("Literal["):
            choices = tuple(word.strip(" '") for word in words[len("Literal[") : -1].split(","))
            words = "str"
        return self._replace(
            name=f"{group}.{leaf}" if group else leaf,
            kind=_KINDS_BY_ANNOTATION[words],
            optional=" | None" in annotation,
            choices=choices,
        )


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
    later: str = "",
    inert: str = "",
    wrong_names: tuple[str, ...] = (),
    kw_only: bool = True,
) -> Any:
    """Declare a setting: `max_blocks: int | None = setting("How many blocks ...", RUNNING, default=50)`.

    The annotation gives its kind, and `Literal[...]` its choices. `kw_only` is for type checkers, which make the
    constructor's arguments from the declarations.
    """
    shown = (flag, short, no_flag, env)
    return Setting(
        description, section, default, choices, minimum, *shown, headless, alias_of, secret, later, inert, wrong_names
    )


def argument(*, default: None = None, kw_only: bool = True) -> Any:
    """Declare an attribute that is an argument of the constructor like the settings, but not a setting."""
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list_of_str(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


# kind -> is the value of this kind, and how it is stored
_KINDS: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any] | None]] = {
    "bool": (lambda value: isinstance(value, bool), None),
    "int": (lambda value: isinstance(value, int) and not isinstance(value, bool), None),
    "float": (_is_number, None),
    "str": (lambda value: isinstance(value, str), None),
    "path": (lambda value: isinstance(value, str | os.PathLike), os.fspath),
    "list": (lambda value: isinstance(value, list), None),
    "list of str": (_is_list_of_str, lambda value: value if isinstance(value, list) else list(value)),
    "dict": (lambda value: isinstance(value, Mapping), dict),
    "callable": (callable, None),
    "str or False": (lambda value: isinstance(value, str) or value is False, None),
}


def expected(row: Setting) -> str:
    """What the setting takes, in words."""
    words = " or ".join(map(repr, row.choices)) if row.choices else row.kind
    return f"{words} or None" if row.optional else words


def _is_choice(row: Setting, value: str) -> bool:
    """One of the words; of `word:NAME`, the word with a name of the user's."""
    begun = f"{value.partition(':')[0]}:"
    own = value != begun and any(choice.startswith(begun) for choice in row.choices)
    return value in row.choices or (own and ":" in value)


def check_value(row: Setting, value: Any) -> Any:
    """The value as it is stored, or an error that names the setting, what it takes and what it got."""
    if value is None and row.optional:
        return None
    fits, store = _KINDS[row.kind]
    if not fits(value):
        got = f"{value!r:.60} ({type(value).__name__})"
        raise SettingTypeError(f"{row.name} takes {expected(row)}, not {got}.")
    if row.choices and not _is_choice(row, value):
        raise SettingValueError(f"{row.name} takes {expected(row)}, not {value!r:.60}.")
    if row.minimum is not None and value < row.minimum:
        raise SettingValueError(f"{row.name} must be at least {row.minimum:g}, not {value!r}.")
    return store(value) if store else value


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in TRUE_WORDS + FALSE_WORDS:
        raise ValueError(text)
    return word in TRUE_WORDS


def _parse_list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


_PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": _parse_bool,
    "int": int,
    "float": float,
    "list of str": _parse_list,
    "str or False": lambda text: False if text.strip().lower() == "false" else text,
}


def parse_value(row: Setting, text: str, given_as: str = "") -> Any:
    """The value that a text from the command line or the environment stands for."""
    if row.optional and row.kind not in ("str", "path") and text.strip().lower() in ("none", ""):
        return None
    try:
        value = _PARSERS.get(row.kind, str)(text)
    except ValueError:
        name = given_as or row.name
        raise SettingTypeError(f"{name} takes {expected(row)}, not {text!r:.60}.") from None
    return check_value(row._replace(name=given_as or row.name), value)
