"""`vars(interpreter)` has what 0.4.3 stores there, without making it before it is asked for."""

from __future__ import annotations

import copy
import subprocess
import sys

from interpreter import OpenInterpreter


def test_the_parts_of_an_interpreter_are_in_its_vars() -> None:
    interpreter = OpenInterpreter(auto_run=True, custom_instructions="Be kind.")
    stored = vars(interpreter)
    assert {"messages", "llm", "computer", "auto_run"} <= stored.keys()
    assert stored["messages"] is interpreter.messages
    assert stored["llm"] is interpreter.llm and stored["computer"] is interpreter.computer
    interpreter.messages.append({"role": "user", "type": "message", "content": "Hi"})
    assert interpreter.__dict__["messages"] == interpreter.messages


def test_a_copy_still_has_its_own_parts() -> None:
    interpreter = OpenInterpreter(auto_run=True)
    _ = vars(interpreter)
    other = copy.copy(interpreter)
    assert other.auto_run and other.llm is not interpreter.llm


def test_making_an_interpreter_loads_no_model_and_no_computer() -> None:
    code = (
        "import sys\nfrom interpreter import interpreter\ninterpreter.auto_run = True\n"
        "assert not {'interpreter.llm.llm', 'interpreter.computer_api.computer'} & set(sys.modules)\n"
        "vars(interpreter)\nassert 'interpreter.llm.llm' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
