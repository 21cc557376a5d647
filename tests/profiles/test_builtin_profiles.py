"""The built-in profiles: all exist, all load, none runs code without approval."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

from interpreter import OpenInterpreter
from interpreter.config.profiles import builtin_names, find
from interpreter.errors import LocalServerError, ProfileError
from interpreter.llm.usage import known_models
from profiles.programs import config, interpreter
from sampling import some

ORIGINAL_NAMES = """
default.yaml fast.yaml vision.yaml local.py local-os.py llama3.py llama3-os.py llama3-vision.py codestral.py codestral-os.py
codestral-vision.py codestral-few-shot.py gemma2.py qwen.py groq.py cerebras.py bedrock-anthropic.py aws-docs.py screenpipe.py
obsidian.py llama31-database.py e2b.py snowpark.yml assistant.py local-assistant.py the01.py os.py template_profile.py
""".split()
ASKS_FOR_A_MODEL = ("local", "local-os", "local-assistant")


def test_every_profile_of_the_original_exists_under_its_old_name() -> None:
    assert {Path(name).stem for name in ORIGINAL_NAMES} == set(builtin_names())
    for name in ORIGINAL_NAMES:
        assert find(name).is_builtin
        assert find(Path(name).stem).is_builtin


@pytest.mark.parametrize("name", [Path(name).stem for name in ORIGINAL_NAMES])
def test_every_profile_loads_and_keeps_asking_before_code(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OBSIDIAN_VAULT_PATH", str(tmp_path))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    made = OpenInterpreter()
    try:
        if name in ASKS_FOR_A_MODEL:
            # No user can choose a model, and none is running: the error shows that it was asked for.
            with pytest.raises((LocalServerError, ProfileError), match="local model"):
                made.load_profile(name)
        else:
            made.load_profile(name)
        assert made.auto_run is False
    finally:
        made.computer.terminate()


def test_hosted_models_of_profiles_have_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("fast", "vision", "groq", "cerebras", "bedrock-anthropic", "assistant", "the01", "os"):
        made = OpenInterpreter()
        made.load_profile(name)
        model = made.llm.model if "/" in made.llm.model else f"openai/{made.llm.model}"
        provider, _, rest = model.partition("/")
        assert rest in [each.name for each in known_models(provider)], name


@pytest.mark.parametrize(
    ("flags", "name"),
    some(
        4,
        [
            (["--fast"], "fast"),
            (["-f"], "fast"),
            (["--vision"], "vision"),
            (["--codestral"], "codestral"),
            (["--codestral", "--vision"], "codestral-vision"),
            (["--codestral", "--os"], "codestral-os"),
            (["--llama3"], "llama3"),
            (["--llama3", "-vi"], "llama3-vision"),
            (["--llama3", "-os"], "llama3-os"),
            (["--groq"], "groq"),
            (["--assistant"], "assistant"),
            (["--os"], "os"),
            (["--profile", "groq.py"], "groq"),
        ],
    ),
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_flag_loads_its_profile(flags: list[str], name: str) -> None:
    told = config(*flags)
    value, origin = told["llm.model"]
    made = OpenInterpreter()
    made.load_profile(name)
    assert value == repr(made.llm.model)
    assert f"{name}.yaml, line" in origin


def test_missing_features_print_one_notice() -> None:
    told = interpreter("--os", "--speak_messages", "--debug-config").stderr
    assert told.splitlines() == ["--speak_messages does nothing: messages are not spoken yet."]
    told = interpreter("--assistant", "--debug-config").stderr
    assert len(told.splitlines()) <= 1


def test_two_profiles_at_once_are_refused() -> None:
    done = interpreter("--fast", "--groq", "hello")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--fast and --groq each name a profile" in done.stderr


def test_the_e2b_profile_runs_python_in_its_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for the sandbox's package, which is not installed."""
    killed = []

    class Sandbox:
        @classmethod
        def create(cls) -> Sandbox:
            return cls()

        def run_code(self, code: str) -> object:
            logs = types.SimpleNamespace(stdout=["42\n"], stderr=["careful\n"])
            results = [types.SimpleNamespace(png="iVBOR", text=""), types.SimpleNamespace(png=None, text="7")]
            return types.SimpleNamespace(logs=logs, results=results, error=types.SimpleNamespace(traceback="Oh\n"))

        def kill(self) -> None:
            killed.append(self)

    module = types.ModuleType("e2b_code_interpreter")
    module.Sandbox = Sandbox  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "e2b_code_interpreter", module)
    made = OpenInterpreter()
    made.load_profile("e2b")
    assert [language.name for language in made.computer.languages] == ["Python"]
    chunks = list(made.computer.run("python", "x", stream=True))
    assert [chunk["content"] for chunk in chunks] == ["42\n", "careful\n", "iVBOR", "7\n", "Oh\n"]
    made.computer.terminate()
    assert len(killed) == 1
