"""Models trained for computer use: their own tool is offered, actions run as code and are sent back unchanged."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anthropic_server
import responses_server
from anthropic_server import AnthropicServer
from interpreter import BaseLanguage, OpenInterpreter
from interpreter.computer_api.screen.computer_use import ModelScreen, actions_to_python, kind_of
from interpreter.messages import Chunk
from model_server import ModelServer
from responses_server import ResponsesServer

PIXEL = "iVBORw0KGgo="
SCREEN = ModelScreen(1280, 800)
Talk = tuple[OpenInterpreter, ModelServer]


class Acting(BaseLanguage):
    """A stand-in for Python that prints its code and shows the screen."""

    name = "Python"

    def run(self, code: str) -> Iterator[Chunk]:
        yield {"type": "console", "format": "output", "content": f"ran {code}\n"}
        if "blind" not in code:
            yield {"type": "image", "format": "base64.png", "content": PIXEL}


@pytest.fixture
def talk() -> Iterator[Any]:
    opened: list[Talk] = []

    def start(kind: type[ModelServer], model: str, *replies: Any) -> Talk:
        server = kind(replies).start()
        interpreter = OpenInterpreter(auto_run=True, system_message="Be brief.", shrink_images=False)
        interpreter.llm.model = model
        interpreter.llm.api_base = server.address if kind is AnthropicServer else server.base_url
        interpreter.llm.api_key, interpreter.llm.max_retries = "key", 0
        interpreter.llm.supports_vision = True
        interpreter.computer.languages = [Acting]
        interpreter.agent.native_tools = SCREEN
        opened.append((interpreter, server))
        return opened[-1]

    yield start
    for interpreter, server in opened:
        interpreter.computer.terminate()
        server.close()


def codes(interpreter: OpenInterpreter) -> list[str]:
    return [message["content"] for message in interpreter.messages if message["type"] == "code"]


@pytest.mark.parametrize(
    ("model", "tool", "beta"),
    [
        ("claude-3-5-sonnet-20241022", "computer_20241022", "computer-use-2024-10-22"),
        ("claude-sonnet-4-20250514", "computer_20250124", "computer-use-2025-01-24"),
        ("claude-opus-4-5", "computer_20251124", "computer-use-2025-11-24"),
    ],
)
def test_anthropic_models_get_the_tool_version_they_know(talk: Any, model: str, tool: str, beta: str) -> None:
    interpreter, server = talk(
        AnthropicServer, f"anthropic/{model}", anthropic_server.message(anthropic_server.say("Hi."))
    )
    interpreter.chat("Hello", display=False)
    request = server.requests[-1]
    names = {each["name"]: each for each in request.body["tools"]}
    assert set(names) == {"execute", "computer"}
    assert (names["computer"]["type"], names["computer"]["display_width_px"]) == (tool, 1280)
    assert request.headers["anthropic-beta"] == beta


def test_the_computer_tool_is_offered_only_in_os_mode(talk: Any) -> None:
    interpreter, server = talk(
        AnthropicServer, "anthropic/claude-opus-4-5", anthropic_server.message(anthropic_server.say("Hi."))
    )
    interpreter.agent.native_tools = None
    interpreter.chat("Hello", display=False)
    assert [each["name"] for each in server.requests[-1].body["tools"]] == ["execute"]
    assert "anthropic-beta" not in server.requests[-1].headers


def test_models_without_computer_use_have_no_computer_tool() -> None:
    assert kind_of("anthropic", "claude-3-haiku-20240307") is None
    assert kind_of("responses", "gpt-5") is None
    assert kind_of("chat", "claude-opus-4-5") is None


def test_an_anthropic_action_runs_as_code_and_is_sent_back_unchanged(talk: Any) -> None:
    click = anthropic_server.act(action="left_click", coordinate=[40, 50], split=7)
    interpreter, server = talk(
        AnthropicServer,
        "anthropic/claude-opus-4-5",
        anthropic_server.message(anthropic_server.say("I click."), click),
        anthropic_server.message(anthropic_server.say("Done.")),
    )
    interpreter.chat("Press it", display=False)
    assert codes(interpreter) == ["computer.mouse.click(x=40, y=50)"]
    _, said, result = server.requests[-1].body["messages"]
    assert said["content"][1]["name"] == "computer"
    assert said["content"][1]["input"] == {"action": "left_click", "coordinate": [40, 50]}
    assert [block["type"] for block in result["content"]] == ["tool_result", "text", "image"]


def test_an_edited_action_is_sent_back_as_code(talk: Any) -> None:
    interpreter, server = talk(
        AnthropicServer,
        "anthropic/claude-opus-4-5",
        anthropic_server.message(anthropic_server.act(action="key", text="ctrl+s")),
        anthropic_server.message(anthropic_server.say("Done.")),
        anthropic_server.message(anthropic_server.say("Yes.")),
    )
    interpreter.chat("Save", display=False)
    next(message for message in interpreter.messages if message["type"] == "code")["content"] = "pass"
    interpreter.chat("Sure?", display=False)
    uses = [b for m in server.requests[-1].body["messages"] for b in m["content"] if b["type"] == "tool_use"]
    assert [(each["name"], each["input"]["code"]) for each in uses] == [("execute", "pass")]


def test_an_openai_action_is_answered_with_a_screenshot(talk: Any) -> None:
    interpreter, server = talk(
        ResponsesServer,
        "openai/responses/computer-use-preview",
        responses_server.response(
            responses_server.reasoning("Hm."),
            responses_server.act({"type": "click", "x": 1, "y": 2, "button": "right"}),
        ),
        responses_server.response(responses_server.say("Done.")),
    )
    interpreter.chat("Press it", display=False)
    first, second = server.requests
    assert {
        "type": "computer_use_preview",
        "display_width": 1280,
        "display_height": 800,
        "environment": "linux",
    } in first.body["tools"]
    assert first.body["truncation"] == "auto"
    assert codes(interpreter) == ["computer.mouse.right_click(x=1, y=2)"]
    called, answered, note = second.body["input"][-3:]
    assert (called["type"], called["action"]["button"]) == ("computer_call", "right")
    assert (answered["type"], answered["call_id"]) == ("computer_call_output", called["call_id"])
    assert answered["output"] == {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PIXEL}"}
    # Such an answer has no room for printed output, so a message after it carries the output.
    assert (note["role"], note["content"][0]["text"].endswith("ran computer.mouse.right_click(x=1, y=2)")) == (
        "user",
        True,
    )


def test_several_actions_in_one_call_become_one_block(talk: Any) -> None:
    actions = (
        {"type": "double_click", "x": 5, "y": 6},
        {"type": "type", "text": "Zoë ✓"},
        {"type": "keypress", "keys": ["CTRL", "S"]},
    )
    interpreter, server = talk(
        ResponsesServer,
        "openai/responses/gpt-5.4",
        responses_server.response(responses_server.act(*actions)),
        responses_server.response(responses_server.say("Done.")),
    )
    interpreter.chat("Write it", display=False)
    assert {"type": "computer"} in server.requests[0].body["tools"]
    [code] = codes(interpreter)
    assert code.splitlines() == [
        "computer.mouse.double_click(x=5, y=6)",
        "computer.keyboard.write('Zoë ✓')",
        "computer.keyboard.hotkey('ctrl', 's')",
    ]


def test_an_action_without_a_screenshot_is_sent_back_as_a_function_call(talk: Any) -> None:
    interpreter, server = talk(
        ResponsesServer,
        "openai/responses/computer-use-preview",
        responses_server.response(responses_server.act({"type": "type", "text": "blind"})),
        responses_server.response(responses_server.say("Done.")),
    )
    interpreter.chat("Write it", display=False)
    kinds = [item["type"] for item in server.requests[-1].body["input"]]
    assert kinds == ["message", "function_call", "function_call_output"]


def test_safety_checks_ask_the_user_and_are_acknowledged(talk: Any) -> None:
    check = {"id": "c1", "code": "malicious_instructions", "message": "The page gives orders."}
    interpreter, server = talk(
        ResponsesServer,
        "openai/responses/computer-use-preview",
        responses_server.response(responses_server.act({"type": "wait"}, checks=[check])),
        responses_server.response(responses_server.say("Done.")),
    )
    interpreter.chat("Go on", display=False)
    [code] = codes(interpreter)
    assert "The page gives orders." in code and "input(" in code
    assert server.requests[-1].body["input"][-2]["acknowledged_safety_checks"] == [check]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        ({"action": "screenshot"}, "computer.display.view(screen=-1, active_app_only=False)"),
        ({"action": "left_click"}, "computer.mouse.click()"),
        ({"action": "left_click", "coordinate": [1, 2], "text": "shift"}, "computer.keyboard.down('shift')\ncomputer.mouse.click(x=1, y=2)\ncomputer.keyboard.up('shift')"),
        ({"action": "middle_click", "coordinate": [1, 2]}, "computer.mouse.click(x=1, y=2, button='middle')"),
        ({"action": "triple_click", "coordinate": [1, 2]}, "computer.mouse.triple_click(x=1, y=2)"),
        ({"action": "mouse_move", "coordinate": [1, 2]}, "computer.mouse.move(x=1, y=2)"),
        ({"action": "left_mouse_down"}, "computer.mouse.down()"),
        ({"action": "key", "text": "Return"}, "computer.keyboard.press('enter')"),
        ({"action": "key", "text": "ctrl++"}, "computer.keyboard.hotkey('ctrl', '+')"),
        ({"action": "key", "text": "Page_Down", "repeat": 3}, "computer.keyboard.press('pagedown', presses=3)"),
        ({"action": "scroll", "coordinate": [1, 2], "scroll_direction": "down", "scroll_amount": 4}, "computer.mouse.move(x=1, y=2)\ncomputer.mouse.scroll(-4)"),
        ({"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": -250}, "computer.mouse.move(x=1, y=2)\ncomputer.mouse.scroll(2)"),
        ({"type": "click", "x": 1, "y": 2, "button": "wheel"}, "computer.mouse.click(x=1, y=2, button='middle')"),
        ({"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}, "computer.mouse.move(x=1, y=2)\ncomputer.mouse.down()\ncomputer.mouse.move(x=3, y=4)\ncomputer.mouse.up()"),
        ({"action": "wait", "duration": 1.5}, "import time\ntime.sleep(1.5)\ncomputer.display.wait_until_still()"),
        ({"action": "zoom", "region": [10, 20, 30, 60]}, "computer.display.view(region=(10, 20, 20, 40))"),
    ],
)  # fmt: skip
def test_actions_translate_to_code(action: dict[str, Any], code: str) -> None:
    assert actions_to_python([action], SCREEN) == code


def test_coordinates_in_a_scaled_screenshot_map_back_to_the_screen() -> None:
    half = ModelScreen(1280, 800, scale=2, left=1920)
    assert (
        actions_to_python([{"action": "left_click", "coordinate": [100, 50]}], half)
        == "computer.mouse.click(x=2120, y=100)"
    )


@given(st.text())
def test_typed_text_cannot_escape_its_string_literal(text: str) -> None:
    [call] = [
        node
        for node in ast.walk(ast.parse(actions_to_python([{"type": "type", "text": text}], SCREEN)))
        if isinstance(node, ast.Call)
    ]
    assert ast.literal_eval(call.args[0]) == text


@given(st.dictionaries(st.sampled_from(["action", "type", "text"]), st.text(max_size=20)))
def test_unknown_actions_translate_to_valid_python(action: dict[str, Any]) -> None:
    ast.parse(actions_to_python([action], SCREEN))


@pytest.mark.parametrize(
    "action",
    [
        {"action": "left_click", "coordinate": ["left", "top"]},
        {"action": "left_click", "coordinate": [1]},
        {"action": "mouse_move", "coordinate": [float("nan"), 1]},
        {"action": "scroll", "scroll_direction": ["down"]},
        {"action": "wait", "duration": "long"},
        {"type": "drag", "path": [{"x": 1}]},
        {"action": "key", "text": 7},
        "click",
    ],
)
def test_an_invalid_action_translates_to_code_that_raises_an_error(action: Any) -> None:
    with pytest.raises(ValueError, match="not an action of the computer tool"):
        exec(actions_to_python([action], SCREEN))
