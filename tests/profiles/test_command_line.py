"""User profiles on the command line: which one is loaded, what overrides it, and the flags for profiles."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from interpreter.config.profiles import make_default
from model_server import ModelServer, text, tool_call
from profiles.programs import config, folder, interpreter
from sampling import some
from terminal.person import PROGRAM, Person

pytestmark = pytest.mark.usefixtures("no_strays")


def test_a_first_start_creates_no_profile(home: Path) -> None:
    with ModelServer([text("Hello.")]) as server:
        assert interpreter("hello", server=server).returncode == 0
    assert not (home / ".config" / "open-interpreter" / "profiles").exists()


def test_a_named_profile_replaces_the_default_profile(home: Path) -> None:
    (folder(home) / "default.yaml").write_text("version: 0.2.5\nmax_output: 11\nllm:\n  model: mine\n")
    (folder(home) / "work.json").write_text('{"max_output": 22}')
    file = folder(home) / "default.yaml"
    assert config()["max_output"] == ("11", f"profile {file}, line 2")
    assert config()["llm.model"] == ("'mine'", f"profile {file}, line 4")
    told = config("--profile", "work")
    assert told["max_output"] == ("22", f"profile {folder(home) / 'work.json'}, line 1")
    assert told["llm.model"] == ("'gpt-4o'", "default")


def test_flags_override_environment_overrides_profile_overrides_defaults(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder(home) / "default.yaml").write_text(
        "llm: {model: a, fallback_model: a, max_tokens: 1}\noffline: true\nblock_timeout: 9\n"
    )
    monkeypatch.setenv("INTERPRETER_MODEL", "b")
    monkeypatch.setenv("INTERPRETER_FALLBACK_MODEL", "b")
    monkeypatch.setenv("INTERPRETER_OFFLINE", "false")
    told = config("--model", "c", "--no-auto_run")
    assert told["llm.model"] == ("'c'", "flag --model")
    assert told["llm.fallback_model"] == ("'b'", "environment INTERPRETER_FALLBACK_MODEL")
    assert told["offline"] == ("False", "environment INTERPRETER_OFFLINE")
    assert told["llm.max_tokens"][0] == "1"
    assert told["block_timeout"][0] == "9"  # not the headless default
    assert told["auto_run"] == ("False", "flag --auto_run")
    assert told["llm.temperature"] == ("0", "default")


def test_flags_and_environment_override_a_python_profile(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder(home) / "default.py").write_text(
        "from interpreter import interpreter\n"
        "interpreter.llm.model = 'a'\ninterpreter.offline = True\ninterpreter.max_output = 5\n"
    )
    monkeypatch.setenv("INTERPRETER_OFFLINE", "false")
    told = config("--model", "c")
    assert [told[name][0] for name in ("llm.model", "offline", "max_output")] == ["'c'", "False", "5"]


def test_secrets_are_not_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    (folder(home) / "default.yaml").write_text("llm:\n  api_key: $MY_KEY\n  api_base: https://me:hidden@host/v1\n")
    done = interpreter("--debug-config")
    assert "sk-very" not in done.stdout
    assert "hidden@" not in done.stdout
    assert "(set, not shown)" in done.stdout
    assert "https://***@host/v1" in done.stdout


def test_an_error_in_a_profile_stops_the_start_and_names_the_line(home: Path) -> None:
    file = folder(home) / "default.yaml"
    file.write_text("auto_run: true\nllm:\n  modle: x\n")
    done = interpreter("hello")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"interpreter: {file}, line 3: There is no setting named llm.modle. Did you mean llm.model?\n"
    assert interpreter("--help").returncode == 0


def test_a_missing_profile_suggests_a_similar_one(home: Path) -> None:
    (folder(home) / "reports.yaml").touch()
    assert "Did you mean reports?" in interpreter("--profile", "reprots", "x").stderr
    assert "Did you mean codestral?" in interpreter("--profile", "codestrall", "x").stderr
    done = interpreter("--profile", "./none.yaml", "x")
    assert done.returncode == 1
    assert "There is no profile none.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_profiles_can_be_given_by_path(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.yaml").write_text("max_output: 33\n")
    (tmp_path / "groq.yaml").write_text("max_output: 44\n")
    (home / "sub").mkdir()
    (home / "sub" / "p.yml").write_text("max_output: 55\n")
    assert config("--profile", "here.yaml")["max_output"][0] == "33"
    assert config("--profile", "./groq.yaml")["max_output"][0] == "44"
    assert config("--profile", "groq.yaml")["max_output"][0] == "2800"  # the built-in profile
    assert config("--profile", "~/sub/p.yml")["max_output"][0] == "55"
    (tmp_path / "notes.txt").touch()
    assert "is not a profile" in interpreter("--profile", "./notes.txt", "x").stderr


def test_a_users_profile_overrides_a_built_in_one(home: Path) -> None:
    (folder(home) / "fast.yaml").write_text("llm.model: mine\n")
    assert config("--fast")["llm.model"][0] == "'mine'"


# -- the folder, and resets ----------------------------------------------------------------------------------------


def test_without_a_desktop_the_folder_is_printed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    done = interpreter("--profiles")
    assert (done.returncode, done.stdout) == (0, f"{folder(home)}\n")
    # There is a file to edit, which changes nothing by default.
    assert (folder(home) / "default.yaml").exists()
    assert {origin for name, (_, origin) in config().items()} <= {"default", "code"}


def test_the_folder_is_opened_on_a_desktop(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opener, opened = tmp_path / "xdg-open", tmp_path / "opened"
    os.mkfifo(opened)
    opener.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    opener.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":9")
    assert interpreter("--profiles").returncode == 0
    assert opened.read_text() == f"{folder(home)}\n"


def test_reset_restores_all_profiles_and_keeps_copies(home: Path) -> None:
    original = make_default().read_text()
    (folder(home) / "default.yaml").write_text("max_output: 1\n")
    (folder(home) / "fast.yaml").write_text("max_output: 2\n")
    (folder(home) / "work.yaml").write_text("max_output: 3\n")
    done = interpreter("--reset_profile")
    assert done.returncode == 0
    assert sorted(os.listdir(folder(home))) == ["default.yaml", "default_custom.yaml", "fast_custom.yaml", "work.yaml"]
    assert (folder(home) / "default.yaml").read_text() == original
    assert (folder(home) / "default_custom.yaml").read_text() == "max_output: 1\n"
    assert config("--profile", "fast_custom")["max_output"][0] == "2"


def test_reset_restores_one_profile_and_keeps_copies(home: Path) -> None:
    for text_of in ("a", "b"):
        (folder(home) / "fast.yaml").write_text(f"custom_instructions: {text_of}\n")
        assert interpreter("--reset_profile", "fast.yaml").returncode == 0
    assert sorted(os.listdir(folder(home))) == ["fast_custom.yaml", "fast_custom2.yaml"]
    assert "no file of yours replaces it" in interpreter("--reset_profile", "groq").stdout
    done = interpreter("--reset_profile", "gorq")
    assert done.returncode == 1
    assert "Did you mean groq?" in done.stderr


# -- defects of the original that stay fixed -----------------------------------------------------------------------


def test_safety_and_telemetry_settings_in_a_profile_apply(home: Path) -> None:
    (folder(home) / "default.yaml").write_text(
        "safe_mode: auto\ndisable_telemetry: true\nhighlight_active_line: false\n"
    )
    told = config()
    assert [told[name][0] for name in ("safe_mode", "disable_telemetry", "highlight_active_line")] == [
        "'auto'",
        "True",
        "False",
    ]


@pytest.mark.parametrize("where", some(1, ["flags", "profile"]))
def test_safe_mode_overrides_auto_run(home: Path, where: str) -> None:
    (folder(home) / "default.yaml").write_text("auto_run: true\nsafe_mode: auto\n" if where == "profile" else "")
    flags = ["-y", "--safe_mode", "auto"] if where == "flags" else []
    grave = "import subprocess\nnumber = 6 * 7\n_ = subprocess.run(f'echo {number}', shell=True)"
    with ModelServer([tool_call("python", grave)]) as server:
        done = interpreter(*flags, "--plain", "go", server=server)
    assert done.returncode == 4
    assert "42" not in done.stdout


def test_languages_in_a_profile_reach_the_model(home: Path) -> None:
    (folder(home) / "default.yaml").write_text("computer:\n  languages: [shell]\n")
    with ModelServer([text("Hello.")]) as server:
        assert interpreter("--plain", "hello", server=server).returncode == 0
        [tool] = server.requests[0].body["tools"]
    assert tool["function"]["parameters"]["properties"]["language"]["enum"] == ["shell"]


def test_verbose_stays_on_with_a_profile(home: Path) -> None:
    (folder(home) / "default.yaml").write_text("max_output: 7\n")
    with ModelServer([text("Hello.")]) as server:
        done = interpreter("--verbose", "--plain", "hello", server=server)
    assert done.stdout == "Hello.\n"
    assert "max_output = 7 (profile " in done.stderr
    assert "verbose = True (flag --verbose)" in done.stderr


def test_stdout_has_only_the_answer(home: Path) -> None:
    (folder(home) / "default.yaml").write_text("contribute_conversation: true\nuse_containers: true\n")
    with ModelServer([text("Hello.")]) as server:
        done = interpreter("--stdin", server=server, stdin="hi")
    assert done.stdout == "Hello.\n"
    assert "use_containers does nothing" in done.stderr


def test_a_profiles_messages_start_the_conversation() -> None:
    with ModelServer([text("Hello.")]) as server:
        flags = ["--profile", "codestral-few-shot", "--no-offline", "--model", "openai/gpt-4o"]
        assert interpreter(*flags, "--plain", "hello", server=server).returncode == 0
        said = [message["content"] for message in server.requests[0].messages]
    assert said[1] == "How many files are here?"
    assert said[-1] == "hello"


def test_a_terminal_chat_uses_the_users_profile(home: Path) -> None:
    (folder(home) / "default.yaml").write_text("llm:\n  model: from-the-profile\n")
    person = Person([sys.executable, "-c", PROGRAM, "--api_base", "http://127.0.0.1:9/v1", "--api_key", "key"])
    try:
        person.sees("from-the-profile")
        assert person.leaves() == 0
    finally:
        person.close()


def test_a_profile_may_ask_a_question_before_the_message(home: Path) -> None:
    with ModelServer([text("Hello.")]) as server:
        file = home / "asking.py"
        file.write_text("interpreter.custom_instructions = f'Answer: {input()}.'\n")
        done = interpreter("--profile", str(file), "--model", "gpt-4o", server=server, stdin="yes\nHi\n")
        assert (done.returncode, done.stdout.strip()) == (0, "Hello.")
        assert "Answer: yes." in server.requests[-1].body["messages"][0]["content"]
        assert server.requests[-1].body["messages"][-1]["content"] == "Hi"
