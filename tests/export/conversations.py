"""Conversations to export: written by hand, or run in real sessions."""

from __future__ import annotations

import base64
import io
from typing import Any

from interpreter import OpenInterpreter
from interpreter.messages import Message
from interpreter.session.journal.reader import (
    Entry,
    RecordedBlock,
    Said,
)
from model_server import ModelServer, text, tool_call


def user(words: str) -> Said:
    return Said("user", words)


def model(words: str) -> Said:
    return Said("assistant", words)


def printed(words: str) -> Message:
    return {"role": "computer", "type": "console", "format": "output", "content": words}


def ran(code: str, *outputs: Message, language: str = "python", **more: Any) -> RecordedBlock:
    facts: dict[str, Any] = {"decision": "approved", "ended": "done", "exit_code": 0, **more}
    return RecordedBlock("1", language, code, outputs=outputs or (printed(""),), **facts)


def failed(code: str, language: str = "python") -> RecordedBlock:
    return ran(code, printed("Traceback ..."), language=language, ended="error", exit_code=1)


def declined(code: str, language: str = "python") -> RecordedBlock:
    return RecordedBlock("1", language, code, decision="declined")


def drawn(color: str = "red", size: tuple[int, int] = (4, 4)) -> Message:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", size, color).save(buffer, "PNG")
    content = base64.b64encode(buffer.getvalue()).decode()
    return {"role": "computer", "type": "image", "format": "base64.png", "content": content}


def run_conversation(folder: str, words: str, *blocks: tuple[str, str], **settings: Any) -> OpenInterpreter:
    """Run a conversation with these blocks in that folder."""
    replies: list[Any] = [tool_call(language, code) for language, code in blocks]
    with ModelServer(replies=[*replies, text("Done.")]) as server:
        interpreter = OpenInterpreter(auto_run=True, workspace=folder, **settings)
        interpreter.llm.api_base, interpreter.llm.api_key = server.base_url, "key"
        interpreter.chat(words, display=False)
    return interpreter


def blocks_of(entries: list[Entry]) -> list[RecordedBlock]:
    return [entry for entry in entries if isinstance(entry, RecordedBlock)]
