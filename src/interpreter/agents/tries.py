"""Several tries of one task: the best of N, and another model's try. One is kept, the others leave no trace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from interpreter.agents.subagents import SubAgent, Task, subagents_of
from interpreter.app.forks import plan_keep
from interpreter.errors import ComputerError, InterpreterError, NotRestorableError, UsageError
from interpreter.llm import SideChat
from interpreter.llm.context import estimate_text
from interpreter.llm.usage import in_dollars, look_up
from interpreter.questions import Confirm, Question
from interpreter.runtimes.python import Python
from interpreter.session import Action, ActionContext
from interpreter.session.checkpoints import PARTS, UndoAction
from interpreter.workspace.merge import merge

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.messages import Chunk, Message
    from interpreter.questions import Step

Judge = Callable[["OpenInterpreter"], float] | str
USUAL_REQUESTS = 3  # of one try, for an estimate
USUAL_REPLY = 300  # tokens
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
VARIABLES = (
    "The try that is kept ran in a sandbox. Loading its variables here could run code that it prepared. Load them?"
)
RATE = "You rate answers. Reply with a number from 0 (wrong) to 10 (right and complete), and nothing else."
SPREAD = 0.8  # from the first to the last temperature


@dataclass(frozen=True)
class Best:
    """The best of several tries, which was kept."""

    text: str
    scores: list[float | None]  # of each try; None: it failed
    winner: int
    cost: float
    kept: list[str]  # files that have changed here since, and so stay as they are
    lost: str = ""  # what of its variables was not brought here


def best_of(
    interpreter: OpenInterpreter,
    n: int,
    task: str,
    judge: Judge = "agreement",
    models: Sequence[str] = (),
    temperatures: Sequence[float] = (),
    budget: float | None = None,
    show: Callable[[], object] = lambda: None,
) -> Best:
    """Try a task in `n` forks, judge them, and keep the files, variables and conversation of the best.

    `judge` is a function that gets the fork and returns a score, `agreement` (the answer that most have), `model` (the
    model rates them), or `!command`: its last number, or 1 if it succeeds.
    """
    if n < 1:
        raise UsageError("best_of needs at least one try.")
    family = subagents_of(interpreter.agent)
    spread = temperatures or [SPREAD * number / max(1, n - 1) for number in range(n)]
    family.root.watchers.append(show)
    tries = []
    try:
        for number in range(n):
            model = models[number % len(models)] if models else None
            temperature = spread[number % len(spread)] if temperatures or not models else None
            share = None if budget is None else budget / n
            tries.append(family.start(Task(task, model=model, temperature=temperature, budget=share, is_try=True)))
        for each in tries:
            each.wait_until_ready()
        scores = scored(interpreter, tries, task, judge)
        ranked = sorted((score, -number) for number, score in enumerate(scores) if score is not None)
        if not ranked:
            raise ComputerError(f"All {n} tries failed. The last one: {tries[-1].error}")
        winner = -ranked[-1][1]
        cost = sum(each.used.cost for each in tries)
        action = KeepTry(interpreter, tries[winner])
        interpreter.session.perform(action, interpreter.user).result()
        return Best(str(tries[winner].value), scores, winner, cost, *action.result)
    finally:
        for each in tries:
            discard(each)
        family.root.watchers.remove(show)


def discard(attempt: SubAgent) -> None:
    """End a try without a trace."""
    if not attempt.ready.is_set():
        attempt.stop("not needed")
    attempt.decided.set()
    attempt.done.wait()
    attempt.settle_files("dropped")
    attempt.family.all.pop(attempt.number, None)


# -- judging ----------------------------------------------------------------------------------------------------------


def scored(interpreter: OpenInterpreter, tries: Sequence[SubAgent], task: str, judge: Judge) -> list[float | None]:
    """Score each try; None for one that failed."""
    if judge == "agreement":
        counts = Counter(essence(str(each.value)) for each in tries if is_open(each))
        return [float(counts[essence(str(each.value))]) if is_open(each) else None for each in tries]
    scores: list[float | None] = []
    for each in tries:
        fork = each.interpreter
        if not is_open(each) or fork is None:
            scores.append(None)
        elif callable(judge):
            scores.append(float(judge(fork)))
        elif judge == "model":
            text = f"Task:\n{task}\n\nAnswer:\n{each.value}"
            scores.append(float(([*NUMBER.findall(SideChat(interpreter.llm).answer(RATE, text)), "0"])[0]))
        elif judge.startswith("!"):
            scores.append(score_of_command(fork, judge[1:]))
        else:
            raise UsageError("`judge` is a function, 'agreement', 'model' or '!command'.")
    return scores


def is_open(attempt: SubAgent) -> bool:
    return attempt.ready.is_set() and attempt.error is None


def essence(answer: str) -> str:
    """Reduce an answer to the part that has to agree with other answers: its numbers, or else its words."""
    numbers = [each.replace(",", "") for each in NUMBER.findall(answer)]
    return " ".join(numbers or re.findall(r"\w+", answer.casefold()))


def score_of_command(fork: OpenInterpreter, command: str) -> float:
    """Run a command in the workspace of a fork: 0 if it fails, the last number that it prints, else 1."""
    output = fork.computer.run("shell", command)
    if any(each.get("exit_code") or each.get("ended", "done") != "done" for each in output):
        return 0.0
    printed = "".join(str(each["content"]) for each in output if each.get("format") == "output")
    return float((["1", *NUMBER.findall(printed)])[-1].replace(",", ""))


def estimate(interpreter: OpenInterpreter, n: int, models: Sequence[str] = ()) -> tuple[int, float | None]:
    """Estimate the tokens and dollars of `n` tries, if each asks the model a few times."""
    llm = interpreter.llm
    texts = [str(each.get("content", "")) for each in (interpreter.prompt.system_message(), *interpreter.messages)]
    read, written = sum(map(estimate_text, texts)) * USUAL_REQUESTS, USUAL_REPLY * USUAL_REQUESTS
    prices = [look_up(model, llm.api_base).price for model in (models or [llm.model])]
    known = [price.cost(read, written) for price in prices if price is not None]
    return n * (read + written), n * sum(known) / len(known) if len(known) == len(prices) else None


# -- keeping ----------------------------------------------------------------------------------------------------------


class KeepTry(Action):
    """Bring the files, the variables and the conversation of a try into the session: one step for an undo."""

    kind = "keep"

    def __init__(self, interpreter: OpenInterpreter, attempt: SubAgent) -> None:
        super().__init__()
        self._interpreter, self._attempt = interpreter, attempt
        self._loads = True

    def describe(self) -> str:
        return "a try is being kept"

    def judge(self, context: ActionContext) -> Iterator[Step]:
        """Ask before moving variables out of the sandbox, unless this session has one or runs code without asking."""
        permissions = context.actor.permissions
        if permissions.sandbox is None and permissions.mode != "auto":
            question = Question(Confirm(VARIABLES))
            yield question
            self._loads = question.approved

    def run(self, context: ActionContext) -> Generator[Chunk]:
        parent, child = self._interpreter, self._attempt.interpreter
        assert child is not None and child.forked is not None
        timeline, agent = parent.timeline, parent.agent
        moved = moved_messages(self._attempt.new_messages, child.workspace, parent.workspace)
        begins = bool(moved) and moved[0].get("role") == "user"
        parent.messages += moved[:1] if begins else []
        if begins:
            timeline.begin_turn(agent)
        steps = plan_keep(child)
        timeline.before_block("fork", "%best", in_turn=begins)
        try:
            folder = timeline.files.required_record().snapshot.folder
            written = merge(steps, child.forked.record.store, folder)
            lost = take_variables(parent, child) if self._loads else "The variables stayed in the sandbox."
        finally:
            timeline.after()
        parent.messages += moved[1:] if begins else moved
        parent.journal.sync()
        self.result = [each.path for each in (*written.kept, *written.failed)], lost
        self.outcome = "done"
        yield from ()


def take_variables(parent: OpenInterpreter, child: OpenInterpreter) -> str:
    """Move the Python variables of a fork here; what of them was lost, as a sentence."""
    after = child.computer.runtimes.runtime("python")
    if not isinstance(after, Python) or not after.has_begun():
        return ""
    before = parent.computer.runtimes.runtime("python")
    if not isinstance(before, Python):
        return "The variables could not be brought here."
    if not before.has_begun():
        parent.computer.run("python", "None")
    try:
        return str(before.take_back(after))
    except (NotRestorableError, InterpreterError) as error:
        return str(error)


def moved_messages(messages: Collection[Message], source: str, target: str) -> list[Message]:
    """Return the messages of a fork, as if it had worked in the workspace it came from."""
    moved: list[Message] = []
    for message in messages:
        content = message.get("content")
        if message.get("role") == "computer" and str(content).startswith("From now on: Code runs in a sandbox"):
            continue  # news about the sandbox of the fork
        copied: Any = {**message}
        if isinstance(content, str):
            copied["content"] = content.replace(source, target)
        moved.append(copied)
    return moved


# -- another model's try ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Retry:
    """Another model's try from an earlier moment on, beside what happened then."""

    interpreter: OpenInterpreter
    attempt: SubAgent
    checkpoint: int
    first: list[Message]

    @property
    def second(self) -> list[Message]:
        workspace = self.interpreter.workspace
        made = self.attempt.interpreter
        return moved_messages(self.attempt.new_messages, made.workspace if made is not None else workspace, workspace)

    def keep(self) -> tuple[list[str], str]:
        """Continue from that moment with the second try."""
        self.interpreter.restore(self.checkpoint)
        action = KeepTry(self.interpreter, self.attempt)
        self.interpreter.session.perform(action, self.interpreter.user).result()
        return action.result  # type: ignore[no-any-return]

    def drop(self) -> None:
        discard(self.attempt)


def retry(interpreter: OpenInterpreter, checkpoint: int, model: str) -> Retry:
    """Have another model try from a checkpoint on: in a fork of that moment, while this session stays as it is."""
    timeline = interpreter.timeline
    timeline.adopt()
    place = timeline.place_of(checkpoint)
    at = timeline.at(place)
    before, first = interpreter.messages[:at], interpreter.messages[at:]
    is_request = bool(first) and first[0].get("role") == "user"
    if not is_request and not before:
        raise UsageError("There is no request to try again at that checkpoint.")
    now = timeline.present
    family = subagents_of(interpreter.agent)
    interpreter.restore(checkpoint)
    try:
        text = str(first[0].get("content", "")) if is_request else ""
        attempt = family.start(Task(text, model=model, is_try=True))
        attempt.wait_for_fork()
    finally:
        interpreter.session.perform(redo_to(interpreter, now), interpreter.user).result()
    return Retry(interpreter, attempt, checkpoint, first)


def redo_to(interpreter: OpenInterpreter, to: int) -> Action:
    """Return to where the session was."""
    timeline = interpreter.timeline
    return UndoAction(timeline, interpreter.agent, "redo", lambda: timeline.plan(to, PARTS, "redo"), ())


def cost_line(attempt: SubAgent, model: str) -> str:
    used = attempt.used
    return f"{model}: {used.tokens:,} tokens{f', {in_dollars(used.cost)}' if used.cost else ''}"
