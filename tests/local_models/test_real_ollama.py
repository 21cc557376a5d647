"""A real Ollama: discovery, listing, window sizes and replies. Set INTERPRETER_TEST_OLLAMA or put it on the PATH."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest

from interpreter import OpenInterpreter
from interpreter.errors import LocalServerError, ModelOverloadedError, UnknownModelError
from interpreter.local_models import engine, ollama, servers
from interpreter.messages import Chunk, Message
from real_models import weights
from scripted_llm import HELLO, SYSTEM
from terminal.person import PROGRAM

# Read at import: each test gets its own environment.
OLLAMA = os.environ.get("INTERPRETER_TEST_OLLAMA") or shutil.which("ollama")
NEEDED = "no Ollama: put `ollama` on the PATH, or name it in INTERPRETER_TEST_OLLAMA"
pytestmark = [
    pytest.mark.real_model,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not OLLAMA, reason=NEEDED),
]
DEFAULT_WINDOW = 512  # this Ollama's default; some builds have 2,048


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Our own server with one model, created from a local file."""
    file = weights("smollm2-135m")
    assert OLLAMA
    home = tmp_path_factory.mktemp("ollama")
    (home / "Modelfile").write_text(f"FROM {file}\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{probe.getsockname()[1]}"
    kind = replace(servers.KINDS[0], address=f"http://{place}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("OLLAMA_MODELS", str(home / "models"))
        patch.setenv("OLLAMA_CONTEXT_LENGTH", str(DEFAULT_WINDOW))
        started = engine.start_ollama(kind, OLLAMA)
        try:
            assert servers.look(kind) == servers.LocalServer(kind, (), "Ollama is running but has no model yet.")
            patch.setenv("OLLAMA_HOST", place)
            argv = [OLLAMA, "create", "smol", "-f", str(home / "Modelfile")]
            subprocess.run(argv, check=True, capture_output=True, timeout=200)
            yield kind.address
        finally:
            started.child.close()


@pytest.fixture(autouse=True)
def _ollama_host(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", address)


def ask(model: str, *messages: Message) -> list[Chunk]:
    llm = OpenInterpreter(offline=True).llm
    llm.model, llm.max_tokens, llm.max_retries = f"ollama/{model}", 8, 0
    llm.model_profile, llm.execution_instructions = "full", ""
    return list(llm.reply([SYSTEM, *(messages or [HELLO])]))


def test_ollama_is_found_with_its_models_and_window_sizes(address: str) -> None:
    [found] = [server for server in servers.find() if server.kind.name == "ollama"]
    assert found.kind.address == address
    smol = next(model for model in found.models if model.name == "smol")
    assert found.model_string(smol) == "ollama/smol"
    assert smol.size is not None
    assert smol.size > 90_000_000
    assert servers.context_of(found, smol) == 8192, "all that the model can do"
    assert servers.context_of(found, smol, 4000) == 4000
    shown = ollama.show(address, "smol")
    assert shown.window == 8192
    assert shown.set_window is None
    assert "completion" in shown.capabilities
    assert (shown.parameters, shown.quantization) == ("134.52M", "Q4_1")


def test_the_models_option_lists_its_model() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--models", "ollama/smol"], capture_output=True, text=True, timeout=60
    )
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["ollama/smol", "8k", "free"] in rows


def test_without_a_terminal_the_only_model_is_used(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(servers, "KINDS", servers.KINDS[:1])  # ignore other servers on this machine
    interpreter = OpenInterpreter()
    interpreter.local_setup()
    assert (interpreter.llm.model, interpreter.llm.context_window) == ("ollama/smol", 8192)
    assert "Using smol at Ollama, window 8,192 tokens." in capsys.readouterr().out


def test_a_missing_model_raises_an_error(address: str) -> None:
    with pytest.raises(UnknownModelError, match="ollama pull nothing"):
        ask("nothing")
    with pytest.raises(LocalServerError, match="'nothing' not found"):
        ollama.show(address, "nothing")


def test_an_unreachable_registry_raises_an_error(address: str) -> None:
    with pytest.raises(LocalServerError, match=r"could not get 127\.0\.0\.1:9/library/nothing.*the network") as caught:
        list(ollama.pull(address, "127.0.0.1:9/library/nothing"))
    assert "refused" in caught.value.detail


def test_a_models_own_window_setting_is_read(address: str) -> None:
    made = {"model": "smol-4k", "from": "smol", "parameters": {"num_ctx": 4096}, "stream": False}
    assert httpx.post(f"{address}/api/create", json=made, timeout=60).json()["status"] == "success"
    try:
        assert ollama.show(address, "smol-4k").set_window == 4096
    finally:
        subprocess.run([str(OLLAMA), "rm", "smol-4k"], check=True, capture_output=True, timeout=60)


def test_a_request_larger_than_the_default_window_is_answered() -> None:
    """We request a larger window: with its default, this Ollama would silently drop the beginning."""
    long: Message = {"role": "user", "type": "message", "content": "one two three " * 850}
    try:
        chunks = ask("smol", long)
    except ModelOverloadedError as error:
        pytest.skip(f"this Ollama cannot run a model here: {error.detail}")
    usage = chunks[-1]["content"]
    assert not usage["estimated"]
    assert usage["input_tokens"] > 2500
    assert 0 < usage["output_tokens"] <= 8
