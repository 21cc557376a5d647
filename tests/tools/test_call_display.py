"""Display of a tool call and its result, in the terminal and in exports."""

from __future__ import annotations

import io
import json
from typing import Any

from interpreter.export import ExportedConversation, without_secrets
from interpreter.export.documents import markdown, page
from interpreter.export.notebook import notebook
from interpreter.frontends.terminal.chat import chunks_of
from interpreter.frontends.terminal.render.display import TerminalDisplay, TerminalScreen
from interpreter.frontends.terminal.render.plain import PlainDisplay
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.messages import Chunk, Message
from interpreter.script.steps import steps_of
from interpreter.session.journal.reader import (
    RecordedToolCall,
    Said,
    entries_from_messages,
)
from terminal.emulator import EmulatedOutput, Emulator

CALL: Chunk = {"role": "assistant", "type": "tool_call", "format": "note", "call": "c"}
RESULT: Chunk = {"role": "computer", "type": "console", "format": "output", "content": "Kept.\n", "call": "c"}
OVER: Chunk = {"role": "computer", "type": "console", "format": "active_line", "content": None, "call": "c"}
STREAM: list[Chunk] = [
    {**CALL, "start": True},
    {**CALL, "content": '{"text": "Buy'},
    {**CALL, "content": ' milk"}'},
    {**CALL, "end": True},
    {"role": "computer", "type": "console", "start": True, "call": "c"},
    RESULT,
    OVER,
    {"role": "computer", "type": "console", "end": True, "call": "c"},
]
MESSAGES: list[Message] = [
    {"role": "user", "type": "message", "content": "Note it"},
    {"role": "assistant", "type": "tool_call", "format": "note", "content": '{"text": "Buy milk"}', "call": "c"},
    {"role": "computer", "type": "console", "format": "output", "content": "Kept.\n", "call": "c"},
    {"role": "assistant", "type": "message", "content": "Done."},
]
SHOWN = 'note(text="Buy milk")'


def on_screen(chunks: list[Chunk]) -> list[str]:
    emulator = Emulator(80, 24)
    display = TerminalDisplay(TerminalScreen(EmulatedOutput(emulator).write, emulator.size), Theme())
    for chunk in chunks:
        display.show(chunk)
    display.finish()
    return [row for row in emulator.everything if row.strip()]


def test_a_call_is_shown_in_the_terminal_live_and_replayed() -> None:
    assert on_screen(STREAM) == [SHOWN, "Kept."]
    again = [chunk for message in MESSAGES[1:3] for chunk in chunks_of(message, is_last=True)]
    assert on_screen(again) == [SHOWN, "Kept."]


def test_a_call_is_shown_in_plain_text() -> None:
    out = io.StringIO()
    display = PlainDisplay(out.write, begun=False)
    for chunk in STREAM:
        display.show(chunk)
    display.finish()
    assert out.getvalue().split("\n") == [SHOWN, "", "Kept.", ""]


def test_a_call_is_not_a_block() -> None:
    entries = entries_from_messages(MESSAGES)
    assert [type(entry) for entry in entries] == [Said, RecordedToolCall, Said]
    assert str(entries[1]) == SHOWN
    assert steps_of(entries).steps == []


def test_a_call_is_shown_in_exports() -> None:
    entries = entries_from_messages(MESSAGES)
    document = markdown(ExportedConversation(entries, "Title")).text
    assert document.index(f"```\n{SHOWN}\n```") < document.index("```text\nKept.\n```")
    cells: list[dict[str, Any]] = json.loads(notebook(ExportedConversation(entries, "Title")).text)["cells"]
    assert {cell["cell_type"] for cell in cells} == {"markdown"}
    assert SHOWN in "".join(cells[2]["source"]) and "Kept." in "".join(cells[2]["source"])
    assert "note(text=&quot;Buy milk&quot;)" in page(ExportedConversation(entries, "Title")).text


def test_secrets_in_calls_and_results_are_redacted() -> None:
    key = "sk-" + "aB3dE5gH7jK9" * 4
    secret: list[Message] = [{**MESSAGES[1], "content": json.dumps({"text": key})}, {**MESSAGES[2], "content": key}]
    text = markdown(
        ExportedConversation(without_secrets(entries_from_messages(secret), {"API key": key}), "Title")
    ).text
    assert key not in text
