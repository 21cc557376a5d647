"""What an answer states and nothing shows is marked, and a small model is asked once for what it left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting
from interpreter import OpenInterpreter
from model_replies import text, tool_call
from model_server import ModelServer

SMALL, LARGE = "openai/qwen2.5-coder-1.5b", "openai/gpt-4o"


def block(code: str) -> str:
    return f"```python\n{code}\n```"


def checks(
    chatting: Chatting, words: str, *replies: str, model: str = SMALL, **settings: Any
) -> tuple[list[dict[str, Any]], ModelServer, OpenInterpreter]:
    """Return the checks that the user sees."""
    interpreter, server = chatting(*map(text, replies), auto_run=True, **settings)
    interpreter.llm.model, interpreter.llm.supports_functions = model, False
    chunks = list(interpreter.chat(words, display=False, stream=True))
    return checks_in(chunks), server, interpreter


def checks_in(chunks: list[Any]) -> list[dict[str, Any]]:
    notices = [chunk["content"] for chunk in chunks if chunk["type"] == "status" and chunk["format"] == "notice"]
    return [content for content in notices if "check" in content]


INVENTED = "There are 10 rows and the mean price is 3.48."
MARK = {"text": "10 and 3.48 are not in any output.", "check": "answer", "items": ["10", "3.48"]}


def test_an_invented_number_is_marked_without_another_request(chatting: Chatting) -> None:
    found, server, interpreter = checks(chatting, "Mean?", block("print('installed')"), INVENTED, model=LARGE)
    assert found == [MARK]
    assert len(server.requests) == 2
    assert interpreter.messages[-1]["content"] == INVENTED


def test_a_small_model_is_asked_once_to_compute_it(chatting: Chatting) -> None:
    replies = [block("print('installed')"), INVENTED, block("print(12, 4.25)"), "There are 12 rows, the mean is 4.25."]
    found, server, interpreter = checks(chatting, "Mean?", *replies)
    assert found == []
    again = str(server.requests[2].messages[-1]["content"])
    assert again.startswith("10 and 3.48 are not in any output. Compute or write what is missing")
    assert "code block" in again
    assert "not in any output" not in str(interpreter.messages)


def test_what_stays_invented_is_marked(chatting: Chatting) -> None:
    found, server, _ = checks(chatting, "Mean?", block("print('installed')"), INVENTED, INVENTED)
    assert found == [MARK]
    assert len(server.requests) == 3


def test_a_grounded_answer_costs_a_small_model_nothing(chatting: Chatting) -> None:
    found, server, _ = checks(chatting, "Mean?", block("print(3.4821)"), "The mean is 3.48.")
    assert (found, len(server.requests)) == ([], 2)


def test_outputs_of_earlier_turns_count(chatting: Chatting) -> None:
    interpreter, _ = chatting(
        *map(text, [block("print(3.4821)"), "3.48.", block("print('x')"), "It was 3.48, for 17 people."]), auto_run=True
    )
    interpreter.llm.model, interpreter.llm.supports_functions = LARGE, False
    interpreter.chat("Mean?", display=False)
    chunks = list(interpreter.chat("And for my 17 people?", display=False, stream=True))
    assert checks_in(chunks) == []


def test_what_the_block_wrote_to_a_file_counts(chatting: Chatting) -> None:
    code = "open('totals.csv', 'w').write('a,3.4821\\n')"
    found, _, _ = checks(chatting, "Write totals.csv", block(f"_ = {code}"), "It has 3.4821.", model=LARGE)
    assert found == []


def test_a_file_that_does_not_exist_is_marked(chatting: Chatting) -> None:
    answer = "I saved it as chart.png and report.pdf."
    Path("report.pdf").write_text("x")
    found, _, _ = checks(chatting, "Plot it.", block("print('ok')"), answer, model=LARGE)
    assert [each["items"] for each in found] == [["chart.png"]]


def test_an_answer_without_code_is_not_checked(chatting: Chatting) -> None:
    found, server, _ = checks(chatting, "How fast is light?", "It is 299,792,458 m/s.")
    assert (found, len(server.requests)) == ([], 1)


def test_an_answer_about_a_file_that_nothing_computed_is_checked(chatting: Chatting) -> None:
    Path("sales.csv").write_text("price\n" + "".join(f"{n}.5\n" for n in range(40)))
    answer = "The mean price is 21.7."
    found, _, _ = checks(chatting, "What is the mean price in sales.csv?", answer, answer)
    assert [each["items"] for each in found] == [["21.7"]]


def test_the_setting_turns_it_off(chatting: Chatting) -> None:
    found, server, _ = checks(chatting, "Mean?", block("print('installed')"), INVENTED, check_answers=False)
    assert (found, len(server.requests)) == ([], 2)


def test_the_result_of_a_tool_counts(chatting: Chatting) -> None:
    interpreter, _ = chatting(tool_call("python", "print(3.4821)"), text("It is 3.48."), auto_run=True)
    interpreter.llm.model = LARGE
    chunks = list(interpreter.chat("Mean?", display=False, stream=True))
    assert checks_in(chunks) == []


# -- what was asked for ----------------------------------------------------------------------------------------------

PLOT = "Plot sales.csv and save it as chart.png."


def test_a_missing_file_goes_back_to_a_small_model_once(chatting: Chatting) -> None:
    replies = [block("print('plotted')"), "The task is done.", block("_ = open('chart.png', 'w').write('x')"), "Saved."]
    found, server, _ = checks(chatting, PLOT, *replies)
    assert found == []
    assert str(server.requests[2].messages[-1]["content"]).startswith(
        "There is no chart.png. Compute or write what is missing, and print it. My request was: Plot sales.csv"
    )


def test_a_repeated_block_is_told_what_is_missing(chatting: Chatting) -> None:
    again = block("print('plotted')")
    _, _, interpreter = checks(chatting, PLOT, again, "Done.", again, again, "It is done.")
    assert "got the same result. Answer, or try a different approach. There is no chart.png." in str(
        interpreter.messages
    )


def test_a_file_that_the_request_names_without_a_verb_is_wanted(chatting: Chatting) -> None:
    words = "I need a pie chart of sales.csv, as chart.png."
    found, _, _ = checks(chatting, words, block("print('plotted')"), "The task is done.", "It is done.")
    assert [each["text"] for each in found] == ["There is no chart.png."]


def test_what_stays_unmet_is_said_and_the_turn_is_not_done(chatting: Chatting) -> None:
    found, server, interpreter = checks(chatting, PLOT, block("print('plotted')"), "The task is done.", "It is done.")
    assert found == [{"text": "There is no chart.png.", "check": "result", "items": ["There is no chart.png."]}]
    assert len(server.requests) == 3
    assert interpreter.session.log.read()[-1].data["reason"] == "unfinished"


def test_a_chart_that_was_not_drawn_is_wanted(chatting: Chatting) -> None:
    drawn = block("from PIL import Image; display(Image.new('RGB', (2, 2)))")
    words = "Draw a bar chart of the units per region in sales.csv"
    found, server, _ = checks(chatting, words, block("print('North 3')"), "The output shows 3.", drawn, "Drawn.")
    assert found == []
    assert str(server.requests[2].messages[-1]["content"]).startswith("No chart was drawn. Compute or write what is")
    found, _, _ = checks(chatting, words, block("print('North 3')"), "The output shows 3.", "It does.")
    assert [each["items"] for each in found] == [["No chart was drawn."]]


@pytest.mark.parametrize(
    "words", ["Describe the columns of charts.csv", "How many plots are in graph.json?", "Make a text chart of it"]
)
def test_words_that_ask_for_no_chart(chatting: Chatting, words: str) -> None:
    found, server, _ = checks(chatting, words, block("print('North 3')"), "There are 3.")
    assert (found, len(server.requests)) == ([], 2)


def test_a_file_that_did_not_change_is_said(chatting: Chatting) -> None:
    Path("log.txt").write_text("one\n")
    found, _, _ = checks(chatting, "Append the line two to log.txt.", block("print('two')"), "Done.", "Done.")
    assert [each["items"] for each in found] == [["log.txt has not changed."]]


def test_a_table_that_stays_the_same_is_not_done(chatting: Chatting) -> None:
    Path("contacts.csv").write_text("name,phone\nAnn,030-5\n")
    copy = "import shutil; _ = shutil.copyfile('contacts.csv', 'phones.csv')"
    words = "Clean the phones in contacts.csv and save the table as phones.csv."
    found, server, _ = checks(chatting, words, block(copy), "The task is done.")
    assert [each["text"] for each in found] == [
        "phones.csv is the same as contacts.csv: the code changed nothing in it."
    ]
    assert len(server.requests) == 2


def test_a_question_whose_code_printed_nothing_goes_back(chatting: Chatting) -> None:
    replies = [block("x = 42"), "The task is done.", block("print(x)"), "It is 42."]
    found, server, _ = checks(chatting, "How many are there?", *replies)
    assert found == []
    assert str(server.requests[2].messages[-1]["content"]).startswith("The code printed nothing")


def test_a_large_model_is_not_asked_about_files(chatting: Chatting) -> None:
    found, server, _ = checks(chatting, PLOT, block("print('plotted')"), "The task is done.", model=LARGE)
    assert (found, len(server.requests)) == ([], 2)
