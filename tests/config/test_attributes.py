"""Settings as attributes: converted and checked when set, with suggestions for wrong names."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest

from interpreter.config import setting
from interpreter.config.setting import apply, from_environment, headless_defaults, sources
from interpreter.config.settings import ComputerSettings, InterpreterSettings, LlmSettings
from interpreter.errors import SettingTypeError, SettingValueError, UnknownSettingError


class Llm(LlmSettings):
    interpreter: Any

    @property
    def model(self) -> str:
        return self._model

    @model.setter
    def model(self, value: str) -> None:
        self._model = value.lower()


class Computer(ComputerSettings):
    interpreter: Any
    languages: list[Any]

    @property
    def broken(self) -> int:
        return self._never_set


class Interpreter(InterpreterSettings):
    llm: Llm
    computer: Computer
    responding = False

    def __init__(self, strict_settings: bool = False) -> None:
        self.llm, self.computer = Llm(), Computer()
        if strict_settings:
            self.strict_settings = True
        self.llm.interpreter = self.computer.interpreter = self

    def chat(self) -> str:
        return "chat"


def forget_warnings() -> None:
    setting._warned.clear()


@pytest.fixture
def interpreter() -> Interpreter:
    return Interpreter()


def test_a_default_can_be_read_and_changed(interpreter: Interpreter) -> None:
    assert interpreter.auto_run is False
    interpreter.auto_run = True
    assert interpreter.auto_run is True
    assert Interpreter().auto_run is False


def test_mutable_defaults_are_never_shared() -> None:
    one, two = Interpreter(), Interpreter()
    one.loop_breakers.append("Enough.")
    one.messages.append({})
    assert "Enough." in one.loop_breakers
    assert "Enough." not in two.loop_breakers
    assert two.messages == []


def test_concurrent_reads_of_a_default_get_the_same_list(interpreter: Interpreter) -> None:
    barrier, seen = threading.Barrier(8), []

    def read() -> None:
        barrier.wait()
        seen.append(interpreter.messages)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each is seen[0] for each in seen)


@pytest.mark.parametrize(
    ("target", "name", "value", "words"),
    [
        ("", "auto_run", 2, "auto_run takes bool, not 2 (int). For example: auto_run = False."),
        ("", "auto_run", "perhaps", "auto_run takes bool, not 'perhaps' (str). For example: auto_run = False."),
        ("", "max_output", True, "max_output takes int, not True (bool). For example: max_output = 2800."),
        ("", "max_output", 2800.5, "max_output takes int, not 2800.5 (float). For example: max_output = 2800."),
        ("", "max_output", None, "max_output takes int, not None (NoneType). For example: max_output = 2800."),
        ("", "messages", (), "messages takes list, not () (tuple)."),
        ("", "loop_breakers", ["a", 1], "loop_breakers takes list of str, not ['a', 1] (list). For example: "),
        ("", "workspace", 3, "workspace takes path, not 3 (int). For example: workspace = '~/folder'."),
        ("", "safe_mode", True, "safe_mode takes 'off' or 'ask' or 'auto', not True (bool)."),
        ("llm", "max_tokens", "4k", "llm.max_tokens takes int or None, not '4k' (str). For example: llm.max_tokens"),
        ("llm", "temperature", False, "llm.temperature takes float or None, not False (bool). For example: "),
        ("llm", "completions", "x", "llm.completions takes callable or None, not 'x' (str)."),
        ("llm", "execution_instructions", True, "llm.execution_instructions takes str or False or None,"),
    ],
)
def test_a_wrong_type_is_refused(interpreter: Interpreter, target: str, name: str, value: object, words: str) -> None:
    group = getattr(interpreter, target) if target else interpreter
    before = getattr(group, name, None) if name != "model" else None
    with pytest.raises(SettingTypeError) as refusal:
        setattr(group, name, value)
    assert str(refusal.value).startswith(words)
    assert isinstance(refusal.value, TypeError)
    assert getattr(group, name, None) == before


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("safe_mode", "on", "safe_mode takes 'off' or 'ask' or 'auto', not 'on'."),
        ("max_output", -1, "max_output must be at least 0, not -1."),
        ("max_blocks", 0, "max_blocks must be at least 1, not 0."),
    ],
)
def test_an_invalid_value_is_refused(interpreter: Interpreter, name: str, value: object, words: str) -> None:
    with pytest.raises(SettingValueError) as refusal:
        setattr(interpreter, name, value)
    assert str(refusal.value) == words


@pytest.mark.parametrize(
    ("name", "given", "stored"),
    [
        ("llm.max_tokens", "8192", 8192),
        ("llm.max_tokens", 1000.0, 1000),
        ("llm.max_tokens", numpy.int64(7), 7),
        ("llm.max_tokens", None, None),
        ("llm.temperature", "0.7", 0.7),
        ("llm.temperature", 1, 1),
        ("auto_run", 1, True),
        ("auto_run", "True", True),
        ("auto_run", "false", False),
        ("auto_run", None, False),
        ("system_message", None, ""),
        ("custom_instructions", None, ""),
        ("safe_mode", False, "off"),
        ("llm.api_key", Path("key"), "key"),
        ("workspace", Path("/tmp"), "/tmp"),
        ("loop_breakers", ("Done.",), ["Done."]),
        ("llm.execution_instructions", False, False),
    ],
)
def test_an_unambiguous_value_is_converted(interpreter: Interpreter, name: str, given: object, stored: object) -> None:
    group, leaf = (interpreter.llm, name[4:]) if name.startswith("llm.") else (interpreter, name)
    setattr(group, leaf, given)
    assert (type(getattr(group, leaf)), getattr(group, leaf)) == (type(stored), stored)


@pytest.mark.parametrize("value", ["8192", 1000.0])
def test_values_from_a_profile_are_not_converted(interpreter: Interpreter, value: object) -> None:
    with pytest.raises(SettingTypeError):
        apply(interpreter, {"max_output": value}, "profile")


@pytest.mark.parametrize(
    ("target", "old", "new"),
    [
        ("", "max_budget", "llm.max_budget"),
        ("", "model", "llm.model"),
        ("", "api_key", "llm.api_key"),
        ("", "temperature", "llm.temperature"),
        ("", "context_window", "llm.context_window"),
        ("", "local", "offline"),
        ("", "debug_mode", "verbose"),
        ("", "function_calling_llm", "llm.supports_functions"),
        ("llm", "max_output", "max_output"),
    ],
)
def test_an_old_name_sets_the_setting_and_warns_once(interpreter: Interpreter, target: str, old: str, new: str) -> None:
    value: Any = "gpt-x" if old in ("model", "api_key") else 1
    group = getattr(interpreter, target) if target else interpreter
    full = f"{target}.{old}" if target else old
    forget_warnings()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        setattr(group, old, value)
        setattr(group, old, value)
    assert [(each.category, str(each.message)) for each in told] == [(UserWarning, f"{full} is now {new}.")]
    assert told[0].filename == __file__
    owner = interpreter.llm if new.startswith("llm.") else interpreter
    assert getattr(owner, new.rpartition(".")[2]) == getattr(group, old) == value


@pytest.mark.parametrize(
    ("target", "name", "close"),
    [
        ("", "autorun", "auto_run"),
        ("", "safe", "safe_mode"),
        ("", "shell_rc", "computer.shell_rc"),
        ("llm", "modle", "llm.model"),
        ("llm", "apikey", "llm.api_key"),
        ("llm", "custom_instructions", "custom_instructions"),
        ("computer", "import_skill", "computer.import_skills"),
    ],
)
def test_a_misspelled_name_is_stored_and_warns_once(
    interpreter: Interpreter, target: str, name: str, close: str
) -> None:
    group = getattr(interpreter, target) if target else interpreter
    full = f"{target}.{name}" if target else name
    forget_warnings()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        setattr(group, name, 1)
        setattr(group, name, 2)
    assert [str(each.message) for each in told] == [f"{full} is not a setting. Did you mean {close}?"]
    assert getattr(group, name) == 2


@pytest.mark.parametrize("group", ["", "llm", "computer"])
def test_any_other_attribute_is_stored_silently(interpreter: Interpreter, group: str) -> None:
    owner = getattr(interpreter, group) if group else interpreter
    assert not hasattr(owner, "xyzzy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        owner.xyzzy = [1]
    assert owner.xyzzy == [1]


@pytest.mark.parametrize(
    ("target", "name", "close"),
    [
        ("", "autorun", "auto_run"),
        ("", "model", "llm.model"),
        ("", "local", "offline"),
        ("llm", "max_output", "max_output"),
        ("llm", "modle", "llm.model"),
        ("computer", "import_skill", "computer.import_skills"),
    ],
)
def test_strict_settings_refuse_unknown_names_and_suggest_one(target: str, name: str, close: str) -> None:
    interpreter = Interpreter(strict_settings=True)
    group = getattr(interpreter, target) if target else interpreter
    full = f"{target}.{name}" if target else name
    with pytest.raises(UnknownSettingError) as refusal:
        setattr(group, name, 1)
    assert str(refusal.value) == f"There is no setting named {full}. Did you mean {close}?"
    with pytest.raises(AttributeError):
        getattr(group, name)


def test_a_name_without_a_similar_one_points_to_the_docs() -> None:
    interpreter = Interpreter(strict_settings=True)
    with pytest.raises(UnknownSettingError, match=r"docs/settings\.md"):
        interpreter.xyzzy = 1
    assert not hasattr(interpreter, "xyzzy")


def test_declared_and_private_names_can_be_set(interpreter: Interpreter) -> None:
    interpreter._cache = 1
    interpreter.responding = True
    interpreter.chat = lambda: "patched"
    interpreter.llm.interpreter = interpreter
    assert (interpreter._cache, interpreter.responding, interpreter.chat()) == (1, True, "patched")


def test_settings_are_offered_for_completion(interpreter: Interpreter) -> None:
    assert {"auto_run", "chat", "llm"} <= set(dir(interpreter))
    assert "model" in dir(interpreter.llm)


def test_a_declared_name_without_a_value_raises_a_normal_error(interpreter: Interpreter) -> None:
    with pytest.raises(AttributeError, match="'Computer' object has no attribute 'languages'"):
        _ = interpreter.computer.languages


def test_the_error_of_a_property_is_not_hidden(interpreter: Interpreter) -> None:
    with pytest.raises(AttributeError, match="_never_set"):
        _ = interpreter.computer.broken


def test_a_subclass_has_its_own_attributes_in_strict_mode_too() -> None:
    class Mine(Interpreter):
        favourite_colour = "red"

    mine = Mine(strict_settings=True)
    mine.favourite_colour = "blue"
    assert mine.favourite_colour == "blue"
    with pytest.raises(UnknownSettingError, match="auto_run"):
        mine.autorun = True


def test_a_property_can_implement_a_setting(interpreter: Interpreter) -> None:
    interpreter.llm.model = "GPT-4o"
    assert interpreter.llm.model == "gpt-4o"
    with pytest.raises(SettingTypeError):
        interpreter.llm.model = 3


def test_an_alias_and_its_setting_share_one_value(interpreter: Interpreter) -> None:
    interpreter.import_skills = True
    assert interpreter.computer.import_skills is True
    interpreter.computer.import_skills = False
    assert interpreter.import_skills is False


def test_a_mapping_can_be_nested_or_dotted(interpreter: Interpreter) -> None:
    apply(
        interpreter,
        {
            "auto_run": True,
            "llm": {"model": "x", "temperature": 0.5},
            "llm.max_tokens": 10,
            "computer": {"shell_rc": True, "languages": ["python"]},
        },
    )
    assert (interpreter.auto_run, interpreter.llm.model, interpreter.llm.temperature) == (True, "x", 0.5)
    assert (interpreter.llm.max_tokens, interpreter.computer.shell_rc) == (10, True)
    assert interpreter.computer.languages == ["python"]


@pytest.mark.parametrize(
    ("mapping", "close"),
    [
        ({"llm.modle": "x"}, "llm.model"),
        ({"llm": {"max_output": 3}}, "max_output"),
        ({"chat": 3}, "docs/settings.md"),
        ({"autorun": True}, "auto_run"),
        ({"os": {"x": 1}}, "os takes bool"),
        ({"auto_run.x": 1}, "auto_run"),
    ],
)
def test_errors_in_a_mapping_name_the_key(interpreter: Interpreter, mapping: dict[str, Any], close: str) -> None:
    with pytest.raises((UnknownSettingError, SettingTypeError)) as refusal:
        apply(interpreter, mapping)
    assert close in str(refusal.value)


def test_the_stronger_source_wins(interpreter: Interpreter) -> None:
    apply(interpreter, {"max_output": 2, "loop": True, "debug": True}, "environment")
    apply(interpreter, {"loop": False}, "flag")
    interpreter.max_blocks = 3
    apply(interpreter, {"max_output": 1, "loop": True, "max_blocks": 9, "verbose": True}, "profile")
    assert (interpreter.max_output, interpreter.loop, interpreter.max_blocks) == (2, False, 3)
    origin = sources(interpreter)
    assert [origin[name] for name in ("debug", "loop", "max_blocks", "verbose", "auto_run")] == [
        "environment",
        "flag",
        "code",
        "profile",
        "default",
    ]
    apply(interpreter, {"max_blocks": 4}, "flag")
    assert interpreter.max_blocks == 4


def test_headless_defaults_are_the_weakest_source(interpreter: Interpreter) -> None:
    apply(interpreter, headless_defaults(), "default")
    assert interpreter.block_timeout == 300
    apply(interpreter, {"block_timeout": 5}, "profile")
    apply(interpreter, headless_defaults(), "default")
    assert interpreter.block_timeout == 5


def test_environment_values_are_typed() -> None:
    environ = {
        "INTERPRETER_BLOCK_TIMEOUT": "2.5",
        "INTERPRETER_ACTIVE_LINE_DETECTION": "False",
        "DISABLE_TELEMETRY": "true",
        "INTERPRETER_OFFLINE": "",
        "HOME": "/x",
    }
    assert from_environment(environ) == {
        "block_timeout": 2.5,
        "computer.active_line_detection": False,
        "disable_telemetry": True,
    }


def test_the_error_names_the_environment_variable() -> None:
    with pytest.raises(SettingTypeError, match="INTERPRETER_OFFLINE takes bool, not 'maybe'"):
        from_environment({"INTERPRETER_OFFLINE": "maybe"})


def test_the_container_choice_takes_any_image_name(interpreter: Interpreter) -> None:
    for kind in ("off", "workspace", "read-only", "container:python:3.12"):
        interpreter.sandbox = kind
    for wrong in ("foo", "container", "container:", ":", "", "workspace:x"):
        with pytest.raises(SettingValueError, match="sandbox takes 'off' or 'read-only' or 'workspace' or 'container"):
            interpreter.sandbox = wrong
