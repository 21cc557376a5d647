"""The built-in engine with a real model: it serves only us, ends with us, and restarts after it dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from interpreter import OpenInterpreter
from interpreter.errors import ContextTooLongError, EngineError
from interpreter.local_models import engine
from interpreter.local_models.weights import download, named
from interpreter.messages import Message
from real_models import MODELS, weights
from scripted_llm import SYSTEM

pytestmark = [pytest.mark.real_model, pytest.mark.usefixtures("no_strays")]

SAY_HI: Message = {"role": "user", "type": "message", "content": "Say hello."}


@pytest.fixture
def small() -> Iterator[Path]:
    """The smallest model: its answers make no sense, which is enough here."""
    yield weights("smollm2-135m")
    engine.stop_all()


def asking(file: Path, window: int = 1024) -> OpenInterpreter:
    interpreter = OpenInterpreter()
    interpreter.llm.model = f"builtin/{file}"
    interpreter.llm.context_window = window
    interpreter.llm.max_tokens = 16
    interpreter.llm.model_profile, interpreter.llm.execution_instructions = "full", ""  # no code is needed here
    return interpreter


def test_the_engine_answers_and_reports_usage(small: Path) -> None:
    interpreter = asking(small)
    chunks = list(interpreter.llm.reply([SYSTEM, SAY_HI]))
    loading = [chunk["content"]["done"] for chunk in chunks if chunk.get("format") == "loading"]
    assert loading == [False, True]
    assert "".join(chunk["content"] for chunk in chunks if chunk["type"] in ("message", "code")).strip()
    usage = chunks[-1]["content"]
    assert not usage["estimated"]
    assert usage["input_tokens"] > 5
    assert 0 < usage["output_tokens"] <= 16
    assert not any(chunk.get("format") == "loading" for chunk in interpreter.llm.reply([SYSTEM, SAY_HI]))


def test_one_engine_is_shared_and_requires_its_key(small: Path) -> None:
    first = engine.running(small, 1024)
    assert engine.running(small, 1024) is first
    assert engine.loaded() is first
    assert first.base_url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{first.base_url}/models").status_code == 401
    listed = httpx.get(f"{first.base_url}/models", headers={"Authorization": f"Bearer {first.key}"}).json()
    assert listed["data"][0]["meta"]["n_ctx"] == 1024
    command_lines = " ".join(word for p in psutil.Process(first.child.pid).children() for word in p.cmdline())
    assert first.key not in command_lines, "every user of this machine can read a command line"
    assert psutil.Process(first.child.pid).children()[0].environ()["OMP_WAIT_POLICY"] == "passive"


def test_another_window_size_replaces_the_engine(small: Path) -> None:
    first = engine.running(small, 1024)
    second = engine.running(small, 2048)
    assert second is not first
    assert not first.child.alive


def test_a_conversation_that_is_too_long_raises_a_typed_error(small: Path) -> None:
    long: Message = {"role": "user", "type": "message", "content": "word " * 3000}
    with pytest.raises(ContextTooLongError):
        list(asking(small).llm.reply([SYSTEM, long]))


def test_a_dead_engine_restarts_with_the_next_request(small: Path) -> None:
    interpreter = asking(small)
    list(interpreter.llm.reply([SYSTEM, SAY_HI]))
    served = engine.loaded()
    assert served is not None
    for process in psutil.Process(served.child.pid).children(recursive=True):
        process.kill()
        process.wait(60)
    assert not served.child.alive
    assert list(interpreter.llm.reply([SYSTEM, SAY_HI]))


def test_cancelling_while_the_model_loads_takes_effect_at_once(small: Path) -> None:
    called = threading.Event()

    def cancel_at_once(waiting: object) -> None:
        called.set()
        waiting.shutdown(2)  # type: ignore[attr-defined]

    with pytest.raises(EngineError):
        engine.start(small, 1024, cancel_at_once)
    assert called.is_set()


def test_a_cancelled_reply_leaves_the_engine_running(small: Path) -> None:
    interpreter = asking(small)
    interpreter.llm.max_tokens = 400
    for chunk in interpreter.llm.reply([SYSTEM, SAY_HI]):
        if chunk["type"] == "message":
            interpreter.llm.cancel()
    served = engine.loaded()
    assert served is not None
    assert served.child.alive
    assert list(interpreter.llm.reply([SYSTEM, SAY_HI]))
    assert engine.loaded() is served


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_no_engine_outlives_the_program(small: Path, signal_number: int) -> None:
    code = (
        "import sys, threading; from pathlib import Path; from interpreter.local_models import engine;"
        "served = engine.running(Path(sys.argv[1]), 512);"
        "print(served.child.pid, flush=True); threading.Event().wait()"
    )
    argv = [sys.executable, "-c", code, str(small)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        supervisor = psutil.Process(int(host.stdout.readline()))
        processes = [supervisor, *supervisor.children(recursive=True)]
        assert len(processes) == 2
        os.kill(host.pid, signal_number)
    _, alive = psutil.wait_procs(processes, timeout=60)
    assert not alive


def test_a_question_in_english_becomes_code_that_runs(tmp_path: Path) -> None:
    """End to end: weights in the models folder, the model by its name, a block that runs, its output."""
    from interpreter.local_models.weights import models_folder

    row = named("qwen2.5-coder-0.5b")
    assert row is not None
    models_folder().mkdir(parents=True)
    (models_folder() / row.file).symlink_to(weights(row.name))
    interpreter = OpenInterpreter(auto_run=True, max_blocks=1)
    interpreter.llm.model = f"builtin/{row.name}"
    interpreter.llm.max_tokens = 200
    interpreter.system_message = "You write code that is run on this computer."
    sentence = "{content}\n\nReply with one short Python code block that does this and prints the result."
    interpreter.user_message_template = sentence
    try:
        outputs: list[str] = []
        for chunk in interpreter.chat("What is 12345 * 6789?", display=False, stream=True):
            if chunk.get("format") == "output" and chunk.get("content"):
                outputs.append(chunk["content"])
                break
        assert "83810205" in "".join(outputs)
    finally:
        interpreter.computer.terminate()
        engine.stop_all()


def test_the_mirror_has_the_same_file_as_the_hub(tmp_path: Path) -> None:
    """The cached file came from the mirror's packages; its checksum is the one pinned for the hub."""
    import hashlib

    file = weights("qwen2.5-coder-0.5b")
    row = named("qwen2.5-coder-0.5b")
    assert row is not None
    assert row.sha256 == MODELS[row.name].sha256
    with open(file, "rb") as content:
        assert hashlib.file_digest(content, "sha256").hexdigest() == row.sha256
    shutil.copyfile(file, tmp_path / row.file)
    assert list(download(row, tmp_path)) == []
