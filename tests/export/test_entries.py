"""Entries of a conversation, from a plain list of messages."""

from __future__ import annotations

from interpreter.messages import DECLINED, Message
from interpreter.session.journal.reader import (
    RecordedBlock,
    Said,
    Shown,
    entries_from_messages,
)

CODE: Message = {"role": "assistant", "type": "code", "format": "python", "content": "1 / 0"}
OUTPUT: Message = {"role": "computer", "type": "console", "format": "output", "content": "42\n"}


def message(role: str, words: str) -> Message:
    return {"role": role, "type": "message", "content": words}


def test_outputs_belong_to_the_block_before_them() -> None:
    image: Message = {"role": "computer", "type": "image", "format": "base64.png", "content": "AA=="}
    entries = entries_from_messages(
        [message("user", "go"), CODE, OUTPUT, image, message("assistant", "done"), CODE, OUTPUT]
    )
    assert [type(entry) for entry in entries] == [Said, RecordedBlock, Said, RecordedBlock]
    block = entries[1]
    assert isinstance(block, RecordedBlock)
    assert block.outputs == (OUTPUT, image)
    assert block.succeeded and block.ended == "done"
    assert [entry.id for entry in entries if isinstance(entry, RecordedBlock)] == ["1", "2"]


def test_the_output_says_how_a_block_ended() -> None:
    error: Message = {**OUTPUT, "ended": "error", "exit_code": 1}
    block = entries_from_messages([CODE, error])[0]
    assert isinstance(block, RecordedBlock)
    assert (block.ended, block.exit_code, block.succeeded, block.ran) == ("error", 1, False, True)


def test_a_declined_block_counts_as_not_run() -> None:
    entries = entries_from_messages([CODE, message("user", DECLINED), message("user", "too dangerous")])
    block, words = entries
    assert isinstance(block, RecordedBlock) and block.decision == "declined" and not block.ran
    assert words == Said("user", "too dangerous")


def test_an_unanswered_block_counts_as_not_run() -> None:
    block = entries_from_messages([CODE])[0]
    assert isinstance(block, RecordedBlock) and block.decision == "not_run" and block.ended is None


def test_a_declined_block_leaves_no_words_of_the_user_wherever_its_message_is() -> None:
    marked: Message = {**message("user", "Not this one."), "declined": True}
    for said in (marked, message("user", DECLINED)):
        assert entries_from_messages([said, message("user", "go on")]) == [Said("user", "go on")]


def test_images_from_the_user_are_entries() -> None:
    image: Message = {"role": "user", "type": "image", "format": "path", "content": "/x.png"}
    assert entries_from_messages([image]) == [Shown(image)]
