"""What a server asks the user for while one of its tools runs: fields of a form, or a visit to an address."""

from __future__ import annotations

from typing import Any

from interpreter.console_text import visible
from interpreter.host import processes
from interpreter.questions import ANSWER, APPROVE, CallTool, Input
from interpreter.tools import ToolContext

MAX_FIELDS, MAX_TRIES = 20, 5  # tries for each field


def ask_for(server: str, params: Any, context: ToolContext) -> dict[str, Any] | None:
    """Ask for what a server wants; None if the user declines. Nothing is asked but what the user reads as its words."""
    message = visible(str(params.message))[:2000]
    if params.mode == "url":
        text = f"The MCP server {server} asks you to open {visible(str(params.url))[:2000]}\n{message}\nContinue?"
        answer = context.ask(CallTool(server, text))
        return {} if answer is not None and answer.choice == APPROVE else None
    schema = params.requested_schema
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    content: dict[str, Any] = {}
    for number, (name, rule) in enumerate(list(properties.items())[:MAX_FIELDS]):
        intro = f"The MCP server {server} asks: {message}\n" if number == 0 else ""
        for _ in range(MAX_TRIES):
            answer = context.ask(Input(f"{intro}{_label(name, rule, name in required)}: "))
            if answer is None or answer.choice != ANSWER or answer.text is None:
                return None
            if not answer.text.strip() and name not in required:
                break
            value = _value(answer.text.strip(), rule)
            if value is not None:
                content[name] = value
                break
        else:
            return None
    return content


def open_if_agreed(server: str, url: str, context: ToolContext | None) -> bool:
    """Open the address where the user signs in to a server, if they agree."""
    text = f"The MCP server {server} asks you to sign in at {visible(url)[:2000]}\nOpen it in your browser?"
    answer = context.ask(CallTool(server, text)) if context is not None else None
    if answer is None or answer.choice != APPROVE:
        return False
    open_browser(url)
    return True


def open_browser(url: str) -> None:
    # Not waited for: some browsers stay in the foreground.
    processes.start(processes.python("-c", "import sys, webbrowser; webbrowser.open(sys.argv[1])", url))


def _label(name: str, rule: dict[str, Any], is_required: bool) -> str:
    label = visible(str(rule.get("title") or name))[:100]
    choices = rule.get("enum") or [each.get("const") for each in rule.get("oneOf") or ()]
    kind = (
        ", ".join(map(str, choices))
        if choices
        else {"boolean": "yes or no", "integer": "a whole number", "number": "a number"}.get(rule.get("type", ""), "")
    )
    description = visible(str(rule.get("description") or ""))[:300]
    about = "; ".join(filter(None, [description, kind, "" if is_required else "optional"]))
    return f"{label} ({about})" if about else label


def _value(text: str, rule: dict[str, Any]) -> Any:
    """Convert what was typed to the type of its field; None if that is not possible."""
    choices = rule.get("enum") or [each.get("const") for each in rule.get("oneOf") or ()]
    try:
        match rule.get("type"):
            case "boolean":
                return {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}.get(text.lower())
            case "integer":
                return int(text)
            case "number":
                return float(text)
    except ValueError:
        return None
    return text if not choices or text in choices else None
