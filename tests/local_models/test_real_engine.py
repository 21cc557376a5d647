"""The built-in engine with a real model: it serves us alone, ends with us, and comes back when it dies."""

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

from asking import SYSTEM
from interpreter import OpenInterpreter
from interpreter.errors import ContextTooLongError, EngineError
from interpreter.llm.local import engine
from interpreter.llm.local.weights import download, named
from interpreter.messages import Message
from real_models import MODELS, weights

pytestmark = [pytest.mark.real_model, pytest.mark.usefixtures("no_strays")]

SAY_HI: Message = {"role": "user", "type": "message", "content": "Say hello."}


@pytest.fixture
def small() -> Iterator[Path]:
    """The smallest model: good for everything but sense."""
    yield weights("smollm2-135m")
    engine.stop_all()


def asking(file: Path, window: int = 1024) -> OpenInterpreter:
    interpreter = OpenInterpreter()
    interpreter.llm.model = f"builtin/{file}"
    interpreter.llm.context_window = window
    interpreter.llm.max_tokens = 16
    interpreter.llm.model_profile, interpreter.llm.execution_instructions = "full", ""  # nobody asks for code here
    return interpreter


def test_it_answers_and_counts(small: Path) -> None:
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


def test_one_engine_serves_all_who_ask_and_only_them(small: Path) -> None:
    first = engine.running(small, 1024)
    assert engine.running(small, 1024) is first
    assert engine.loaded() is first
    assert first.base_url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{first.base_url}/models").status_code == 401
    listed = httpx.get(f"{first.base_url}/models", headers={"Authorization": f"Bearer {first.key}"}).json()
    assert listed["data"][0]["meta"]["n_ctx"] == 1024
    everything = " ".join(word for p in psutil.Process(first.child.pid).children() for word in p.cmdline())
    assert first.key not in everything, "a key on a command line is a key for everybody on this machine"
    assert psutil.Process(first.child.pid).children()[0].environ()["OMP_WAIT_POLICY"] == "passive"


def test_another_window_is_another_engine_and_the_old_one_goes(small: Path) -> None:
    first = engine.running(small, 1024)
    second = engine.running(small, 2048)
    assert second is not first
    assert not first.child.alive


def test_a_conversation_that_is_too_long_is_told_by_its_kind(small: Path) -> None:
    long: Message = {"role": "user", "type": "message", "content": "word " * 3000}
    with pytest.raises(ContextTooLongError):
        list(asking(small).llm.reply([SYSTEM, long]))


def test_an_engine_that_died_comes_back_with_the_next_question(small: Path) -> None:
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
    told = threading.Event()

    def cancel_at_once(waiting: object) -> None:
        told.set()
        waiting.shutdown(2)  # type: ignore[attr-defined]

    with pytest.raises(EngineError):
        engine.start(small, 1024, cancel_at_once)
    assert told.is_set()


def test_a_cancelled_answer_leaves_the_engine_alone(small: Path) -> None:
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


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_engine_outlives_the_program(small: Path, how: int) -> None:
    code = (
        "import sys, threading; from pathlib import Path; from interpreter.llm.local import engine;"
        "served = engine.running(Path(sys.argv[1]), 512);"
        "print(served.child.pid, flush=True); threading.Event().wait()"
    )
    argv = [sys.executable, "-c", code, str(small)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        supervisor = psutil.Process(int(host.stdout.readline()))
        family = [supervisor, *supervisor.children(recursive=True)]
        assert len(family) == 2
        os.kill(host.pid, how)
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


def test_a_question_in_english_becomes_code_that_runs(tmp_path: Path) -> None:
    """The whole way: weights in the models folder, the model by its name, a block that runs, its output."""
    from interpreter.llm.local.weights import models_folder

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


def test_the_mirrors_in_the_list_are_the_file(tmp_path: Path) -> None:
    """The cached file came out of the mirror's packages; its sum is the one that is pinned for the hub."""
    import hashlib

    file = weights("qwen2.5-coder-0.5b")
    row = named("qwen2.5-coder-0.5b")
    assert row is not None
    assert row.sha256 == MODELS[row.name].sha256
    with open(file, "rb") as content:
        assert hashlib.file_digest(content, "sha256").hexdigest() == row.sha256
    shutil.copyfile(file, tmp_path / row.file)
    assert list(download(row, tmp_path)) == []
