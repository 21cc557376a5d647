"""The tool that asks the model outside the conversation, about texts of any length."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from interpreter.computer_api.tool import Tool
from interpreter.errors import BudgetExceededError, ComputerError
from interpreter.llm.context import BYTES_PER_TOKEN, estimate_text

if TYPE_CHECKING:
    from interpreter.llm import SideChat


MOST_CALLS = 40
AT_ONCE = 4
SYSTEM = "You answer one question for a program. Say what is asked for and nothing else."
PART = (
    "You read one part of a longer text for a program. Answer from this part alone, briefly; "
    "if it has nothing on the question, say only: nothing."
)
SUMMARY = "Summarize this text. Keep what matters: facts, names, numbers, conclusions."


class Ai(Tool):
    """Asks the model of the conversation. The conversation does not see it; its cost counts in the session."""

    def chat(self, text: str, base64: str | None = None) -> str:
        """Ask the model something, with an image as base64 if there is one, and get its answer as text."""
        model = self._model()
        if base64 is not None and not model.vision:
            raise ComputerError(
                f"The model {model.model} cannot see images. computer.vision.ocr(base_64=...) reads the text in one."
            )
        return model.answer(SYSTEM, text, base64)

    def query(self, text: str, query: str, custom_reduce_query: str | None = None, max_calls: int = MOST_CALLS) -> str:
        """Ask a question about a text of any length, in parts if need be, with at most `max_calls` requests."""
        model = self._model()
        plan = plan_for(text, query, model.window(estimate_text(text) + estimate_text(query)))
        self._check(model, plan, max_calls)
        if plan.calls == 1:
            return model.answer(SYSTEM, f"{query}\n\n<text>\n{text}\n</text>")
        asked = [f"{query}\n\n<part>\n{piece}\n</part>" for piece in pieces(text, plan.size)]
        return self._reduced(self._answers(PART, asked, plan), custom_reduce_query or query, plan, max_calls)

    def summarize(self, text: str) -> str:
        """A summary of a text of any length."""
        return self.query(text, SUMMARY, "Make one summary of these summaries of the parts of a text, in their order.")

    def _reduced(self, answers: list[str], query: str, plan: Plan, max_calls: int) -> str:
        """One answer from many, over as many rounds as it takes."""
        calls = len(answers)
        while True:
            groups = together(answers, plan.size)
            calls += len(groups)
            if calls > max_calls:
                raise ComputerError(
                    f"The answers were longer than expected: {max_calls} requests are not enough. "
                    f"Give max_calls={calls * 2}."
                )
            asked = [f"{query}\n\nFrom the parts of the text:\n\n{group}" for group in groups]
            if len(asked) == 1:
                return self._model().answer(SYSTEM, asked[0])
            answers = self._answers(SYSTEM, asked, plan)

    def _answers(self, system: str, asked: list[str], plan: Plan) -> list[str]:
        """The model's answers, in order; the first error ends it."""
        with ThreadPoolExecutor(self._at_once(), "computer.ai") as pool:
            waiting = [pool.submit(self._model(plan.reply).answer, system, each) for each in asked]
            try:
                return [each.result() for each in waiting]
            finally:
                for each in waiting:
                    each.cancel()

    def _at_once(self) -> int:
        """One at a time where a budget has to be kept, or a server on this machine does the work."""
        model = self._model()
        return 1 if model.has_budget or model.is_near else AT_ONCE

    def _check(self, model: SideChat, plan: Plan, max_calls: int) -> None:
        price = model.price()
        cost = price.cost(plan.tokens // plan.calls, plan.reply) * plan.calls if price is not None else None
        about = f"{plan.calls} requests with {plan.tokens:,} tokens" + (f", about ${cost:.2f}" if cost else "")
        if plan.calls > max_calls:
            raise ComputerError(
                f"This text would take {about}, and max_calls is {max_calls}. Search in it for the parts that matter, "
                f"or give max_calls={plan.calls}."
            )
        if cost and model.max_budget is not None and model.usage.cost + cost > model.max_budget:
            raise BudgetExceededError(
                f"This text would take {about}: more than is left of the budget (max_budget). "
                "Search in it for the parts that matter.",
                spent=model.usage,
            )

    def _model(self, max_tokens: int | None = None) -> SideChat:
        if self.computer.interpreter is None:
            raise ComputerError("There is no model to ask: this computer belongs to no interpreter.")
        from interpreter.llm import SideChat

        return SideChat(self.computer.interpreter.llm, max_tokens)


UNKNOWN_WINDOW = 8_000  # tokens, where the real size is not known
LARGEST_PIECE = 32_000  # tokens: in longer ones models overlook things
SMALLEST_PIECE = 200
OVERLAP = 0.05  # of a piece, at the beginning of the next
REPLY = 1_000  # tokens of an answer about one piece


@dataclass(frozen=True)
class Plan:
    """How a text is cut, and what asking about it takes."""

    size: int
    """Bytes of a piece."""
    calls: int
    tokens: int
    """All tokens that are sent."""
    reply: int
    """The most tokens of an answer about a piece."""


def plan_for(text: str, query: str, window: int | None) -> Plan:
    """How a text is cut for a model with this window; half of it is left to the question, the answer and mistakes."""
    asked = estimate_text(query) + 100
    piece = min(LARGEST_PIECE, max(SMALLEST_PIECE, (window or UNKNOWN_WINDOW) // 2 - asked))
    reply = min(REPLY, max(50, piece // 4))
    whole = estimate_text(text)
    if whole <= piece:
        return Plan(piece * BYTES_PER_TOKEN, 1, whole + asked, reply)
    parts = ceil(whole / (piece * (1 - OVERLAP)))
    calls, tokens, left = parts, whole + parts * asked, parts
    while left > 1:
        answers = left * reply
        left = ceil(left / max(2, piece // reply))
        calls, tokens = calls + left, tokens + answers + left * asked
    return Plan(piece * BYTES_PER_TOKEN, calls, tokens, reply)


def size_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def pieces(text: str, size: int) -> Iterator[str]:
    """The text in pieces of at most so many bytes, which end at a line or a word if they can and overlap a little."""
    start = 0
    while True:
        end = _end(text, start, size)
        yield text[start:end]
        if end >= len(text):
            return
        start = max(start + 1, end - max(1, int((end - start) * OVERLAP)))


def _end(text: str, start: int, size: int) -> int:
    """Where a piece ends that begins there."""
    end = min(len(text), start + size)
    while size_of(text[start:end]) > size:
        end = start + max(1, (end - start) * size // size_of(text[start:end]))
    if end == len(text):
        return end
    least = start + (end - start) * 3 // 4
    for sign in ("\n\n", "\n", " "):
        found = text.rfind(sign, least, end)
        if found > 0:
            return found + len(sign)
    return end


def together(answers: list[str], size: int) -> list[str]:
    """The answers, in their order, in groups that fit; at least two in each, shortened if they must be."""
    groups: list[list[str]] = []
    room = 0
    for number, answer in enumerate(answers, 1):
        told = f"Part {number}:\n{_within(answer, size // 2 - 20)}"
        if not groups or (size_of(told) > room and len(groups[-1]) > 1):
            groups.append([])
            room = size
        groups[-1].append(told)
        room -= size_of(told)
    return ["\n\n".join(group) for group in groups]


def _within(text: str, size: int) -> str:
    return text if size_of(text) <= size else text[: _end(text, 0, size - 4)] + "..."
