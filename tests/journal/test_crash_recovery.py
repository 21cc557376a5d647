"""`kill -9` at any moment loses at most the last moment's output, and the session can be resumed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interpreter.messages import Message
from interpreter.session.journal import SavedSession, listed
from interpreter.session.journal.file import WRITE_INTERVAL
from journal.endless_conversation import endless

Report = list[float]


def kills(root: Path, count: int) -> Iterator[tuple[Path, list[Report]]]:
    """Killed sessions, with the chunks they had received."""
    moments = random.Random(count)
    program = [sys.executable, str(Path(__file__).parent / "endless_conversation.py"), str(root)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdin is not None and runner.stdout is not None
        for number in range(count):
            runner.stdin.write(f"{number} {number} {moments.uniform(0, 0.3):.4f}\n")
            runner.stdin.flush()
            yield root / str(number), [json.loads(line) for line in iter(runner.stdout.readline, "\n")]
        runner.stdin.close()
        assert runner.wait(timeout=60) == 0


def recorded_session(root: Path) -> SavedSession | None:
    rows = listed(root)
    assert len(rows) <= 1
    return SavedSession.open(rows[0].path) if rows else None


def assert_is_prefix(messages: list[Message], whole: list[Message]) -> None:
    """All messages are unchanged; the last one may be incomplete."""
    assert messages[:-1] == whole[: len(messages) - 1]
    if messages:
        last, meant = messages[-1], whole[len(messages) - 1]
        assert meant["content"].startswith(last["content"])
        assert {**last, "content": ""} == {**meant, "content": ""}


def check(root: Path, reports: list[Report], whole: list[Message]) -> None:
    session = recorded_session(root)
    assert reports and session is not None
    assert_is_prefix(session.messages, whole)
    last_asked = reports[-1][0]
    safe = max((report[2] for report in reports if report[1] < last_asked - WRITE_INTERVAL), default=0)
    kept = sum(len(message["content"]) for message in session.messages if message["role"] != "user")
    assert kept >= safe
    messages = list(session.messages)
    again = endless(str(root))
    again.journal.resume(session.id)
    assert again.messages == messages
    again.chat("go on", display=False)
    assert SavedSession.open(session.path).messages == again.messages
    assert again.messages[: len(messages)] == messages
    again.journal.close()


@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.full)])
def test_sessions_killed_at_random_moments_can_be_resumed(count: int, tmp_path: Path) -> None:
    talker = endless(None)
    lost = 0
    for root, reports in kills(tmp_path, count):
        session = recorded_session(root)
        assert session is not None
        while len(talker.messages) < len(session.messages):
            talker.chat(f"message {sum(m['role'] == 'user' for m in talker.messages) + 1}", display=False)
        kept = sum(len(message["content"]) for message in session.messages if message["role"] != "user")
        lost = max(lost, int(reports[-1][2]) - kept)
        check(root, reports, talker.messages)
    print(f"{count} kills; the most that was lost: {lost} characters")
