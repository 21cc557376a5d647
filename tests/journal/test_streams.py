"""A stream of chunks, cut off at any moment, leaves a journal with everything until then."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.llm.usage import Usage
from interpreter.messages import Chunk, Fold, Framer, Message
from interpreter.session.journal import SavedSession
from interpreter.session.journal.file import Facts, JournalFile, JournalWriter

MAX_OUTPUT = 60
TEXT = st.text(alphabet=st.sampled_from("ab c\n\r\b\x1b[Ké\ud800𝄞"), min_size=1, max_size=30)
PIECES = st.one_of(
    st.builds(lambda t: {"role": "assistant", "type": "message", "content": t}, TEXT),
    st.builds(lambda t: {"role": "assistant", "type": "code", "format": "python", "content": t}, TEXT),
    st.just({"role": "assistant", "type": "code", "format": "python", "end": True}),
    st.builds(lambda t: {"role": "computer", "type": "console", "format": "output", "content": t}, TEXT),
    st.builds(lambda t: {"role": "computer", "type": "console", "format": "output", "content": t * 9}, TEXT),
    st.builds(
        lambda t: {"role": "computer", "type": "console", "format": "output", "content": t, "mime": "text/latex"}, TEXT
    ),
    st.just({"role": "computer", "type": "image", "format": "base64.png", "content": "QUJD" * 3000}),
    st.builds(
        lambda ended, code: {
            "role": "computer",
            "type": "console",
            "format": "active_line",
            "content": None,
            "ended": ended,
            "exit_code": code,
        },
        st.sampled_from(["done", "error", "died"]),
        st.sampled_from([0, 1, None]),
    ),
    st.just({"role": "computer", "type": "confirmation", "format": "execution", "content": {}}),
    st.just({"role": "assistant", "type": "reasoning", "content": "hm"}),
)


class Conversation:
    """Messages, and a writer with a fake clock."""

    def __init__(self, folder: Path) -> None:
        self.messages: list[Message] = []
        self.now = 0.0
        self.folder = folder
        messages, clock = (lambda: self.messages), (lambda: self.now)
        self.writer = JournalWriter(JournalFile(folder), folder, Facts(), messages, Usage, clock, dict)
        self.writer.write("session", id="x", title="t")
        self.fold = Fold(lambda: self.messages, MAX_OUTPUT)
        self.writer.fold = self.fold
        self._framer = Framer()

    def take(self, piece: Any) -> None:
        self._take(self._framer.frame(dict(piece)))  # type: ignore[arg-type]

    def end(self) -> None:
        self._take(self._framer.close())

    def _take(self, chunks: Iterator[Chunk]) -> None:
        for chunk in chunks:
            self.fold.add(chunk)
            self.writer.add(chunk)

    @property
    def recorded(self) -> list[Message]:
        return SavedSession.open(self.folder).messages


@contextmanager
def conversation() -> Iterator[Conversation]:
    with tempfile.TemporaryDirectory() as folder:
        talk = Conversation(Path(folder))
        yield talk
        talk.writer.close()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(PIECES, st.sampled_from([0.0, 0.01, 0.06, 1.0])), max_size=40))
def test_recorded_messages_equal_folded_messages(stream: list[tuple[Any, float]]) -> None:
    with conversation() as talk:
        for piece, seconds in stream:
            talk.take(piece)
            talk.now += seconds
        talk.end()
        assert talk.recorded == talk.messages


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(TEXT, st.sampled_from([0.0, 0.02, 0.05, 0.2])), min_size=1, max_size=30))
def test_only_the_last_moments_text_is_unrecorded(stream: list[tuple[str, float]]) -> None:
    with conversation() as talk:
        arrived: list[tuple[float, int]] = []
        said = 0
        for piece, seconds in stream:
            talk.take({"role": "assistant", "type": "message", "content": piece})
            said += len(piece)
            arrived.append((talk.now, said))
            safe = max((count for at, count in arrived if at <= talk.now - 0.05), default=0)
            assert len(talk.recorded[-1]["content"]) >= safe
            talk.now += seconds


Change = Callable[[list[Message]], None]


def _say(number: int) -> Message:
    return {"role": "user", "type": "message", "content": f"message {number}"}


CHANGES: dict[str, Callable[[list[Message], int], Any]] = {
    "append": lambda messages, at: messages.append(_say(at)),
    "insert": lambda messages, at: messages.insert(at, _say(at)),
    "cut": lambda messages, at: messages.__delitem__(slice(at, None)),
    "drop": lambda messages, at: messages.__delitem__(slice(at, at + 2)),
    "edit": lambda messages, at: messages[at : at + 1] and messages[at].update(content=["parts", {"at": at}]),
    "edit inside": lambda messages, at: [m["content"].append(at) for m in messages if isinstance(m["content"], list)],
    "field": lambda messages, at: messages[at : at + 1] and messages[at].update(recipient="user"),
    "unset": lambda messages, at: messages[at : at + 1] and messages[at].pop("recipient", None),
}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.tuples(st.sampled_from(sorted(CHANGES)), st.integers(0, 6)), max_size=4), max_size=8))
def test_any_change_to_messages_is_recorded(turns: list[list[tuple[str, int]]]) -> None:
    with conversation() as talk:
        for turn in turns:
            for name, at in turn:
                CHANGES[name](talk.messages, at)
            talk.writer.sync()
            assert talk.recorded == talk.messages


def test_a_duplicated_entry_counts_once(tmp_path: Path) -> None:
    talk = Conversation(tmp_path)
    for piece in ({"role": "assistant", "type": "message", "content": "one"},):
        talk.take(piece)
    talk.now = 1.0
    talk.take({"role": "assistant", "type": "message", "content": " two"})
    talk.end()
    path = tmp_path / "journal.jsonl"
    header, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + b"".join(line * 2 for line in rest))
    assert talk.recorded == talk.messages
    expected = copy.deepcopy(talk.messages)
    talk.messages[0]["content"] = "three"
    talk.writer.sync()
    last = path.read_bytes().splitlines(keepends=True)[-1]
    path.write_bytes(path.read_bytes() + last)
    assert talk.recorded == talk.messages != expected
    talk.writer.close()
