"""The first run without a model: one screen lists the choices, and the next start remembers the choice."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter.llm.providers import ROWS, STARTING_MODELS, save_key
from model_server import ModelServer, error, text, tool_call
from routed_server import RoutedServer, as_json, as_lines
from sampling import some
from terminal.person import ENTER, PROGRAM, Person, someone

DOWN, ESCAPE = "\x1b[B", "\x1b"
KEY = "gsk_made-up"
PASTE = "> Paste a provider's API key"
CHAT = as_lines({"message": {"content": "From here."}, "done": True})
OLLAMA = {
    "GET /api/tags": as_json({"models": [{"name": "tiny:latest"}]}),
    "POST /api/show": as_json({"model_info": {"x.context_length": 4096}}),
    "POST /api/chat": CHAT,
}


@pytest.fixture(autouse=True)
def _no_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in ROWS.values():
        for name in row.key_variables:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("INTERPRETER_SANDBOX", "off")  # or the first start also asks when code may run: test_trust.py


@pytest.fixture
def groq(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A provider whose URL comes from the environment, but whose key is missing."""
    with ModelServer([text("Welcome.")], repeat=True) as server:
        monkeypatch.setenv("GROQ_API_BASE", server.base_url)
        yield server


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[RoutedServer]:
    with RoutedServer(OLLAMA) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.address)
        yield server


def folder(home: Path) -> Path:
    return home / ".config" / "open-interpreter"


def paste_key(person: Person, key: str = KEY) -> None:
    person.sees(PASTE)
    person.types(ENTER)
    person.sees("API key, hidden while you type")
    person.types(key + ENTER)


def answer_save_question(person: Person, yes: bool) -> None:
    person.sees("Save the key for next time?")
    person.types((DOWN if yes else "") + ENTER)


def test_one_screen_lists_the_choices() -> None:
    with someone() as person:
        person.sees(PASTE)
        person.sees("Your own GGUF file")
        shown = "\n".join(person.emulator.visible)
        assert "No model is set up yet" in shown
        for words in ("a key", "a server", "built-in", "OPENAI_API_KEY", "Ollama", "Qwen2.5 Coder 1.5B"):
            assert words in shown
        assert shown.count("GB to download)") == 3  # no row is cut
        person.types(ESCAPE)
        assert person.ends() == 1
        assert person.mode_is_restored
        assert "Traceback" not in person.screen


@pytest.mark.full
def test_a_narrow_screen_wraps_between_words() -> None:
    with someone(columns=40, lines=40) as person:
        person.sees("Your own GGUF file")
        words = " ".join(person.screen.split())
        assert "a small model, downloaded once: no key, no account, and nothing leaves this machine" in words
        assert "Which model? Arrow keys and Enter to pick, Escape to exit." in words
        assert words.count("GB to download)") == 3
        person.types(DOWN)
        person.sees("> built-in")
        person.types(ESCAPE)
        assert person.ends() == 1


@pytest.mark.parametrize(
    ("flag", "term"), [pytest.param("--plain", "xterm-256color", marks=pytest.mark.full), ("--no_plain", "dumb")]
)
def test_plain_and_dumb_terminals_choose_by_number(groq: ModelServer, flag: str, term: str) -> None:
    with someone(flag, env={"TERM": term}) as person:
        person.sees("1. Paste a provider's API key")
        person.sees("Number (Enter to exit):")
        person.types("99" + ENTER)
        person.sees("exit): 99\nNumber (Enter to exit):")
        person.types("1" + ENTER)
        person.sees("API key, hidden while you type")
        person.types(KEY + ENTER)
        person.sees("1. No: only for this session")
        person.types("1" + ENTER)
        person.sees("Using groq/")
        person.sees("Ctrl-D exits.")
        person.types("Hi" + ENTER)
        person.sees("Welcome.")
        assert KEY not in person.raw
        assert term != "dumb" or "\x1b" not in person.raw


def test_without_a_terminal_one_message_says_what_to_do() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, input="Hi\n", capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("No model is set up") == 1
    assert "OPENAI_API_KEY" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pasted_key_is_recognised_by_its_prefix(groq: ModelServer, home: Path) -> None:
    with someone() as person:
        paste_key(person)
        answer_save_question(person, yes=False)
        person.sees("Using groq/")
        person.says("Hi")
        person.sees("Welcome.")
        assert KEY not in person.raw
        assert person.leaves() == 0
    assert groq.requests[0].headers["authorization"] == f"Bearer {KEY}"
    left = [file for file in home.rglob("*") if file.is_file() and KEY in file.read_text(errors="replace")]
    assert left == []
    with someone() as person:  # the key was not saved
        person.sees(PASTE)


def test_a_saved_key_is_used_at_the_next_start(groq: ModelServer, home: Path) -> None:
    with someone() as person:
        paste_key(person)
        answer_save_question(person, yes=True)
        assert person.leaves() == 0
    file = folder(home) / "keys.env"
    assert file.read_text() == f"GROQ_API_KEY={KEY}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    groq.replies[:] = [
        text("Yes."),  # the reply to the key test
        tool_call("python", "import os; print([v for v in os.environ.values() if 'gsk_' in v])"),
        text("Ok."),
    ]
    with someone("-y") as person:
        person.sees("Using groq/")
        person.says("Hi")
        person.sees("[]")  # code does not see the key
        person.sees("Ok.")
        assert KEY not in person.raw
        assert "Paste" not in person.screen
        assert person.leaves() == 0
    assert groq.requests[0].headers["authorization"] == f"Bearer {KEY}"
    left = [file for file in home.rglob("*") if file.is_file() and KEY in file.read_text(errors="replace")]
    assert left == [file]


@pytest.mark.full
def test_the_provider_of_an_unrecognised_key_is_asked_for(groq: ModelServer) -> None:
    with someone() as person:
        paste_key(person, "unrecognised-key")
        person.sees("Whose key is it?")
        person.types(DOWN * list(STARTING_MODELS).index("groq") + ENTER)
        answer_save_question(person, yes=False)
        person.says("Hi")
        person.sees("Welcome.")
        assert person.leaves() == 0


def test_a_key_is_tested_at_once_and_a_rejected_one_returns_to_the_list(groq: ModelServer, home: Path) -> None:
    groq.replies[:] = [error(401), text("Yes."), text("Welcome.")]
    with someone() as person:
        paste_key(person, "gsk_wrong")
        person.sees("Testing the key ...")
        person.sees("rejected the key")
        paste_key(person)
        person.sees("The key works.")
        answer_save_question(person, yes=False)
        person.says("Hi")
        person.sees("Welcome.")
        assert person.leaves() == 0
    assert [each.headers["authorization"] for each in groq.requests] == ["Bearer gsk_wrong", *[f"Bearer {KEY}"] * 2]


def test_a_rejected_key_can_be_replaced_in_the_chat(groq: ModelServer, home: Path) -> None:
    groq.replies[:] = [error(401), error(401), text("Yes."), text("Welcome."), text("Yes."), text("Again.")]
    with someone("--model", "groq/mine", "--api_key", "gsk_old") as person:
        person.says("Hi")
        person.sees("%model asks for another key")
        person.says("%model")
        person.sees("API key, hidden while you type")
        person.types("gsk_wrong" + ENTER)
        person.sees("API key, hidden while you type", times=2)
        person.types(KEY + ENTER)
        person.sees("The key works.")
        answer_save_question(person, yes=False)
        person.says("Hello")
        person.sees("Welcome.")
        person.says("%setup")
        paste_key(person, "gsk_newest")
        answer_save_question(person, yes=False)
        person.says("Once more")
        person.sees("Again.")
        assert person.leaves() == 0
    keys = [each.headers["authorization"].removeprefix("Bearer ") for each in groq.requests]
    assert keys == ["gsk_old", "gsk_wrong", KEY, KEY, "gsk_newest", "gsk_newest"]


@pytest.mark.full
def test_an_unused_key_returns_to_the_list() -> None:
    with someone() as person:
        paste_key(person, "")
        person.sees("No key was given.")
        person.sees(PASTE)
        paste_key(person, "unrecognised-key")
        person.sees("Whose key is it?")
        person.types(ESCAPE)
        person.sees("The key was not used.")
        person.sees("Your own GGUF file")
        person.types(ESCAPE)
        assert person.ends() == 1


def test_a_key_in_the_environment_selects_its_providers_model(groq: ModelServer) -> None:
    with someone(env={"GROQ_API_KEY": KEY}) as person:
        person.sees("Using groq/openai/gpt-oss-120b because GROQ_API_KEY is set.")
        person.says("Hi")
        person.sees("Welcome.")
        assert person.leaves() == 0
    assert groq.requests[0].body["model"] == "openai/gpt-oss-120b"
    assert groq.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_key_in_the_environment_works_in_a_pipe_too(groq: ModelServer) -> None:
    env = {**os.environ, "GROQ_API_KEY": KEY}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, input="Hi\n", capture_output=True, text=True, env=env, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "Welcome.")
    assert "GROQ_API_KEY is set" in done.stderr


@pytest.mark.full
def test_an_ambiguous_key_selects_no_model() -> None:
    with someone(env={"HF_TOKEN": "hf_made-up"}) as person:
        person.sees("HF_TOKEN is set. To use it: --model huggingface/")
        person.sees(PASTE)
        assert "hf_made-up" not in person.raw


@pytest.mark.full
def test_a_saved_key_is_used_only_for_its_provider(groq: ModelServer) -> None:
    save_key("GROQ_API_KEY", KEY)
    save_key("OPENAI_API_KEY", "sk-other")
    with someone("--model", "groq/other") as person:
        person.says("Hi")
        person.sees("Welcome.")
        assert person.leaves() == 0
    assert groq.requests[0].headers["authorization"] == f"Bearer {KEY}"
    with someone("--model", "anthropic/claude-sonnet-5") as person:  # no other provider gets it
        person.sees("There is no key for anthropic")


def test_the_model_of_a_local_server_is_remembered(ollama: RoutedServer, home: Path) -> None:
    with someone() as person:
        person.sees("> Ollama  tiny")
        person.types(ENTER)
        person.at_prompt()
        assert person.leaves() == 0
    with someone() as person:
        person.sees("Using ollama/tiny, your last choice. To change it: interpreter --setup")
        person.says("Hi")
        person.sees("From here.")
        assert person.leaves() == 0
    assert ollama.asked[-1].body["options"]["num_ctx"] == 4096


@pytest.mark.full
def test_flags_and_the_environment_override_the_remembered_model(
    ollama: RoutedServer, groq: ModelServer, home: Path
) -> None:
    with someone("--local") as person:
        person.sees("> Ollama  tiny")
        person.types(ENTER)
        assert person.leaves() == 0
    with someone("--model", "groq/mine", "--api_key", KEY) as person:
        person.sees("model groq/mine")
        assert "your last choice" not in person.screen
    with someone(env={"GROQ_API_KEY": KEY}) as person:
        person.sees("GROQ_API_KEY is set")
        assert "your last choice" not in person.screen
    with someone(env={"INTERPRETER_MODEL": "ollama/other"}) as person:
        person.sees("model ollama/other")
        assert "your last choice" not in person.screen


def test_setup_changes_the_remembered_model(ollama: RoutedServer, home: Path) -> None:
    remember_model(home, model="ollama/gone", api_base=f"{ollama.address}/v1")
    with someone("--setup") as person:
        person.sees("> Ollama  tiny")
        person.types(ENTER)
        assert person.leaves() == 0
    assert json.loads((folder(home) / "model.json").read_text())["model"] == "ollama/tiny"


def remember_model(home: Path, **settings: str) -> None:
    folder(home).mkdir(parents=True, exist_ok=True)
    (folder(home) / "model.json").write_text(json.dumps(settings))


def test_an_unreachable_last_server_is_reported_before_the_choices(home: Path) -> None:
    with RoutedServer({}) as gone:
        address = f"{gone.address}/v1"
    remember_model(home, model="ollama/tiny", api_base=address)
    with someone() as person:
        person.sees("Can't use your last model, ollama/tiny: nothing answers at")
        person.sees(PASTE)


@pytest.mark.full
def test_a_builtin_model_is_remembered_while_its_file_exists(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF")
    remember_model(home, model=f"builtin/{file}")
    with someone(columns=200) as person:
        person.sees("Using builtin/")
        assert person.leaves() == 0
    file.unlink()
    with someone(columns=200) as person:
        person.sees("its file no longer exists.")
        person.sees(PASTE)


@pytest.mark.parametrize(
    "written",
    some(
        1,
        [
            "{}",
            "\x00",
            *(
                pytest.param(other, marks=pytest.mark.full)
                for other in ("", "[]", '{"model": 3}', '{"model": "x", "more": 1}')
            ),
        ],
    ),
)
def test_a_damaged_model_file_is_ignored(home: Path, written: str) -> None:
    folder(home).mkdir(parents=True)
    (folder(home) / "model.json").write_text(written)
    with someone() as person:
        person.sees(PASTE)
        assert "Traceback" not in person.screen


def test_offline_offers_only_local_models(groq: ModelServer) -> None:
    with someone("--offline", env={"GROQ_API_KEY": KEY}) as person:
        person.sees("> built-in")
        assert "Paste" not in person.screen


@pytest.mark.full
def test_a_server_we_started_is_started_again_next_time(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ollama"
    code = (
        "import http.server, json, os\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def log_message(self, *a): pass\n"
        "    def do_GET(self): self.say({'models': [{'name': 'one:latest'}, {'name': 'two:latest'}]})\n"
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
        monkeypatch.setenv("OLLAMA_HOST", free.address)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with someone() as person:
        person.sees("Start Ollama")
        person.types(DOWN + ENTER)
        person.sees("> Ollama  one")
        person.types(DOWN + ENTER)
        person.sees("Using two at Ollama")
        assert person.leaves() == 0
    with someone() as person:
        person.sees("Using two at Ollama")
        assert "Which model?" not in person.raw
        assert person.leaves() == 0


def test_a_download_fits_80_columns_and_says_that_it_resumes() -> None:
    program = """
from interpreter.local_models.setup import show_download
from interpreter.local_models.weights import Progress
source = "a mirror with quite a long name that is not needed in the bar"
steps = [Progress(done * 10**7, 1_117_320_768, source) for done in range(40, 60)]
show_download("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf", steps)
"""
    person = Person([sys.executable, "-c", program])
    assert person.ends() == 0
    assert "Resuming Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf from a mirror" in person.screen
    assert "the next start resumes it." in " ".join(person.screen.split())
    bar = next(row for row in person.rows if row.startswith("downloading"))
    assert "/1.1 GB" in bar and bar.rstrip().count(":") == 2, "the size and the time are not cut"
    piped = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "\n50%\n" in piped.stdout and piped.stdout.count("\n") < 8
