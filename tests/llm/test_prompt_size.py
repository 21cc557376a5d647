"""The default prompt stays short."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from interpreter import OpenInterpreter
from interpreter.llm.context import estimate_text
from interpreter.tools import execute_tool
from scripted_llm import Python, Shell


def test_the_default_prompt_and_the_tool_take_at_most_450_tokens() -> None:
    interpreter = OpenInterpreter()
    interpreter.computer.languages = [Python, Shell]
    seen: dict[str, Any] = {}

    def record(**params: Any) -> Iterator[dict[str, Any]]:
        seen.update(params)
        yield {"choices": [{"delta": {"content": "Hi"}}]}

    interpreter.llm.completions = record
    interpreter.chat("hi", display=False)
    [system, _] = seen["messages"]
    tool = json.dumps(execute_tool(lambda: ["python", "shell", "javascript"], lambda *block: []).as_function())
    assert 100 < estimate_text(system["content"]) + estimate_text(tool) <= 450
