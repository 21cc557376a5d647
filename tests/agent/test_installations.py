"""An installation is no answer: the turn continues, and no block of a reply is lost."""

from __future__ import annotations

from typing import Any

from conversation import Chatting
from interpreter.agent.turn import ONLY_INSTALLED
from model_replies import text, tool_call

SMALL = "openai/tiny-coder-1.5b"
INSTALL = "```python\n%pip install psutil\n```\n"  # it is installed already
CHART = "```python\nprint('a chart of', 6 * 7)\n```\n"


def contents(interpreter: Any) -> list[str]:
    return [message["content"].strip() for message in interpreter.messages[1:]]


def test_what_follows_an_installation_in_a_small_models_reply_runs_too(chatting: Chatting) -> None:
    interpreter, server = chatting(text(INSTALL + "Then:\n" + CHART + "It is 99.", split=5), text("42."), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat("Make a table", display=False)
    assert contents(interpreter) == [
        "%pip install psutil",
        "Already installed: psutil.",
        "Then:",
        "print('a chart of', 6 * 7)",
        "a chart of 42",
        "42.",
    ]
    assert len(server.requests) == 2


def test_it_is_judged_as_its_own_block(chatting: Chatting) -> None:
    interpreter, _ = chatting(text(INSTALL + CHART))
    interpreter.llm.model = SMALL
    asked = []
    for chunk in interpreter.chat("Make a table", display=False, stream=True):
        if chunk["type"] == "confirmation":
            asked.append(chunk["content"]["content"])
            if len(asked) == 2:
                interpreter.pending.decline()
    assert asked == ["%pip install psutil", "print('a chart of', 6 * 7)"]
    assert "a chart of 42" not in contents(interpreter)


def test_only_one_block_runs_after_an_installation(chatting: Chatting) -> None:
    interpreter, _ = chatting(text(INSTALL + CHART + "```python\nprint('third')\n```"), text("42."), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat("Make a table", display=False)
    assert "third" not in contents(interpreter)
    assert "```python\nprint('third')\n```" in interpreter.messages[4]["note"]


def test_a_failed_installation_runs_nothing_else(chatting: Chatting) -> None:
    failing = "```python\n!pip install --no-index no-such-package-anywhere\n```\n"
    interpreter, server = chatting(text(failing + CHART), text(CHART), text("42."), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat("Make a table", display=False)
    sent = server.requests[1].body["messages"][-1]["content"]
    assert "print('a chart of', 6 * 7)" in sent or "a chart of 42" in contents(interpreter)


def test_a_turn_that_only_installed_goes_on(chatting: Chatting) -> None:
    for model in (SMALL, None):
        first = tool_call("python", "%pip install psutil") if model is None else text(INSTALL)
        last = tool_call("python", "print(6 * 7)") if model is None else text("```python\nprint(6 * 7)\n```")
        interpreter, server = chatting(first, text("The task is done."), last, text("It is 42."), auto_run=True)
        if model is not None:
            interpreter.llm.model = model
        interpreter.chat("Make a table", display=False)
        assert ONLY_INSTALLED.format(request="Make a table") in server.requests[2].body["messages"][-1]["content"]
        assert contents(interpreter)[-2:] == ["42", "It is 42."]


def test_it_is_asked_twice_at_most(chatting: Chatting) -> None:
    done = [text("The task is done."), text("It really is."), text("I said so.")]
    interpreter, server = chatting(tool_call("python", "%pip install psutil"), *done, auto_run=True)
    interpreter.chat("Make a table", display=False)
    assert len(server.requests) == 4


def test_a_request_to_install_is_met_by_an_installation(chatting: Chatting) -> None:
    interpreter, server = chatting(tool_call("python", "%pip install psutil"), text("Installed."), auto_run=True)
    interpreter.chat("Please install psutil", display=False)
    assert len(server.requests) == 2


def test_an_installation_is_not_blamed_for_changing_no_file(chatting: Chatting) -> None:
    replies = ["```bash\npip install psutil\n```", "```python\nprint(1)\n```", "Done.", "Done."]
    interpreter, server = chatting(*map(text, replies), auto_run=True)
    interpreter.llm.model = SMALL
    interpreter.chat("Save the result as totals.csv.", display=False)
    assert "No file was changed" not in str(server.requests[1].messages[-1]["content"])
    assert "No file was changed" in str(server.requests[2].messages[-1]["content"])
