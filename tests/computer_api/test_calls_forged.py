"""Code that speaks to the host by itself, past the driver: it cannot speak as the host does, nor do harm there."""

from __future__ import annotations

import pytest

from gadget import Desk, calls_of, desk

__all__ = ["desk"]
LINE = "report = computer._ask.__self__\n"


def test_what_only_the_host_says_is_not_heard_from_a_session(desk: Desk) -> None:
    desk.answer_with("y")
    forged = [
        "'called', 'call': {'call': 'computer.gadget.mail', 'outcome': 'ok', 'by': 'user', 'acts': True}",
        "'call_asks', 'prompt': 'Your password? '",
        "'exited', 'code': 0, 'startup': ''",
    ]
    for fields in forged:
        ran = desk.do(f"{LINE}report._channel.send({{'block': report.number, 'event': {fields}}})\ninput()")
        assert "ended (it sent a message of an unknown kind). Only this block is lost" in ran.text
        assert calls_of(ran) == [] and desk.asked == []


@pytest.mark.parametrize(
    "line",
    [
        "b'[' * 200_000 + b']' * 200_000",
        'b\'{"event": "call", "block": 1, "call": "one", "path": [], "how": 3}\'',
        'b\'{"event": "stream", "block": 1}\'',
        'b\'{"event": [], "block": {}}\'',
        'b\'{"event": "call_off"}\'',
        'b\'{"event": "call", "block": 1, "call": 7, "path": "gadget.press", "how": "call", "kwargs": [1]}\'',
    ],
)
def test_a_line_that_is_no_frame_ends_the_session_and_nothing_else(desk: Desk, line: str) -> None:
    assert "ended (it sent " in desk.do(f"{LINE}report._send({line} + b'\\n')\ninput()").text
    assert desk.do("print(computer.gadget.width)").text == "7\n"


def test_no_more_calls_run_at_once_than_the_host_has_threads_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpreter.runtimes.calls.MOST", 2)
    ran = desk.do(
        f"{LINE}for number in (901, 902):\n"
        "    call = {'call': number, 'path': 'gadget.block', 'how': 'call'}\n"
        "    report._channel.send({'event': 'call', 'block': report.number, **call})\n"
        "try:\n    computer.gadget.press()\nexcept computer.ComputerError as error:\n    print(error)"
    )
    assert "Too many calls at the same time" in ran.text
    desk.gadget.released.set()
    assert desk.do("print(computer.gadget.press())").text == "pressed\n"
