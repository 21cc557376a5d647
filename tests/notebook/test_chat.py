"""`interpreter.chat()` in a Jupyter notebook: approval in the input box, inline output, interrupts with the cell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interpreter.frontends.notebook import _is_table
from model_server import ModelServer, text, tool_call
from notebook_kernel import Kernel, kernel, printed, shown
from sampling import some

SET_UP = """
from interpreter import OpenInterpreter
interpreter = OpenInterpreter(conversation_history=False, **{settings})
interpreter.llm.model, interpreter.llm.api_base, interpreter.llm.api_key = "openai/scripted", {address!r}, "x"
interpreter.llm.supports_functions, interpreter.llm.supports_vision = True, False
"""
Start = Callable[..., Kernel]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    closing: list[Any] = []

    def begin(*replies: Any, **settings: Any) -> Kernel:
        server = ModelServer(replies).__enter__()
        closing.append(server)
        running = kernel(str(tmp_path))
        made = running.__enter__()
        closing.append(running)
        outputs = made.run(SET_UP.format(settings=settings, address=server.base_url))
        assert not outputs, outputs
        return made

    yield begin
    for each in reversed(closing):
        each.__exit__(None, None, None)


@pytest.mark.parametrize("typed", some(1, ["y", "n", "Use Python instead."]))
def test_approval_is_asked_in_the_input_box(start: Start, typed: str) -> None:
    made = start(tool_call("python", "print(6 * 7)"), text("The **answer**."), text("As you like."))
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return typed if len(asked) == 1 else "n"

    outputs = made.run("messages = interpreter.chat('What is 6*7?')", answer)
    assert asked == ["Run this code? (y/n, or say what to change) "]
    code, *said = shown(outputs, "text/markdown")
    assert code == "```python\nprint(6 * 7)\n```"
    assert ("42" in printed(outputs)) == (typed == "y")
    assert said == ([] if typed == "n" else ["The **answer**."])


def test_figures_tables_and_pages_appear_inline(start: Start) -> None:
    code = (
        "import matplotlib.pyplot as plt, pandas as pd\nfrom IPython.display import HTML\n"
        "plt.plot([1, 2]); plt.show()\ndisplay(pd.DataFrame({'a': [1, 2]}))\n"
        "display(HTML('<script>parent.alert(1)</script>'))"
    )
    made = start(tool_call("python", code), text("Done."), auto_run=True)
    outputs = made.run("messages = interpreter.chat('Plot')")
    assert len(shown(outputs, "image/png")) == 1
    table, page = shown(outputs, "text/html")
    assert "<td>1</td>" in table
    assert 'iframe sandbox="allow-scripts" srcdoc="&lt;script' in page
    assert "a\n0  1" not in printed(outputs)


def test_input_in_code_is_asked_in_the_input_box(start: Start) -> None:
    made = start(tool_call("python", "print('Hello', input('Who? '))"), text("Done."), auto_run=True)
    outputs = made.run("messages = interpreter.chat('Greet')", lambda prompt: {"Who? ": "Ann"}[prompt])
    assert "Hello Ann" in printed(outputs)


def test_interrupting_the_cell_interrupts_the_turn(start: Start) -> None:
    made = start(tool_call("python", "import time\nprint('be' + 'gun')\ntime.sleep(600)"), text("Next."), auto_run=True)
    outputs = made.run("messages = interpreter.chat('Wait')", interrupt_at="begun")
    assert outputs[-1]["ename"] == "KeyboardInterrupt"
    outputs = made.run("print(interpreter.messages[-1]['ended'], interpreter.chat('And now?')[-1]['content'])")
    assert printed(outputs).strip() == "interrupted Next.", outputs


@pytest.mark.full
def test_interrupting_the_question_runs_nothing(start: Start) -> None:
    made = start(tool_call("python", "open('ran', 'w').close()"), text("Next."))
    outputs = made.run("messages = interpreter.chat('Go')", lambda prompt: made.manager.interrupt_kernel())
    assert outputs[-1]["ename"] == "KeyboardInterrupt"
    outputs = made.run("import os; print(os.path.exists('ran'), interpreter.chat('And now?')[-1]['content'])")
    assert printed(outputs).strip() == "False Next.", outputs


def test_a_conversation_can_be_held_in_the_input_box(start: Start) -> None:
    made = start(text("One."), text("Two."))
    typed = iter(["First", "Second", ""])
    outputs = made.run("interpreter.chat(); None", lambda prompt: next(typed))
    assert shown(outputs, "text/markdown") == ["One.", "Two."]


def test_a_whole_notebook_runs(tmp_path: Path) -> None:
    import nbformat  # slow to import, and every worker collects every test
    from nbclient import NotebookClient

    with ModelServer([tool_call("python", "print(6 * 7)"), text("It is 42.")]) as server:
        cells = [
            SET_UP.format(settings={"auto_run": True}, address=server.base_url),
            "interpreter.chat('What is 6*7?')",
            "print(interpreter.computer.run('python', '1 + 1', display=True)[0]['content'])",
        ]
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    chat = json.dumps(notebook.cells[1]["outputs"])
    assert "It is 42." in chat
    assert "42\\n" in chat
    assert "execute_result" in chat  # the messages that chat() returns


@pytest.mark.parametrize(
    ("content", "is_table"),
    [
        ("<table border='1' class='dataframe'><tr><th>a</th></tr><tr><td>1</td></tr></table>", True),
        ("<div><style scoped>.a tbody { vertical-align: middle; }</style><table></table></div>", True),
        ("<table><tr><td onclick='x()'>1</td></tr></table>", False),
        ("<table><tr><td><img src=x></td></tr></table>", False),
        ("<table style='background: url(http://x)'></table>", False),
        ("<style>@import 'http://x';</style><table></table>", False),
        ("<table></table><script>x()</script>", False),
        ("<table><svg><a href='javascript:x()'></table>", False),
        ("<!DOCTYPE html><table></table>", False),
        ("<table><![CDATA[<script>]]></table>", False),
    ],
)
def test_only_tables_without_active_content_are_shown_directly(content: str, is_table: bool) -> None:
    assert _is_table(content) is is_table
