"""computer.vision: images described by the model, or read locally with OCR."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from conversation import Chatting, chatting
from interpreter.computer_api.tool import Picture
from interpreter.errors import ComputerError
from interpreter.messages import Message

__all__ = ["chatting"]


def picture(words: str = "") -> Picture:
    image = Image.new("RGB", (480, 80), "white")
    ImageDraw.Draw(image).text((20, 20), words, fill="black", font=ImageFont.load_default(size=32))
    return Picture.of(image)


def sent(server: Any) -> str:
    url = server.requests[-1].messages[-1]["content"][-1]["image_url"]["url"]
    return str(url).rpartition("base64,")[2]


def test_query_accepts_an_image_in_every_form(chatting: Chatting) -> None:
    interpreter, server = chatting(*["A cat."] * 6)
    interpreter.llm.model = "gpt-4o"
    vision, shown = interpreter.computer.vision, picture("cat")
    Path("cat.png").write_bytes(shown.png)
    for given in (
        {"base_64": shown.base64},
        {"base_64": f"data:image/png;base64,{shown.base64}"},
        {"path": "cat.png"},
        {"lmc": {"type": "image", "format": "base64.png", "content": shown.base64}},
        {"lmc": {"type": "image", "format": "path", "content": "cat.png"}},
        {"pil_image": shown},
    ):
        assert vision.query("What is it?", **given) == "A cat."
        assert sent(server) == shown.base64
    assert server.requests[-1].messages[1]["content"] == "What is it?"


def test_text_that_starts_with_data_is_not_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sandboxed code could make a folder with that name, and point us outside the sandbox."""
    from interpreter.computer_api.screen.display.pictures import placed_pixels

    (tmp_path / "data:").mkdir()
    (tmp_path / "private.png").write_bytes(picture("private").png)
    monkeypatch.chdir(tmp_path)
    assert placed_pixels("private.png").pixels.size
    with pytest.raises(FileNotFoundError):
        placed_pixels("data:/../private.png")


def test_query_accepts_a_pillow_image(chatting: Chatting) -> None:
    interpreter, server = chatting("A cat.")
    interpreter.llm.model = "gpt-4o"
    assert interpreter.computer.vision.query(pil_image=picture().pil()) == "A cat."
    assert base64.b64decode(sent(server)).startswith(b"\x89PNG")
    assert "Describe" in server.requests[-1].messages[1]["content"]


def test_a_model_without_vision_raises_an_error(chatting: Chatting) -> None:
    interpreter, server = chatting("never asked")
    interpreter.llm.model, interpreter.llm.supports_vision = "gpt-4o", False
    with pytest.raises(ComputerError, match="doesn't accept images"):
        interpreter.computer.vision.query(pil_image=picture())
    assert server.requests == []


def test_vision_can_describe_images_for_a_model_without_vision(chatting: Chatting) -> None:
    """As `llm.vision_renderer` of the original: here with another interpreter's model."""
    seeing, _ = chatting("A cat on a mat.")
    seeing.llm.model = "gpt-4o"
    blind, server = chatting("I see.")
    blind.llm.model, blind.llm.supports_vision = "gpt-4o", False
    blind.llm.vision_renderer = seeing.computer.vision.query
    image: Message = {"role": "user", "type": "image", "format": "base64.png", "content": picture().base64}
    blind.messages = [image]
    blind.chat("What is it?", display=False)
    assert "A cat on a mat." in str(server.requests[0].messages)


def test_invalid_images_raise_clear_errors(chatting: Chatting) -> None:
    vision = chatting()[0].computer.vision
    with pytest.raises(ValueError, match="Give the image"):
        vision.query()
    with pytest.raises(FileNotFoundError, match=r"There is no file 'cat.png'"):
        vision.query(path="cat.png")
    with pytest.raises(ComputerError, match="not a base64-encoded"):
        vision.ocr(base_64="no base64!")
    assert vision.load() is True


def test_ocr_runs_locally(chatting: Chatting) -> None:
    interpreter, server = chatting()
    text = interpreter.computer.vision.ocr(pil_image=picture("Invoice 2024"))
    assert "Invoice 2024" in text
    assert server.requests == []
