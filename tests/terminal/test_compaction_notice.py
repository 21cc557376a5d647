"""The user sees that older messages are no longer sent."""

from __future__ import annotations

import io
from typing import Any

import pytest

from interpreter.frontends.terminal.render.notes import status_note
from interpreter.frontends.terminal.render.plain import PlainDisplay
from interpreter.messages import Chunk

COMPACTED: dict[str, Any] = {"messages": 12, "images": 1, "tokens_before": 9000, "tokens_after": 3000, "window": 8000}


@pytest.mark.parametrize(
    ("messages", "images", "words"),
    [(12, 1, "12 older messages and 1 older image"), (1, 0, "1 older message"), (0, 2, "2 older images")],
)
def test_the_notice_counts_messages_and_images(messages: int, images: int, words: str) -> None:
    note = status_note("compacted", {**COMPACTED, "messages": messages, "images": images})
    assert note.startswith(f"The conversation is long, so the model gets a short summary of {words}.")


def test_plain_text_shows_the_notice_too() -> None:
    out = io.StringIO()
    chunk: Chunk = {"role": "computer", "type": "status", "format": "compacted", "content": COMPACTED}
    PlainDisplay(out.write).show(chunk)
    assert "12 older messages" in out.getvalue()
