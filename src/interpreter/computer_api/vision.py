"""The tool that looks at pictures: the model describes them, or their text is read on this machine."""

from __future__ import annotations

import base64
from typing import Any

from interpreter.computer_api.tool import Picture, Tool
from interpreter.errors import ComputerError

DESCRIBE = "Describe this image. Also tell me what text is in the image, if any."


class Vision(Tool):
    """Looks at one picture: as base64, a path, a message, or an image of Pillow."""

    def load(self, load_moondream: bool = True, load_easyocr: bool = True) -> bool:
        """Nothing has to be loaded any more: True."""
        return True

    def query(
        self,
        query: str = DESCRIBE,
        base_64: str | None = None,
        path: str | None = None,
        lmc: dict[str, Any] | None = None,
        pil_image: Any = None,
    ) -> str:
        """Ask the model something about a picture."""
        image = self._image(base_64, path, lmc, pil_image)
        answer: str = self.computer.ai.chat(query, base64=base64.b64encode(image).decode("ascii"))
        return answer

    def ocr(
        self,
        base_64: str | None = None,
        path: str | None = None,
        lmc: dict[str, Any] | None = None,
        pil_image: Any = None,
    ) -> str:
        """The text in a picture, line by line, read on this machine."""
        image = self._image(base_64, path, lmc, pil_image)
        lines = self.computer.display.get_text_as_list_of_lists(image)
        return "\n".join(" ".join(line) for line in lines)

    def _image(self, base_64: str | None, path: str | None, lmc: dict[str, Any] | None, pil_image: Any) -> bytes:
        """The picture's file, however it is given."""
        if lmc is not None:
            is_path = lmc.get("format") == "path"
            path, base_64 = (str(lmc["content"]), None) if is_path else (None, str(lmc["content"]))
        if path is not None:
            return bytes(self.computer.files._bytes(path))
        if base_64 is not None:
            try:
                return base64.b64decode(base_64.rpartition("base64,")[2], validate=True)
            except ValueError as error:
                raise ComputerError("This is not base64 of a picture.") from error
        if isinstance(pil_image, Picture):
            return pil_image.png
        if pil_image is not None:
            return Picture.of(pil_image).png
        raise ValueError("Give the picture: as base_64, path, lmc (a message) or pil_image.")
