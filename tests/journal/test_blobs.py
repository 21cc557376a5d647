"""Large content is stored once, by its hash."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from conversation import Chatting
from interpreter.session.journal import SavedSession
from interpreter.session.journal.file import Blobs
from model_server import text, tool_call


def test_a_repeated_image_is_stored_once(chatting: Chatting) -> None:
    picture = base64.b64encode(os.urandom(40_000)).decode()
    interpreter, _ = chatting(text("I see."), text("Again."))
    image = {"role": "user", "type": "image", "format": "base64.png", "content": picture}
    interpreter.chat(image, display=False)
    interpreter.chat(dict(image), display=False)
    assert interpreter.journal.path is not None
    session = SavedSession.open(interpreter.journal.path)
    assert session.messages == interpreter.messages
    [stored] = (session.path / "blobs").iterdir()
    assert stored.read_bytes() == base64.b64decode(picture)
    assert (session.path / "journal.jsonl").stat().st_size < 10_000


def test_long_output_is_kept_in_full(chatting: Chatting) -> None:
    code = "for n in range(5000): print('line', n)"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), auto_run=True)
    interpreter.chat("go", display=False)
    assert interpreter.journal.path is not None
    session = SavedSession.open(interpreter.journal.path)
    assert session.messages == interpreter.messages
    whole = session.blocks[0].whole
    assert whole is not None
    assert session.blobs.get(whole) == "".join(f"line {n}\n" for n in range(5000))


def test_progress_output_does_not_fill_the_journal(chatting: Chatting) -> None:
    code = "for n in range(100_000): print(f'\\r{n}', end='')"
    interpreter, _ = chatting(tool_call("python", code), text("Done."), auto_run=True)
    interpreter.chat("go", display=False)
    assert interpreter.journal.path is not None
    session = SavedSession.open(interpreter.journal.path)
    assert session.messages == interpreter.messages
    assert (session.path / "journal.jsonl").stat().st_size < 100_000


def test_any_text_round_trips(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    odd = ["abcd" * 3000, "a b c d" * 2000, "QUJD" * 3000 + "=", "\ud800" * 9000, "é\r\n" * 5000, "QUJ=" * 3000]
    for content in odd:
        assert blobs.get(blobs.put(content)) == content


def test_a_missing_blob_leaves_the_rest_readable(chatting: Chatting) -> None:
    interpreter, _ = chatting(text("Long."))
    interpreter.chat("y" * 20_000, display=False)
    assert interpreter.journal.path is not None
    for blob in (interpreter.journal.path / "blobs").iterdir():
        blob.unlink()
    session = SavedSession.open(interpreter.journal.path)
    assert [message["content"] for message in session.messages] == ["[The journal's copy of this is missing.]", "Long."]
