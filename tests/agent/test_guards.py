"""A model that keeps failing in the same way is asked to try another way; then the user is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from conversation import Chatting
from interpreter.errors import StuckError
from model_replies import text

SMALL = "openai/tiny-coder-1.5b"


def block(code: str) -> str:
    return f"```python\n{code}\n```"


def test_the_model_is_asked_for_another_way_without_its_failures(chatting: Chatting) -> None:
    replies = [block("kept = 5"), block("nope(1)"), block("nope(2)"), block("print(kept)"), "It is 5."]
    interpreter, server = chatting(*map(text, replies), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat("What is it?", display=False)
    asked_again = server.requests[3].body["messages"]
    sent = str(asked_again)
    assert "nope(1)" not in sent
    assert "kept = 5" in sent  # the block that succeeded stays
    assert "NameError: name 'nope' is not defined" in asked_again[-1]["content"]
    assert "different approach" in asked_again[-1]["content"]
    assert "different approach" not in str(
        server.requests[4].body["messages"]
    )  # it made progress, so everything is sent again
    assert "nope(1)" in str(server.requests[4].body["messages"])
    assert "nope(2)" in str(interpreter.messages)  # the conversation keeps everything


def test_repeated_failures_raise_a_stuck_error(chatting: Chatting) -> None:
    interpreter, server = chatting(*[text(block(f"nope({number})")) for number in range(9)], auto_run=True)
    interpreter.llm.model = SMALL
    with pytest.raises(StuckError, match="NameError: name 'nope' is not defined"):
        interpreter.chat("What is it?", display=False)
    assert len(server.requests) == 4


def test_different_failures_count_as_progress(chatting: Chatting) -> None:
    replies = [text(block(f"nope{number}()")) for number in range(6)]
    interpreter, server = chatting(*replies, text("I give up."), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat("What is it?", display=False)
    assert len(server.requests) == 7


def test_large_models_may_fail_any_number_of_times(chatting: Chatting) -> None:
    replies = [text(block(f"nope({number})")) for number in range(6)]
    interpreter, server = chatting(*replies, text("I give up."), auto_run=True)
    interpreter.llm.supports_functions = False
    interpreter.chat("What is it?", display=False)
    assert len(server.requests) == 7


def test_a_small_model_that_repeats_its_block_is_asked_to_answer(chatting: Chatting) -> None:
    again = text(block("print(42)"))
    interpreter, server = chatting(again, again, text("It is 42."), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat("What is it?", display=False)
    assert "you just ran this exact block" in server.requests[2].body["messages"][-1]["content"]
    assert interpreter.messages[-1]["content"] == "It is 42."


def test_a_failed_block_is_not_run_again(chatting: Chatting) -> None:
    again = text(block("nope()"))
    interpreter, server = chatting(again, again, text(block("print(42)")), text("It is 42."), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat("What is it?", display=False)
    sent = server.requests[2].messages[-1]["content"]
    assert "nope()" not in str(server.requests[2].messages[:-1])
    assert "NameError: name 'nope' is not defined" in sent
    assert "different approach" in sent
    assert interpreter.messages[-1]["content"] == "It is 42."


def test_repeating_a_failed_block_raises_a_stuck_error(chatting: Chatting) -> None:
    interpreter, server = chatting(*[text(block("nope()"))] * 9, auto_run=True)
    interpreter.llm.model = SMALL
    with pytest.raises(StuckError, match="NameError: name 'nope' is not defined"):
        interpreter.chat("What is it?", display=False)
    assert len(server.requests) == 3


def test_another_failure_gets_advice_of_its_own(chatting: Chatting) -> None:
    replies = [block("nope()"), block("nope()"), block("1 / 0"), block("1 / 0"), block("print(6 * 7)"), "It is 42."]
    interpreter, server = chatting(*map(text, replies), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat("What is it?", display=False)
    assert "ZeroDivisionError: division by zero" in str(server.requests[4].messages[-1]["content"])
    assert interpreter.messages[-1]["content"] == "It is 42."


def advice(chatting: Chatting, words: str, *blocks: str) -> str:
    """Return what a small model reads after these blocks failed in the same way."""
    interpreter, server = chatting(*map(text, [*map(block, blocks), "I give up."]), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat(words, display=False)
    return str(server.requests[len(blocks)].messages[-1]["content"])


def test_a_missing_package_is_named(chatting: Chatting) -> None:
    told = advice(chatting, "Use it.", "import nosuchlib", "import nosuchlib as n")
    assert "The package nosuchlib is not installed. Do it without nosuchlib." in told


def test_an_unknown_argument_is_named(chatting: Chatting) -> None:
    told = advice(chatting, "Sort it.", "sorted([2], by=1)", "sorted([2, 1], by=1)")
    assert "This function does not take by there. Leave by out, or call another function." in told


def test_a_missing_file_gets_the_nearest_names(chatting: Chatting) -> None:
    Path("sales.csv").write_text("a\n1\n")
    Path("notes.txt").write_text("x")
    told = advice(chatting, "Read it.", "open('sale.csv')", "open('sale.csv').read()")
    assert "There is no sale.csv. The nearest names: sales.csv." in told


def test_a_missing_column_gets_the_columns_of_the_file(chatting: Chatting) -> None:
    Path("sales.csv").write_text("region;units\nEast;3\n")
    code = "import csv\nrow = next(csv.DictReader(open('sales.csv'), delimiter=';'))\n"
    told = advice(chatting, "Total of sales.csv?", f"{code}row['Units']", f"{code}print(row['Units'])")
    assert "There is no column Units.\n" in told and "sep=';')):\nregion;units" in told and "Use these names." in told


DATA_FRAME = "import pandas as pd\ndf = pd.DataFrame({'region': ['East'], 'price': ['$3'], 'units': [3]})"


def test_a_missing_column_gets_those_of_the_live_table(chatting: Chatting) -> None:
    pytest.importorskip("pandas")
    told = advice(chatting, "Total?", DATA_FRAME, "df['Price']", "print(df['Price'])")
    assert "There is no column Price.\ndf has the columns region (" in told and "units (int64). Use these" in told


def test_a_wrong_type_gets_the_columns_that_hold_text(chatting: Chatting) -> None:
    pytest.importorskip("pandas")
    told = advice(chatting, "Mean?", DATA_FRAME, "df['price'].mean()", "print(df['price'].mean())")
    assert (
        "A column has another type than the code expects.\ndf has the columns region (" in told
        and "Convert the column first." in told
    )


def test_an_error_before_a_figure_is_the_failure(chatting: Chatting) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([{}])\nraise ValueError('no such box')"
    interpreter, _ = chatting(*[text(block(code.format(number))) for number in range(9)], auto_run=True)
    interpreter.llm.model = SMALL
    with pytest.raises(StuckError, match="The same error keeps happening: ValueError: no such box"):
        interpreter.chat("go", display=False)


def test_the_error_says_the_cause_and_what_to_do(chatting: Chatting) -> None:
    interpreter, _ = chatting(*[text(block(f"open('nope.csv', 'r', {number})")) for number in range(9)], auto_run=True)
    interpreter.llm.model = SMALL
    with pytest.raises(
        StuckError,
        match=r"There is no nope.csv\. The nearest names: none\.\nChange the request, choose a larger model with %model",
    ):
        interpreter.chat("What is it?", display=False)
