"""Safe mode in a session: what is scanned, when it asks, and what the model sees."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting
from interpreter import OpenInterpreter
from interpreter.messages import Chunk
from interpreter.policy.review import SCAN
from interpreter.session.journal import SavedSession
from model_server import ModelServer, text, tool_call

pytestmark = pytest.mark.usefixtures("no_strays")
DANGEROUS = "import subprocess\nword = 'hi'\n_ = subprocess.run('echo ' + word, shell=True)"
CLEAN = "print('clean' + ' code')"
PROGRAM = [sys.executable, "-c", "import sys; from interpreter.frontends.cli import main; sys.exit(main())"]


def turn(interpreter: OpenInterpreter, decide: Any = None) -> list[Chunk]:
    chunks = []
    for chunk in interpreter.chat("go", display=False, stream=True):
        chunks.append(chunk)
        if chunk["type"] == "confirmation" and decide:
            decide(interpreter.pending)
    return chunks


def chunks_of(chunks: list[Chunk], kind: str, form: str | None = None) -> list[Chunk]:
    return [chunk for chunk in chunks if chunk["type"] == kind and form in (None, chunk.get("format"))]


def outputs(interpreter: OpenInterpreter) -> str:
    return "".join(str(message["content"]) for message in interpreter.messages if message["type"] == "console")


def test_safe_mode_off_scans_nothing(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", DANGEROUS), text("Done."), auto_run=True)
    chunks = turn(interpreter)
    assert not chunks_of(chunks, "confirmation") and not chunks_of(chunks, "status", "scan")
    assert "scanner" not in vars(interpreter)


def test_auto_mode_runs_clean_code_without_asking(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", CLEAN), text("Done."), auto_run=True, safe_mode="auto")
    chunks = turn(interpreter)
    [scan] = chunks_of(chunks, "status", "scan")
    assert "bandit" in scan["content"]["tools"] and scan["content"]["findings"] == []
    assert not chunks_of(chunks, "confirmation") and outputs(interpreter) == "clean code\n"


def test_dangerous_code_asks_despite_auto_run(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", DANGEROUS), text("Done."), auto_run=True, safe_mode="auto")
    [question] = chunks_of(turn(interpreter, lambda pending: pending.approve()), "confirmation")
    [finding] = [found for found in question["findings"] if found["tool"] == "bandit"]
    assert (finding["rule"], finding["line"], finding["severity"]) == ("B602", 3, "high")
    assert outputs(interpreter) == "hi\n"


def test_an_unanswered_question_does_not_approve_dangerous_code(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", DANGEROUS), text("Done."), auto_run=True, safe_mode="auto")
    turn(interpreter)
    assert outputs(interpreter).startswith("Not run: this code needs approval")


def test_the_approval_question_includes_the_findings(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", "eval('1')"), text("Done."), safe_mode="auto")
    [question] = chunks_of(turn(interpreter), "confirmation")
    assert [found["rule"] for found in question["findings"] if found["tool"] == "bandit"] == ["B307"]
    plain, _ = chatting(tool_call("python", "eval('1')"), text("Done."))
    [question] = chunks_of(turn(plain), "confirmation")
    assert "findings" not in question


def test_declining_a_block_sends_its_findings_to_the_model(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("python", DANGEROUS), text("Sorry."), auto_run=True, safe_mode="auto")
    turn(interpreter, lambda pending: pending.decline("not like this"))
    said = [str(message["content"]) for message in server.requests[-1].messages]
    [found] = [words for words in said if "A scan of this code found" in words]
    assert "line 3, high: subprocess call with shell=True" in found and "B602" in found
    assert said.index(found) < len(said) - 1 and said[-1].endswith("not like this")


def test_unattended_dangerous_code_is_denied_and_journaled(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("python", DANGEROUS), text("Done."), auto_run=True, safe_mode="auto")
    interpreter.chat("go", display=False)
    assert outputs(interpreter).startswith("Not run: ")
    assert "B602" in outputs(interpreter)
    assert len(server.requests) == 1
    assert interpreter.journal.path is not None
    [block] = SavedSession.open(interpreter.journal.path).blocks
    assert (block.decision, block.by, block.ended) == ("denied", "scan", None)
    entries = [json.loads(line) for line in (interpreter.journal.path / "journal.jsonl").read_text().splitlines()]
    [scan] = [entry for entry in entries if entry["event"] == "scan"]
    assert scan["block"] == 1 and scan["findings"][0]["rule"] == "B602"


def test_ask_mode_scans_on_request(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", DANGEROUS), text("Done."), auto_run=True, safe_mode="ask")
    found: list[str] = []

    def decide(pending: Any) -> None:
        assert SCAN in pending.question.choices
        found.extend(one.rule for one in pending.scan().findings)
        pending.decline()

    chunks = turn(interpreter, decide)
    assert "B602" in found and not chunks_of(chunks, "status", "scan")
    assert "B602" in str(interpreter.messages[-1]["content"])


# -- headless -------------------------------------------------------------------------------------------------------


def program(server: ModelServer, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    where = ["--api_base", server.base_url, "--api_key", "key"]
    command = [*PROGRAM, *where, *arguments, "go"]
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, cwd=folder, check=False
    )


def test_headless_runs_clean_code_and_denies_dangerous_code(tmp_path: Path) -> None:
    flags = ("-y", "--safe_mode", "auto", "--plain")
    with ModelServer(
        [tool_call("python", CLEAN), text("Done."), tool_call("python", DANGEROUS), text("Never.")]
    ) as server:
        ran = program(server, tmp_path, *flags)
        assert ran.returncode == 0 and "clean code" in ran.stdout, ran.stderr
        assert "nothing found" in ran.stdout
        denied = program(server, tmp_path, *flags)
    assert denied.returncode == 4
    assert "line 3, high" in denied.stdout and "\nhi\n" not in denied.stdout
    assert "even with -y" in denied.stderr


@pytest.mark.full
def test_headless_ask_mode_requires_approval(tmp_path: Path) -> None:
    with ModelServer([tool_call("python", CLEAN), text("Never.")]) as server:
        asked = program(server, tmp_path, "-y", "--safe_mode", "ask", "--plain")
    assert asked.returncode == 4 and "\nclean code\n" not in asked.stdout
    assert "safe_mode requires approval" in asked.stderr


@pytest.mark.full
def test_headless_json_events_include_findings_and_decision(tmp_path: Path) -> None:
    with ModelServer([tool_call("python", DANGEROUS), text("Never.")]) as server:
        denied = program(server, tmp_path, "-y", "--safe_mode", "auto", "--json")
    events = [json.loads(line) for line in denied.stdout.splitlines()]
    [question] = [event for event in events if event["type"] == "confirmation"]
    assert question["findings"][0]["severity"] == "high"
    [decision] = [event for event in events if event["type"] == "decision"]
    assert (decision["format"], decision["content"]["by"]) == ("denied", "scan")
    assert denied.returncode == 4 and events[-1]["content"]["exit_code"] == 4
