"""Results of MCP tools as plain values: structured content, JSON text, pictures."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from typing import Any

from interpreter.computer_api.tool import Picture
from interpreter.console_text import visible
from interpreter.runtimes.python.driver.parcels import link_to, with_raw

MAX_RESULT_LENGTH = 40_000_000  # characters of a result as JSON
_PNG = b"\x89PNG\r\n\x1a\n"


def value_of(result: Mapping[str, Any], server: str) -> Any:
    """Return the value of a result. `raw` is what the server sent."""
    structured, content = result.get("structuredContent"), result.get("content") or []
    if structured is not None:
        # A tool that returns no object has it wrapped like this.
        is_wrapped = isinstance(structured, dict) and set(structured) == {"result"}
        value = structured["result"] if is_wrapped else structured
    elif len(content) == 1:
        value = _value_of_part(content[0], server)
    elif all(part.get("type") == "text" for part in content):
        value = "\n".join(part["text"] for part in content)
    else:
        value = [_value_of_part(part, server) for part in content]
    return with_raw(value, dict(result))


def contents_of(result: Mapping[str, Any]) -> Any:
    """Return the value of a resource that was read."""
    values = [_value_of_content(each) for each in result.get("contents") or ()]
    return with_raw(values[0] if len(values) == 1 else values, dict(result))


def prompt_text(result: Mapping[str, Any]) -> str:
    """Return the text of a prompt. Roles are included if any message isn't the user's."""
    messages = [(str(each.get("role")), _value_of_part(each.get("content") or {})) for each in result["messages"]]
    is_talk = any(role != "user" for role, _ in messages)
    return "\n\n".join(f"{role}: {value}" if is_talk else f"{value}" for role, value in messages)


def error_text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's error."""
    texts = [str(part.get("text", "")) for part in result.get("content") or () if part.get("type") == "text"]
    return visible("\n".join(texts)).strip()[:2000] or "it gave no reason"


def _value_of_part(part: Mapping[str, Any], server: str = "") -> Any:
    match part:
        case {"type": "text", "text": str(text)}:
            return _json_in(text)
        case {"type": "image", "data": str(data)}:
            return _picture(base64.b64decode(data))
        case {"type": "audio", "data": str(data)} | {"type": "resource", "resource": {"blob": str(data)}}:
            return base64.b64decode(data)
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource_link", "uri": str()}:
            return link_to(dict(part), server)
    return dict(part)


def _value_of_content(content: Mapping[str, Any]) -> Any:
    match content:
        case {"text": str(text)}:
            return _json_in(text)
        case {"blob": str(blob), "mimeType": str(kind)} if kind.startswith("image/"):
            return _picture(base64.b64decode(blob))
        case {"blob": str(blob)}:
            return base64.b64decode(blob)
    return dict(content)


def _json_in(text: str) -> Any:
    """Parse a text that is one JSON object or array; return any other text as it is."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _picture(data: bytes) -> Any:
    """Convert to a picture. Other formats than PNG need Pillow, and stay bytes without it."""
    if not data.startswith(_PNG):
        try:
            from PIL import Image

            buffer = io.BytesIO()
            Image.open(io.BytesIO(data)).save(buffer, "PNG")
            data = buffer.getvalue()
        except (ImportError, OSError, ValueError):
            return data
    return Picture(data, int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
