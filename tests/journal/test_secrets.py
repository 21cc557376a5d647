"""Secrets in the output of code are never recorded, not even in part."""

from __future__ import annotations

import json
import random
import string
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversation import Chatting
from interpreter import BaseLanguage, OpenInterpreter
from interpreter.app import conversations
from interpreter.llm.usage import Usage
from interpreter.messages import Chunk, Fold, Framer, Message
from interpreter.session.journal import SavedSession
from interpreter.session.journal.file import Facts, JournalFile, JournalWriter, Secrets, redact_message
from model_server import text, tool_call


def fake_key(prefix: str, length: int) -> str:
    return prefix + "".join(random.Random(prefix).choices(string.ascii_letters + string.digits, k=length)) + "7"


TOKEN, KEY = fake_key("ghp_", 36), fake_key("sk-proj-", 60)
PEM = (
    "-----BEGIN PRIVATE KEY-----\n" + "\n".join(fake_key(str(n), 63) for n in range(9)) + "\n-----END PRIVATE KEY-----"
)
PASSWORD = "correct-horse-battery"
NOTE = "[redacted: GitHub token]"


def everything_under(folder: Path) -> str:
    return "\n".join(path.read_text("utf-8", "replace") for path in sorted(folder.rglob("*")) if path.is_file())


def events(interpreter: OpenInterpreter) -> list[str]:
    assert interpreter.journal.path is not None
    lines = (interpreter.journal.path / "journal.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["event"] for line in lines]


def printing(*pieces: str) -> type[BaseLanguage]:
    """A language that prints these pieces for any code."""

    class Printing(BaseLanguage):
        name = "echo"

        def run(self, code: str) -> Iterator[Chunk]:
            for piece in pieces:
                yield {"type": "console", "format": "output", "content": piece}

    return Printing


def test_a_secret_stays_in_memory_but_is_not_recorded(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "x"), text("Done."), text("Yes."), auto_run=True)
    interpreter.computer.languages = [printing(f"token: {TOKEN}\n", "fine\n")]
    interpreter.chat("go", display=False)
    interpreter.chat("and?", display=False)
    assert interpreter.journal.path is not None
    assert TOKEN not in everything_under(interpreter.journal.path)
    assert "messages_replaced" not in events(
        interpreter
    )  # the redacted form doesn't count as a change of the conversation
    session = SavedSession.open(interpreter.journal.path)
    outputs = [message["content"] for message in session.messages if message["type"] == "console"]
    assert outputs == [f"token: {NOTE}\nfine\n"]
    assert [TOKEN in str(message["content"]) for message in interpreter.messages].count(True) == 1
    assert len(session.messages) == len(interpreter.messages) and interpreter.journal.is_in_step


def test_a_resumed_session_with_redacted_output_continues(chatting: Chatting) -> None:
    interpreter, first = chatting(tool_call("echo", "x"), text("Done."), text("More."), auto_run=True)
    interpreter.computer.languages = [printing(f"{TOKEN}\n")]
    interpreter.chat("go", display=False)
    interpreter.chat("more", display=False)
    name = interpreter.journal.id
    interpreter.journal.close()
    again, second = chatting(text("Again."), text("Still."), auto_run=True)
    again.journal.resume(str(name))
    again.chat("and?", display=False)
    again.chat("so?", display=False)
    assert "messages_replaced" not in events(again)
    assert again.journal.path is not None
    assert SavedSession.open(again.journal.path).messages == again.messages
    sent = first.requests[-1].messages
    assert second.requests[0].messages[: len(sent)] == sent  # the model got the same text in both runs


def test_redaction_can_be_turned_off(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("echo", "x"), text("Done."), auto_run=True, redact_journal=False)
    interpreter.computer.languages = [printing(f"{TOKEN}\n")]
    interpreter.chat("go", display=False)
    assert interpreter.journal.path is not None
    assert SavedSession.open(interpreter.journal.path).messages == interpreter.messages


def test_environment_values_are_redacted_in_the_originals_file_too(
    chatting: Chatting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", PASSWORD)
    interpreter, _ = chatting(tool_call("echo", "x"), text("Done."), auto_run=True)
    interpreter.conversation_filename = "talk.json"
    interpreter.computer.languages = [printing(f"it is {PASSWORD[:9]}", f"{PASSWORD[9:]}!\n")]
    interpreter.chat("go", display=False)
    assert PASSWORD not in everything_under(interpreter.journal.root)
    saved = json.loads((interpreter.journal.root / "talk.json").read_text())
    assert "it is [redacted: value of DB_PASSWORD]!\n" in [message["content"] for message in saved]


def test_a_saved_message_file_is_redacted_unless_turned_off(chatting: Chatting, tmp_path: Path) -> None:
    interpreter, _ = chatting(tool_call("echo", "x"), text("Done."), auto_run=True)
    interpreter.computer.languages = [printing(f"it is {TOKEN}\n")]
    interpreter.chat("go", display=False)
    for redacts in (True, False):
        interpreter.redact_journal = redacts
        saved = Path(conversations.save_messages(interpreter, str(tmp_path / "talk"))).read_text()
        assert "it is" in saved and (TOKEN in saved) is not redacts
    assert TOKEN in str(interpreter.messages)


def test_secrets_in_long_output_are_redacted(chatting: Chatting) -> None:
    code = f"for n in range(2000): print('line', n)\nprint({TOKEN!r})\nfor n in range(2000): print('line', n)"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), auto_run=True)
    interpreter.chat("go", display=False)
    assert interpreter.journal.path is not None
    session = SavedSession.open(interpreter.journal.path)
    whole = session.blocks[0].whole
    assert whole is not None
    printed = "".join(f"line {n}\n" for n in range(2000))
    assert session.blobs.get(whole) == f"{printed}{NOTE}\n{printed}"


def test_user_messages_are_not_redacted(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("I see."))
    interpreter.chat(f"my token is {TOKEN}", display=False)
    assert interpreter.journal.path is not None
    assert SavedSession.open(interpreter.journal.path).messages == interpreter.messages


# -- while streaming -----------------------------------------------------------------------------------------------


class Stream:
    """A writer that writes at every chunk, with a fake clock."""

    def __init__(self, folder: Path, secrets: Secrets | None = None, max_output: int = 100_000) -> None:
        self.messages: list[Message] = []
        self.now = 0.0
        self.folder = folder
        secrets = secrets or (lambda: {"value of DB_PASSWORD": PASSWORD})
        journal, clock = JournalFile(folder), (lambda: self.now)
        self.writer = JournalWriter(journal, folder, Facts(), lambda: self.messages, Usage, clock, secrets, clock)
        self.writer.write("session", id="x", title="t")
        self.writer.fold = self._fold = Fold(lambda: self.messages, max_output)
        self._framer = Framer()

    def prints(self, piece: str) -> None:
        self.now += 1.0
        self._take(self._framer.frame({"role": "computer", "type": "console", "format": "output", "content": piece}))

    def ends(self) -> None:
        self._take(self._framer.close())

    def _take(self, chunks: Iterator[Chunk]) -> None:
        for chunk in chunks:
            self._fold.add(chunk)
            self.writer.add(chunk)

    @property
    def file(self) -> str:
        return everything_under(self.folder)


@contextmanager
def open_stream(**more: Any) -> Iterator[Stream]:
    with tempfile.TemporaryDirectory() as folder:
        stream = Stream(Path(folder), **more)
        yield stream
        stream.writer.close()


SECRET = st.sampled_from([TOKEN, KEY, PASSWORD, PEM])
WORDS = st.text(alphabet="ab \n'=", max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(WORDS, SECRET), min_size=1, max_size=3), WORDS, st.data())
def test_no_part_of_a_streamed_secret_is_written(told: list[tuple[str, str]], last: str, data: st.DataObject) -> None:
    whole = "".join(f"{before} {secret} " for before, secret in told) + last
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole)), max_size=25)))
    with open_stream() as stream:
        for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            stream.prints(whole[start:end])
        stream.ends()
        for _, secret in told:
            inside = secret.split("\n")[1] if "\n" in secret else secret
            assert not any(inside[: len(inside) // 2] in line for line in stream.file.split("\n"))
        [message] = SavedSession.open(stream.folder).messages or [{"content": ""}]
        printed: Message = {"role": "computer", "type": "console", "content": stream.messages[0]["content"]}
        form, held = redact_message(printed, lambda: {"value of DB_PASSWORD": PASSWORD})
        assert message["content"] == form["content"] and not held


def test_an_incomplete_word_is_held_back() -> None:
    with open_stream() as stream:
        stream.prints("one two")
        assert SavedSession.open(stream.folder).messages[0]["content"] == "one "
        stream.prints("fold three\n")
        assert SavedSession.open(stream.folder).messages[0]["content"] == "one twofold three\n"
        stream.prints("end")
        stream.writer.sync()
        assert SavedSession.open(stream.folder).messages == stream.messages
        stream.messages.append({"role": "user", "type": "message", "content": "next"})
        stream.writer.sync()
        assert SavedSession.open(stream.folder).messages == stream.messages


def test_scanning_for_secrets_takes_little_time() -> None:
    """The longer the output, the longer a scan takes, and the longer until the next one."""
    looked = []

    def secrets() -> dict[str, str]:
        looked.append(len(stream.messages[0]["content"]))
        stream.now += looked[-1] / 100_000
        return {}

    with open_stream(secrets=secrets, max_output=10_000_000) as stream:
        for _ in range(1000):
            stream.prints("x" * 999 + "\n")
        began = stream.now
        stream.ends()
        assert SavedSession.open(stream.folder).messages == stream.messages
        assert sum(looked[:-1]) / 100_000 < began * 0.1
