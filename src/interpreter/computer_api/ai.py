"""`computer.ai` asks the model outside the conversation, about texts of any length; `computer.vision`, on pictures."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from typing import Any

from interpreter.computer_api.at_session import read_bytes
from interpreter.computer_api.tool import ComputerTool, Picture
from interpreter.errors import BudgetExceededError, ComputerError
from interpreter.llm import SideChat
from interpreter.llm.context import BYTES_PER_TOKEN, estimate_text
from interpreter.llm.usage import look_up

MAX_CALLS = 40
MAX_PARALLEL_REQUESTS = 4
SYSTEM = "You answer one question for a program. Say what is asked for and nothing else."
PART = (
    "You read one part of a longer text for a program. Answer from this part alone, briefly; "
    "if it has nothing on the question, say only: nothing."
)
SUMMARY = "Summarize this text. Keep what matters: facts, names, numbers, conclusions."


class Ai(ComputerTool):
    """Asks the model of the conversation. The conversation does not see it; its cost counts in the session."""

    def chat(self, text: str, base64: str | None = None) -> str:
        """Ask the model something, with an image as base64 if there is one, and get its answer as text."""
        model = self._model()
        if base64 is not None and not model.vision:
            raise ComputerError(
                f"The model {model.model} doesn't accept images. computer.vision.ocr(base_64=...) reads the text in "
                f"one."
            )
        return model.answer(SYSTEM, text, *filter(None, [base64]))

    def query(self, text: str, query: str, custom_reduce_query: str | None = None, max_calls: int = MAX_CALLS) -> str:
        """Ask a question about a text of any length, in parts if needed, with at most `max_calls` requests."""
        model = self._model()
        plan = plan_split(text, query, model.window(estimate_text(text) + estimate_text(query)))
        self._check(model, plan, max_calls)
        if plan.calls == 1:
            return model.answer(SYSTEM, f"{query}\n\n<text>\n{text}\n</text>")
        asked = [f"{query}\n\n<part>\n{piece}\n</part>" for piece in pieces(text, plan.size)]
        answers = self._answers(PART, asked, plan)
        calls = len(answers)
        while True:  # one answer from many, over as many rounds as it takes
            groups = together(answers, plan.size)
            calls += len(groups)
            if calls > max_calls:
                raise ComputerError(
                    f"The answers were longer than expected: {max_calls} requests are not enough. "
                    f"Pass max_calls={calls * 2}."
                )
            asked = [f"{custom_reduce_query or query}\n\nFrom the parts of the text:\n\n{group}" for group in groups]
            if len(asked) == 1:
                return model.answer(SYSTEM, asked[0])
            answers = self._answers(SYSTEM, asked, plan)

    def summarize(self, text: str) -> str:
        """Summarize a text of any length."""
        return self.query(text, SUMMARY, "Make one summary of these summaries of the parts of a text, in their order.")

    def _answers(self, system: str, asked: list[str], plan: SplitPlan) -> list[str]:
        """Return the model's answers, in order; the first error ends it."""
        model = self._model()
        # One at a time where a budget has to be kept, or a server on this machine does the work.
        has_budget = model.max_budget is not None or model.max_budget_tokens is not None
        at_once = 1 if has_budget or model.is_near else MAX_PARALLEL_REQUESTS
        with ThreadPoolExecutor(at_once, "computer.ai") as pool:
            return list(pool.map(lambda each: self._model(plan.reply).answer(system, each), asked))

    def _check(self, model: SideChat, plan: SplitPlan, max_calls: int) -> None:
        price = look_up(model.model, model.api_base).price
        cost = price.cost(plan.tokens // plan.calls, plan.reply) * plan.calls if price is not None else None
        about = f"{plan.calls} requests with {plan.tokens:,} tokens" + (f", about ${cost:.2f}" if cost else "")
        if plan.calls > max_calls:
            raise ComputerError(
                f"This text would take {about}, and max_calls is {max_calls}. Search it for the parts that matter, or "
                f"give max_calls={plan.calls}."
            )
        if cost and model.max_budget is not None and model.usage.cost + cost > model.max_budget:
            raise BudgetExceededError(
                f"This text would take {about}, more than is left of the budget (max_budget). Search it for the parts "
                f"that matter.",
                spent=model.usage,
            )

    def _model(self, max_tokens: int | None = None) -> SideChat:
        if (settings := self.computer.settings) is None:
            raise ComputerError("There is no model to ask, because this computer has no interpreter.")
        return SideChat(settings.llm, max_tokens)


UNKNOWN_WINDOW = 8_000  # tokens, if the real size is unknown
MAX_PIECE_TOKENS = 32_000  # tokens: in longer ones models overlook things
MIN_PIECE_TOKENS = 200
OVERLAP = 0.05  # of a piece, at the beginning of the next
REPLY_TOKENS = 1_000  # of an answer about one piece


@dataclass(frozen=True)
class SplitPlan:
    """A text divided into parts, with the requests and tokens that a question about it takes."""

    size: int  # bytes of a piece
    calls: int
    tokens: int  # all that are sent
    reply: int  # the most tokens of an answer about a piece


def plan_split(text: str, query: str, window: int | None) -> SplitPlan:
    """Plan the pieces of a text for a model with this window; half of it is left for the question and answer."""
    asked = estimate_text(query) + 100
    piece = min(MAX_PIECE_TOKENS, max(MIN_PIECE_TOKENS, (window or UNKNOWN_WINDOW) // 2 - asked))
    reply = min(REPLY_TOKENS, max(50, piece // 4))
    whole = estimate_text(text)
    if whole <= piece:
        return SplitPlan(piece * BYTES_PER_TOKEN, 1, whole + asked, reply)
    parts = ceil(whole / (piece * (1 - OVERLAP)))
    calls, tokens, left = parts, whole + parts * asked, parts
    while left > 1:
        answers = left * reply
        left = ceil(left / max(2, piece // reply))
        calls, tokens = calls + left, tokens + answers + left * asked
    return SplitPlan(piece * BYTES_PER_TOKEN, calls, tokens, reply)


def size_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def pieces(text: str, size: int) -> Iterator[str]:
    """Cut the text into pieces of at most this many bytes, at a line or word end if possible, with a small overlap."""
    start = 0
    while True:
        end = _end(text, start, size)
        yield text[start:end]
        if end >= len(text):
            return
        start = max(start + 1, end - max(1, int((end - start) * OVERLAP)))


def _end(text: str, start: int, size: int) -> int:
    """Return where the piece that begins at `start` ends."""
    end = min(len(text), start + size)
    while size_of(text[start:end]) > size:
        end = start + max(1, (end - start) * size // size_of(text[start:end]))
    if end == len(text):
        return end
    least = start + (end - start) * 3 // 4
    for sign in ("\n\n", "\n", " "):
        position = text.rfind(sign, least, end)
        if position > 0:
            return position + len(sign)
    return end


def together(answers: list[str], size: int) -> list[str]:
    """Group the answers, in their order, so that each group fits: at least two, shortened if necessary."""
    groups: list[list[str]] = []
    room = 0
    for number, answer in enumerate(answers, 1):
        if size_of(answer) > size // 2 - 20:
            answer = answer[: _end(answer, 0, size // 2 - 24)] + "..."
        part = f"Part {number}:\n{answer}"
        if not groups or (size_of(part) > room and len(groups[-1]) > 1):
            groups.append([])
            room = size
        groups[-1].append(part)
        room -= size_of(part)
    return ["\n\n".join(group) for group in groups]


class Vision(ComputerTool):
    """Looks at one picture: as base64, a path, a message, or an image of Pillow."""

    def load(self, load_moondream: bool = True, load_easyocr: bool = True) -> bool:
        """Return True: there is nothing to load."""
        return True

    def query(
        self,
        query: str = "Describe this image. Also tell me what text is in the image, if any.",
        base_64: str | None = None,
        path: str | None = None,
        lmc: dict[str, Any] | None = None,
        pil_image: Any = None,
    ) -> str:
        """Ask the model something about a picture."""
        image = self._image(base_64, path, lmc, pil_image)
        return self.computer.ai.chat(query, base64=base64.b64encode(image).decode("ascii"))

    def ocr(
        self,
        base_64: str | None = None,
        path: str | None = None,
        lmc: dict[str, Any] | None = None,
        pil_image: Any = None,
    ) -> str:
        """Read the text in a picture, line by line, on this machine."""
        lines = self.computer.display.get_text_as_list_of_lists(self._image(base_64, path, lmc, pil_image))
        return "\n".join(" ".join(line) for line in lines)

    def _image(self, base_64: str | None, path: str | None, lmc: dict[str, Any] | None, pil_image: Any) -> bytes:
        """Return the image file, from any of the accepted forms."""
        if lmc is not None:
            is_path = lmc.get("format") == "path"
            path, base_64 = (str(lmc["content"]), None) if is_path else (None, str(lmc["content"]))
        if path is not None:
            return read_bytes(self.computer, path)
        if base_64 is not None:
            try:
                return base64.b64decode(base_64.rpartition("base64,")[2], validate=True)
            except ValueError as error:
                raise ComputerError("This is not a base64-encoded image.") from error
        if isinstance(pil_image, Picture):
            return pil_image.png
        if pil_image is not None:
            return Picture.of(pil_image).png
        raise ValueError("Give the image as base_64, path, lmc (a message) or pil_image.")
