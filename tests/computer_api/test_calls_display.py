"""The arguments shown before a call is sent: nothing in them can hide or control the terminal."""

from __future__ import annotations

import unicodedata

from example_computer_tool import CallTester, calls_of, tester

__all__ = ["tester"]
HIDDEN = (
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b[2J",
    "\r",
    "\u202e",
    "\u2066",
    "\u200b",
    "\u3164",
    "\uffa0",
    "\U000e0041",
    "\u2028",
)


def test_nothing_hides_in_a_question_or_in_the_record(tester: CallTester) -> None:
    tester.answer_with("y")
    ran = tester.do(
        f"for hidden in {HIDDEN!a}:\n"
        "    computer.example.announce(f'a{hidden}b', **{'subject': [hidden], hidden: 1, '\\u3164': 2})"
    )
    assert len(tester.asked) == len(tester.example.sent) == len(HIDDEN)
    records = [call["told"] for call in calls_of(ran)]
    for text in (*(question.replace("\n", "") for question in tester.asked), *records):
        assert not [each for each in text if unicodedata.category(each)[0] == "C" or each in "\u3164\uffa0\u2028"]
        assert "b" in text and "subject" in text
    assert len(records) == len(HIDDEN)
