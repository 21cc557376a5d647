"""Small models get a note on what their block did to files, because they don't check it themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conversation import Chatting, chatting
from interpreter import OpenInterpreter
from interpreter.agent.small_models import asks_for_change
from model_server import ModelServer, text

__all__ = ["chatting"]

TOTALS = "```python\nopen('totals.csv', 'w').write('name,amount\\nAnn,3\\n')\n```"


def chat_with_small_model(
    chatting: Chatting, *replies: Any, words: str, **settings: Any
) -> tuple[OpenInterpreter, ModelServer]:
    interpreter, server = chatting(*(text(reply) for reply in replies), auto_run=True, **settings)
    interpreter.llm.model = "openai/qwen2.5-coder-1.5b"
    interpreter.chat(words, display=False)
    return interpreter, server


def last_message(server: ModelServer) -> str:
    return str(server.requests[-1].messages[-1]["content"])


def test_the_note_shows_a_written_file(chatting: Chatting) -> None:
    interpreter, server = chat_with_small_model(
        chatting, TOTALS, "Done.", words="Save the totals with columns name and total."
    )
    assert "Created totals.csv. totals.csv is:\nname,amount\nAnn,3" in last_message(server)
    kinds = [(message["role"], message["type"]) for message in interpreter.messages]
    assert kinds == [("user", "message"), ("assistant", "code"), ("computer", "console"), ("assistant", "message")]
    assert interpreter.messages[2]["note"].startswith("Created totals.csv.")
    assert "Created" not in interpreter.messages[2]["content"]


def test_the_note_says_that_no_file_was_changed(chatting: Chatting) -> None:
    _, server = chat_with_small_model(
        chatting, "```python\nprint(5433)\n```", "Done.", words="Change the port in config.json."
    )
    assert "5433\nNo file was changed: the code printed the result and did not save it." in last_message(server)
    assert last_message(server).endswith("Write the whole corrected code block.")


def test_the_missing_change_is_reported_once(chatting: Chatting) -> None:
    blocks = [f"```python\nprint({number})\n```" for number in range(2)]
    _, server = chat_with_small_model(chatting, *blocks, "Done.", words="Change the port in config.json.")
    assert "No file" in str(server.requests[1].messages[-1]["content"])
    assert "No file" not in last_message(server)


def test_missing_columns_are_reported_once(chatting: Chatting) -> None:
    words = "Save it as totals.csv with two columns, name and total."
    _, server = chat_with_small_model(chatting, TOTALS, f"{TOTALS[:-4]}\n# again\n```", "Done.", words=words)
    first = str(server.requests[1].messages[-1]["content"])
    assert "Ann,3\ntotals.csv has no column total." in first and first.endswith("corrected code block.")
    assert "has no column" not in last_message(server)


def test_a_table_without_a_header_is_reported(chatting: Chatting) -> None:
    words = "Turn totals.json into totals.csv with one row per name and the columns name and amount."
    _, server = chat_with_small_model(chatting, TOTALS.replace("name,amount\\n", ""), "Done.", words=words)
    assert "The first line of totals.csv has to name the columns: name, amount." in last_message(server)


def test_a_table_that_is_the_same_as_its_source_is_reported(chatting: Chatting) -> None:
    Path("contacts.csv").write_text("name,phone\nAnn,030-5\n")
    words = "Clean the phone numbers in contacts.csv so that only digits are left, and save the table as phones.csv."
    copy = "```python\nimport shutil\n_ = shutil.copyfile('contacts.csv', 'phones.csv')\n```"
    _, server = chat_with_small_model(chatting, copy, "Done.", words=words)
    assert "phones.csv is the same as contacts.csv: the code changed nothing in it." in last_message(server)


def test_words_after_the_list_of_columns_are_no_columns(chatting: Chatting) -> None:
    words = "Save it as totals.csv with the columns name and item, the item in lower case."
    _, server = chat_with_small_model(chatting, TOTALS.replace("amount", "item"), "Done.", words=words)
    assert "has no column" not in last_message(server)


def test_files_of_a_failed_block_are_shown_after_the_next_block(chatting: Chatting) -> None:
    write = "open('a.txt', 'w').write('phone')"
    blocks = f"```python\n{write}\n1 / 0\n```", f"```python\n_ = {write}\n```"
    _, server = chat_with_small_model(chatting, *blocks, "Done.", words="Save the addresses in a.txt.")
    assert "Created a.txt. a.txt is:\nphone" in last_message(server)


def test_a_question_gets_no_note_about_files(chatting: Chatting) -> None:
    _, server = chat_with_small_model(chatting, "```python\nprint(42)\n```", "42.", words="How much is 6 * 7?")
    assert "file" not in last_message(server).lower()


def test_an_image_is_described_by_its_size(chatting: Chatting) -> None:
    code = "import struct\nopen('p.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'\\0\\0\\0\\rIHDR' + struct.pack('>II', 800, 600))"
    _, server = chat_with_small_model(chatting, f"```python\n{code}\n```", "Done.", words="Save the plot as p.png.")
    assert "p.png is a picture of 800 by 600 pixels." in last_message(server)


def test_many_files_are_named_and_counted(chatting: Chatting) -> None:
    code = "for i in range(14): open(f'f{i:02}.txt', 'w').write('x')"
    _, server = chat_with_small_model(chatting, f"```python\n{code}\n```", "Done.", words="Make fourteen files.")
    assert last_message(server).count("Created") == 10 and "And 4 more." in last_message(server)


def test_deleted_and_renamed_files_are_reported(chatting: Chatting) -> None:
    Path("a.txt").write_text("one")
    Path("b.txt").write_text("two")
    code = "import os\nos.remove('a.txt')\nos.rename('b.txt', 'c.txt')"
    _, server = chat_with_small_model(chatting, f"```python\n{code}\n```", "Done.", words="Tidy up.")
    assert "Deleted a.txt." in last_message(server) and "Renamed b.txt to c.txt." in last_message(server)


def test_there_is_no_note_when_file_undo_is_off(chatting: Chatting) -> None:
    _, server = chat_with_small_model(
        chatting, "```python\nprint(1)\n```", "Done.", words="Change the port.", undo_files=False
    )
    assert "No file" not in last_message(server)


def test_large_models_get_no_note(chatting: Chatting) -> None:
    interpreter, server = chatting(text(TOTALS), text("Done."), auto_run=True)
    interpreter.llm.model, interpreter.llm.supports_functions = "openai/gpt-4o", False
    interpreter.chat("Save the totals.", display=False)
    assert "Created" not in last_message(server)


def test_a_repeated_failure_asks_only_for_corrected_code(chatting: Chatting) -> None:
    bad = "```python\nfloat('$1')\n```"
    worse = "```python\nfloat('$' + '1')\n```"
    _, server = chat_with_small_model(chatting, bad, worse, "```python\nprint(1)\n```", "1.", words="Add it up.")
    asked = str(server.requests[2].messages[-1]["content"])
    assert "Try a different approach." in asked and asked.endswith("Write the whole corrected code block.")


def test_the_log_of_a_local_server_is_not_reported(chatting: Chatting) -> None:
    code = "```python\nopen('llama.log', 'w').write('x')\nopen('out.txt', 'w').write('y')\n```"
    _, server = chat_with_small_model(chatting, code, "Done.", words="Write out.txt.")
    assert "Created out.txt." in last_message(server)
    assert "llama.log" not in last_message(server)


CHANGE_REQUESTS = """
Save the result as totals.csv.
Write the numbers from 1 to 10 to numbers.txt
Rename all .jpeg files here to .jpg
Delete the empty files in this folder.
Convert data.xlsx to CSV.
Convert notes.md into notes.html, please.
Create a folder called reports.
Make a new file todo.txt with three lines.
Could you rename a.txt to b.txt?
Can you save this chart as sales.png?
Change the port in config.json to 5433.
Replace 'colour' with 'color' in letter.txt.
Append the line "done" to log.txt
Add a column total to items.csv and save it.
Move every PDF file into the folder archive.
Draw a bar chart of sales.csv and save it as chart.png.
Zip the three CSV files.
Sort names.txt alphabetically, in place.
Remove line 3 from notes.txt.
Export the table to Excel.
Fix the dates in orders.csv.
Write a script hello.py that greets me.
I need a pie chart with the share of each product in sales.csv, as products.png.
"""
QUESTIONS = """
Use the file sales.csv in the current folder. What is the mean of amount? Print it.
Use the file x.csv in the current folder. What is the correlation of price and fare? Print the number with two decimals.
What is the average price in products.csv?
How many files are in this folder?
Add up the amounts in sales.csv.
How did the prices in prices.csv change from May to June?
Which rows of orders.csv were updated last?
Remove the duplicates in people.csv and print how many rows are left.
Replace missing values in ages.csv with 0 and tell me the mean.
Read data.json and show the keys.
Write a Python function that turns Fahrenheit into Celsius.
Convert 12 miles to kilometres.
Make a list of the files that sales.csv names
The file was created in 2020. How old is it?
Set x to 5 and print x * 7.
What does the command mv do?
Create a dataframe from sales.csv and print its shape.
Sort sales.csv by amount and show the first three rows.
Explain how to delete a file in Python.
Store the mean of sales.csv in a variable m and print it.
Count the words in speech.txt.
Find the largest moving average in temps.csv and print it.
I need the total of sales.csv as one number.
"""


@pytest.mark.parametrize("words", CHANGE_REQUESTS.strip().splitlines())
def test_a_request_for_a_file_change_is_recognised(words: str) -> None:
    assert asks_for_change(words)


@pytest.mark.parametrize("words", QUESTIONS.strip().splitlines())
def test_a_question_is_not_a_request_for_a_file_change(words: str) -> None:
    assert not asks_for_change(words)


def test_a_question_about_a_table_gets_no_note_about_a_missing_change(chatting: Chatting) -> None:
    words = "Use the file sales.csv in the current folder. What is the mean of the changes? Print the number."
    _, server = chat_with_small_model(chatting, "```python\nprint(42)\n```", "42.", words=words)
    assert "No file was changed" not in last_message(server)
