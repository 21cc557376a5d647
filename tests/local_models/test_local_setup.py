"""`interpreter.local_setup()`: a list of local models, driven as a person would."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pexpect
import pytest

from interpreter.local_models.weights import models_folder
from routed_server import Answer, RoutedServer, as_json, as_lines
from sampling import some

UP, DOWN, ENTER, ESCAPE, CTRL_C = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x03"

# The test supplies the servers' addresses and the models to download.
PROGRAM = """\
import json, os, sys
from dataclasses import replace
from interpreter import OpenInterpreter
from interpreter.errors import InterpreterError
from interpreter.local_models import servers
from interpreter.local_models import weights
given = json.loads(os.environ["GIVEN"])
servers.KINDS = tuple(
    replace(kind, address=given["at"][kind.name]) for kind in servers.KINDS if kind.name in given["at"]
)
weights.WEIGHTS = tuple(
    weights.Weights(**row, sources=(weights.DownloadSource("the hub", (weights.FilePart(row["size"], url=url),)),))
    for row, url in given["weights"]
)
if given["hidden"]:
    sys.modules[given["hidden"]] = None  # as if it were not installed
interpreter = OpenInterpreter(offline=given["offline"])
for name, value in given["settings"].items():
    setattr(interpreter.llm, name, value)
try:
    interpreter.local_setup()
    llm = interpreter.llm
    chosen = {name: getattr(llm, name) for name in ("model", "api_base", "api_key", "context_window")}
    print("CHOSEN", json.dumps(chosen), "END")
except InterpreterError as error:
    print("ERROR", error, "END")
except KeyboardInterrupt:
    print("LEFT", "END")
"""

TAGS = as_json({"models": [{"name": "llama3.1:latest", "size": 4_700_000_000}, {"name": "phi3:latest"}]})
SHOWN = as_json({"model_info": {"llama.context_length": 8192}})
OLLAMA = {"GET /api/tags": TAGS, "POST /api/show": SHOWN}
JAN = {"GET /v1/models": as_json({"data": [{"id": "tiny"}]})}
VLLM = {"GET /v1/models": as_json({"data": [{"id": "big", "max_model_len": 32000}]})}
LINES = 40


def environment(at: Mapping[str, RoutedServer], weights: list[Any], settings: Mapping[str, Any]) -> dict[str, str]:
    places = {name: server.address for name, server in at.items()}
    settings = dict(settings)
    given: dict[str, Any] = {"at": places, "weights": weights}
    given |= {name: settings.pop(name, None) for name in ("hidden",)} | {"offline": settings.pop("offline", False)}
    given["settings"] = settings
    return {**os.environ, "GIVEN": json.dumps(given), "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1"}


@pytest.fixture(autouse=True)
def _close_terminals() -> Iterator[None]:
    yield
    for person in Person.started:
        person.screen.close(force=True)
    Person.started.clear()


class Person:
    """A user at a terminal in which the setup runs."""

    started: ClassVar[list[Person]] = []

    def __init__(self, weights: list[Any] | None = None, path: str | None = None, **at: Any) -> None:
        settings = at.pop("settings", {})
        self.started.append(self)
        env = environment(at, weights or [], settings) | ({"PATH": path} if path else {})
        self.screen = pexpect.spawn(
            sys.executable, ["-c", PROGRAM], env=env, encoding="utf-8", timeout=60, dimensions=(LINES, 100)
        )

    def sees(self, words: str) -> None:
        self.screen.expect(re.escape(words))

    def presses(self, *keys: str) -> None:
        for key in keys:
            self.screen.send(key)

    def ends_with(self, word: str) -> str:
        self.screen.expect(rf"{word} ?(.*?)\s*END")
        assert self.screen.match is not None
        said: str = self.screen.match.group(1)
        self.screen.expect(pexpect.EOF)
        self.screen.close()
        return re.sub(r"\s*\r\n", " ", said) if word == "ERROR" else said.replace("\r\n", "")

    def gets(self) -> dict[str, Any]:
        chosen: dict[str, Any] = json.loads(self.ends_with("CHOSEN"))
        return chosen


def without_a_terminal(weights: list[Any] | None = None, **at: RoutedServer) -> str:
    env = environment(at, weights or [], {})
    argv = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr
    return done.stderr + done.stdout


def test_a_model_is_chosen_with_the_arrow_keys() -> None:
    with RoutedServer(OLLAMA) as ollama, RoutedServer(JAN) as jan:
        person = Person(ollama=ollama, jan=jan)
        person.sees("> Ollama  llama3.1 (4.7 GB)")
        person.sees("Jan  tiny")
        person.presses(DOWN, DOWN, DOWN, ENTER)
        person.sees("Using tiny at Jan")
        chosen = person.gets()
    assert chosen["model"] == "jan/tiny"
    assert chosen["api_base"] == f"{jan.address}/v1"


@pytest.mark.full
def test_the_window_size_comes_from_ollama_unless_the_user_sets_it() -> None:
    with RoutedServer(OLLAMA) as ollama:
        person = Person(ollama=ollama)
        person.sees("llama3.1")
        person.presses(ENTER)
        person.sees("window 8,192 tokens")
        chosen = person.gets()
        assert (chosen["model"], chosen["context_window"]) == ("ollama/llama3.1", 8192)
        person = Person(ollama=ollama, settings={"context_window": 4000})
        person.sees("llama3.1")
        person.presses(ENTER)
        assert person.gets()["context_window"] == 4000


def test_an_openai_key_is_not_sent_to_a_local_server() -> None:
    with RoutedServer(VLLM) as vllm:
        person = Person(vllm=vllm)
        person.sees("vLLM  big")
        person.presses(ENTER)
        chosen = person.gets()
    assert (chosen["model"], chosen["api_key"], chosen["context_window"]) == ("openai/big", "local", 32000)


@pytest.mark.parametrize("key", some(1, [CTRL_C, ESCAPE]))
def test_ctrl_c_and_escape_leave_the_list(key: str) -> None:
    with RoutedServer(OLLAMA) as ollama:
        person = Person(ollama=ollama)
        person.sees("phi3")
        person.presses(key)
        person.ends_with("LEFT")


def test_ollama_downloads_a_model_with_a_progress_bar() -> None:
    pulled = as_lines(
        {"status": "pulling aa", "digest": "aa", "total": 2_000_000, "completed": 1_000_000},
        {"status": "pulling aa", "digest": "aa", "total": 2_000_000, "completed": 2_000_000},
        {"status": "success"},
    )
    with RoutedServer({**OLLAMA, "POST /api/pull": pulled}) as ollama:
        person = Person(ollama=ollama)
        person.sees("Get another model for Ollama")
        person.presses(DOWN, DOWN, ENTER)
        person.sees("Which model should Ollama download?")
        person.sees("> qwen2.5-coder:7b")
        person.presses(ENTER)
        person.sees("2.0/2.0 MB")
        assert person.gets()["model"] == "ollama/qwen2.5-coder:7b"


@pytest.mark.full
def test_a_failed_ollama_download_returns_to_the_list() -> None:
    failed = as_lines({"error": "pull model manifest: file does not exist"})
    with RoutedServer({**OLLAMA, "POST /api/pull": failed}) as ollama:
        person = Person(ollama=ollama)
        person.sees("Get another model for Ollama")
        person.presses(DOWN, DOWN, ENTER)
        person.sees("Which model should Ollama download?")
        person.presses(UP, *[DOWN] * 9, ENTER)
        person.sees("Model:")
        person.presses("nonsense", ENTER)
        person.sees("file does not exist")
        person.sees("> Ollama  llama3.1")
        person.presses(ENTER)
        assert person.gets()["model"] == "ollama/llama3.1"


def test_an_installed_ollama_is_started(tmp_path: Path) -> None:
    """A stand-in for the real program serves what the scripted server above would."""
    program = tmp_path / "ollama"
    code = (
        "import http.server, json, os, sys\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def log_message(self, *a): pass\n"
        "    def do_GET(self): self.say({'models': [{'name': 'tiny:latest'}]})\n"
        "    def do_POST(self): self.say({'model_info': {'x.context_length': 2048}})\n"
        "    def say(self, reply):\n"
        "        body = json.dumps(reply).encode()\n"
        "        self.send_response(200); self.send_header('Content-Length', str(len(body)))\n"
        "        self.end_headers(); self.wfile.write(body)\n"
        "host, _, port = os.environ['OLLAMA_HOST'].rpartition(':')\n"
        "server = http.server.HTTPServer((host, int(port)), H)\n"
        "print('listening', flush=True); server.serve_forever()\n"
    )
    program.write_text(f"#!{sys.executable}\n{code}")
    program.chmod(0o755)
    with RoutedServer({}) as free:
        place = free
    person = Person(ollama=place, path=f"{tmp_path}:{os.environ['PATH']}")
    person.sees("> Start Ollama")
    person.presses(ENTER)
    person.sees("Using tiny at Ollama, window 2,048 tokens.")
    assert person.gets()["model"] == "ollama/tiny"


@pytest.mark.full
def test_a_locked_server_is_reported_above_the_list() -> None:
    with RoutedServer({"GET /v1/models": as_json({}, 401)}) as jan:
        person = Person(jan=jan)
        person.sees("JAN_API_KEY")
        person.sees("Your own GGUF file")
        person.presses(CTRL_C)
        person.ends_with("LEFT")


@pytest.mark.full
def test_a_path_dropped_into_the_terminal_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "my model.gguf"
    file.write_bytes(b"GGUF")
    person = Person(settings={"offline": True, "hidden": "xllamacpp"})
    for spelled in (f"'{file}'", str(file).replace(" ", "\\ ") + " ", str(file)):
        person.sees("Your own GGUF file")
        person.presses(ENTER)
        person.sees("Path of the GGUF file:")
        person.presses(spelled, ENTER)
        person.sees("Can't download anything while")  # the engine, which it needs
    person.sees("Your own GGUF file")
    person.presses(CTRL_C)
    person.ends_with("LEFT")


def row(content: bytes, server: RoutedServer) -> list[Any]:
    known = {"name": "tiny", "title": "Tiny", "file": "tiny.gguf", "memory": 1}
    sums = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return [[{**known, **sums}, f"{server.address}/m"]]


def test_the_builtin_model_is_downloaded_and_load_errors_are_shown() -> None:
    content = b"GGUF" + b"x" * 300_000
    file = Answer(200, [content], {"Content-Length": str(len(content))})
    with RoutedServer({"GET /m": file}) as hub:
        person = Person(row(content, hub))
        person.sees("> built-in  Tiny (0.0 GB to download)")
        person.presses(ENTER)
        person.sees("tiny.gguf from the hub")
        person.sees("Loading tiny.gguf")
        person.sees("could not load tiny.gguf")  # it isn't really a model
        person.sees("> built-in  Tiny (on this machine)")  # back at the list
    assert (models_folder() / "tiny.gguf").read_bytes() == content


@pytest.mark.full
def test_a_failed_download_returns_to_the_list() -> None:
    with RoutedServer({}) as hub:
        person = Person(row(b"GGUF", hub))
        person.sees("> built-in  Tiny")
        person.presses(ENTER)
        person.sees("the server answers 404")
        person.sees("> built-in  Tiny")
        person.presses(CTRL_C)
        person.ends_with("LEFT")


def test_nothing_is_downloaded_offline() -> None:
    with RoutedServer({}) as hub:
        person = Person(row(b"GGUF", hub), settings={"offline": True})
        person.sees("> built-in  Tiny")
        person.presses(ENTER)
        person.sees("Can't download anything")
        person.presses(CTRL_C)
        person.ends_with("LEFT")
        assert hub.asked == []


@pytest.mark.full
def test_keys_pressed_while_a_model_loads_go_to_the_next_list() -> None:
    content = b"GGUF" + b"x" * 300_000
    may_send = threading.Event()

    def slowly(asked: Any) -> Answer:
        def pieces() -> Iterator[bytes]:
            may_send.wait(60)
            yield content

        return Answer(200, pieces(), {"Content-Length": str(len(content))})

    with RoutedServer({"GET /m": slowly, **JAN}) as hub:
        person = Person(row(content, hub), jan=hub)
        person.sees("> Jan  tiny")
        person.presses(DOWN, ENTER)
        person.sees("tiny.gguf from the hub")
        person.presses(ENTER)  # loading will fail: this key is for the list after that
        may_send.set()
        person.sees("could not load tiny.gguf")
        assert person.gets()["model"] == "jan/tiny"


def test_the_engine_is_installed_only_after_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with RoutedServer({}) as hub:
        person = Person(row(b"GGUF", hub), settings={"hidden": "xllamacpp"})
        person.sees("> built-in  Tiny")
        person.presses(ENTER)
        person.sees("-m pip install xllamacpp")
        person.sees("Install it now?")
        person.presses("n", ENTER)
        person.sees("Not installed.")
        person.sees("> built-in  Tiny")
        person.presses(ENTER)
        person.sees("Install it now?")
        person.presses("y", ENTER)
        person.sees("> built-in  Tiny")  # pip already has it, but it is still hidden
        person.presses(CTRL_C)
        person.ends_with("LEFT")
        assert hub.asked == []


@pytest.mark.full
def test_a_missing_file_is_reported() -> None:
    person = Person()
    person.sees("> built-in  Your own GGUF file")
    person.presses(ENTER)
    person.sees("Path of the GGUF file:")
    person.presses("/no/such.gguf", ENTER)
    person.sees("There is no file")
    person.presses(CTRL_C)
    person.ends_with("LEFT")


@pytest.mark.full
def test_a_list_longer_than_the_screen_scrolls() -> None:
    models = as_json({"data": [{"id": f"model-{number:03}"} for number in range(200)]})
    with RoutedServer({"GET /v1/models": models}) as jan:
        person = Person(jan=jan)
        person.sees("model-000")
        person.presses(DOWN * 150)
        person.sees("150")
        person.presses(ENTER)
        assert person.gets()["model"] == "jan/model-150"


def test_without_a_terminal_the_only_model_is_used() -> None:
    with RoutedServer(JAN) as jan:
        said = without_a_terminal(jan=jan)
    assert "Using Jan  tiny" in said
    assert '"model": "jan/tiny"' in said


def test_without_a_terminal_several_models_are_listed_in_an_error() -> None:
    with RoutedServer(JAN) as jan, RoutedServer(VLLM) as vllm:
        said = without_a_terminal(jan=jan, vllm=vllm)
    assert "ERROR" in said
    assert "--model" in said
    assert "Jan  tiny" in said
    assert "vLLM  big" in said


def test_without_a_terminal_or_a_model_the_error_says_what_to_do() -> None:
    with RoutedServer({}) as hub:
        said = without_a_terminal(row(b"GGUF", hub))
        assert hub.asked == [], "nothing is downloaded without a choice"
    assert "interpreter --local" in said
    assert "built-in  Tiny" in said


def test_the_command_line_lists_several_models_without_a_terminal() -> None:
    with RoutedServer(OLLAMA | {"GET /v1/models": as_json({"data": []})}) as server:
        env = {**os.environ, "OLLAMA_HOST": server.address}
        program = "import sys; from interpreter.frontends.cli import main; sys.exit(main())"
        done = subprocess.run(
            [sys.executable, "-c", program, "--local", "hello"],
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    assert "not available yet" not in done.stderr
    assert done.returncode != 0
    assert "--model" in done.stderr and "llama3.1" in done.stderr and "phi3" in done.stderr
