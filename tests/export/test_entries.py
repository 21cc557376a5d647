"""What a plain list of messages tells about a conversation."""

from __future__ import annotations

from interpreter.messages import Message
from interpreter.session.journal.reader import (
    DECLINED,
    RecordedBlock,
    Said,
    Shown,
    entries_from_messages,
)

CODE: Message = {"role": "assistant", "type": "code", "format": "python", "content": "1 / 0"}
OUTPUT: Message = {"role": "computer", "type": "console", "format": "output", "content": "42\n"}


def said(role: str, words: str) -> Message:
    return {"role": role, "type": "message", "content": words}


def test_outputs_belong_to_the_block_before_them() -> None:
    image: Message = {"role": "computer", "type": "image", "format": "base64.png", "content": "AA=="}
    entries = entries_from_messages([said("user", "go"), CODE, OUTPUT, image, said("assistant", "done"), CODE, OUTPUT])
    assert [type(entry) for entry in entries] == [Said, RecordedBlock, Said, RecordedBlock]
    block = entries[1]
    assert isinstance(block, RecordedBlock)
    assert block.outputs == (OUTPUT, image)
    assert block.succeeded and block.ended == "done"
    assert [entry.id for entry in entries if isinstance(entry, RecordedBlock)] == ["1", "2"]


def test_how_a_block_ended_is_on_its_output() -> None:
    error: Message = {**OUTPUT, "ended": "error", "exit_code": 1}
    block = entries_from_messages([CODE, error])[0]
    assert isinstance(block, RecordedBlock)
    assert (block.ended, block.exit_code, block.succeeded, block.ran) == ("error", 1, False, True)


def test_a_declined_block_did_not_run() -> None:
    entries = entries_from_messages([CODE, said("user", DECLINED), said("user", "too dangerous")])
    block, words = entries
    assert isinstance(block, RecordedBlock) and block.decision == "declined" and not block.ran
    assert words == Said("user", "too dangerous")


def test_a_block_nobody_answered_did_not_run() -> None:
    block = entries_from_messages([CODE])[0]
    assert isinstance(block, RecordedBlock) and block.decision == "not_run" and block.ended is None


def test_the_loop_declines_with_the_words_that_are_looked_for() -> None:
    from interpreter.agent import turn as loop

    assert loop.DECLINED == DECLINED


def test_what_the_user_hands_over_is_shown() -> None:
    image: Message = {"role": "user", "type": "image", "format": "path", "content": "/x.png"}
    assert entries_from_messages([image]) == [Shown(image)]
