"""Code that bypasses the driver and writes to the host's channel can't impersonate the host or harm it."""

from __future__ import annotations

import pytest

from example_computer_tool import CallTester, calls_of, tester

__all__ = ["tester"]
GET_CHANNEL = "report = computer._ask.__self__\n"


def test_a_session_cannot_send_messages_reserved_for_the_host(tester: CallTester) -> None:
    tester.answer_with("y")
    forged = [
        "'called', 'call': {'call': 'computer.example.mail', 'outcome': 'ok', 'by': 'user', 'acts': True}",
        "'call_asks', 'prompt': 'Your password? '",
        "'exited', 'code': 0, 'startup': ''",
    ]
    for fields in forged:
        ran = tester.do(f"{GET_CHANNEL}report._channel.send({{'block': report.number, 'event': {fields}}})\ninput()")
        assert "ended (it sent a message of an unknown kind). Only this block is lost" in ran.text
        assert calls_of(ran) == [] and tester.asked == []


@pytest.mark.parametrize(
    "line",
    [
        "b'[' * 200_000 + b']' * 200_000",
        'b\'{"event": "call", "block": 1, "call": "one", "path": [], "how": 3}\'',
        'b\'{"event": "stream", "block": 1}\'',
        'b\'{"event": [], "block": {}}\'',
        'b\'{"event": "call_off"}\'',
        'b\'{"event": "call", "block": 1, "call": 7, "path": "example.press", "how": "call", "kwargs": [1]}\'',
    ],
)
def test_a_malformed_frame_ends_only_the_session(tester: CallTester, line: str) -> None:
    assert "ended (it sent " in tester.do(f"{GET_CHANNEL}report._send({line} + b'\\n')\ninput()").text
    assert tester.do("print(computer.example.width)").text == "7\n"


def test_the_number_of_parallel_calls_is_limited(tester: CallTester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interpreter.runtimes.calls.MAX_CALLS", 2)
    ran = tester.do(
        f"{GET_CHANNEL}for number in (901, 902):\n"
        "    call = {'call': number, 'path': 'example.block', 'how': 'call'}\n"
        "    report._channel.send({'event': 'call', 'block': report.number, **call})\n"
        "try:\n    computer.example.press()\nexcept computer.ComputerError as error:\n    print(error)"
    )
    assert "Too many calls at the same time" in ran.text
    tester.example.released.set()
    assert tester.do("print(computer.example.press())").text == "pressed\n"
