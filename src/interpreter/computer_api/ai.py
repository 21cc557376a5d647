"""The tool that asks the model: apart from the conversation, about texts of any length."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from interpreter.computer_api.long_texts import Plan, pieces, plan_for, together
from interpreter.computer_api.tool import Tool
from interpreter.errors import BudgetExceededError, ComputerError
from interpreter.llm.context import estimate_text

if TYPE_CHECKING:
    from interpreter.llm.llm import AskedAside

MOST_CALLS = 40
AT_ONCE = 4
SYSTEM = "You answer one question for a program. Say what is asked for and nothing else."
PART = (
    "You read one part of a longer text for a program. Answer from this part alone, briefly; "
    "if it has nothing on the question, say only: nothing."
)
SUMMARY = "Summarize this text. Keep what matters: facts, names, numbers, conclusions."


class Ai(Tool):
    """Asks the model that the conversation has; the conversation does not see it, its costs count in the session's."""

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
        if not plan.is_long:
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
        """What the model says to each, in their order; the first error ends it."""
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

    def _check(self, model: AskedAside, plan: Plan, max_calls: int) -> None:
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

    def _model(self, max_tokens: int | None = None) -> AskedAside:
        if self.computer._interpreter is None:
            raise ComputerError("There is no model to ask: this computer belongs to no interpreter.")
        from interpreter.llm.llm import AskedAside

        return AskedAside(self.computer._interpreter.llm, max_tokens)
