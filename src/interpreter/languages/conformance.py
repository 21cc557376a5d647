"""Checks that every language must pass, for any language class, including those from outside the package.

    from interpreter.languages.conformance import Samples, conform

    print(conform(Lua, Samples(say='print("Grüße, 世界 🌍")', fail='error("no")')))

A missing sample means that the language does not claim that ability.
"""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from interpreter.questions import without_questions
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.launch import RuntimeContext
from interpreter.runtimes.sharing import Shared

GREETING = "Grüße, 世界 🌍"
LINES = 50_000
VARIABLE, VALUE = "CONFORMANCE", "für 世界"
STUCK_AFTER = 60  # seconds until a block that has not printed `ready` is stopped


@dataclass(frozen=True)
class Samples:
    """Code in the language, for each of its abilities."""

    say: str  # prints `Grüße, 世界 🌍` and ends the line
    fail: str | None = None  # ends with an error
    exit_code: int | None = 1  # of `fail`
    keep: str | None = None  # sets a variable to 41
    recall: str | None = None  # prints that variable plus 1
    # Reads a line and prints it between angle brackets; nothing between them at the end of input.
    ask: str | None = None
    wait: str | None = None  # prints `ready` and then waits forever, without using the processor
    loop: str | None = None  # prints `ready` and then computes forever
    die: str | None = None  # kills its own process
    flood: str | None = None  # prints `line 1` to `line 50000`
    where: str | None = None  # prints the working directory
    go: str | None = None  # changes the working directory to the folder `below`
    env: str | None = None  # prints the environment variable CONFORMANCE
    figure: str | None = None  # shows an image
    table: str | None = None  # shows a table with the numbers 1 to 3
    give: str | None = None  # shares the number 41 with other languages, under the name `given`
    take: str | None = None  # prints the number `taken`, which another language shares, plus 1
    prints_tables: bool = False  # whether printed output comes in a table, with more than the text itself
    keeps_state_when_stopped: bool = True  # whether variables survive an interrupt of `wait` and `loop`


@dataclass
class Ran:
    """The chunks of a block that was run."""

    chunks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        shown = (chunk for chunk in self.chunks if chunk.get("format") == "output" and chunk["type"] == "console")
        return "".join(str(chunk["content"]) for chunk in shown)

    @property
    def ended(self) -> str | None:
        return self.chunks[-1].get("ended") if self.chunks else None

    @property
    def exit_code(self) -> int | None:
        return self.chunks[-1].get("exit_code") if self.chunks else None


class Subject:
    """A language under test: one instance for all checks, in a temporary folder."""

    def __init__(self, language: type[BaseLanguage], samples: Samples, **context: Any) -> None:
        self.samples = samples
        self._folder = TemporaryDirectory()
        self.folder = os.path.realpath(self._folder.name)
        Path(self.folder, "below").mkdir()
        self.context = RuntimeContext(cwd=self.folder, **context)
        self.context.exported[VARIABLE] = VALUE
        self.language = language(self) if inspect.signature(language).parameters else language()  # type: ignore[call-arg]

    def run(self, code: str, stop: bool = False) -> Ran:
        """Run a block to its end, or stop it from another thread once it has printed `ready`."""
        ran = Ran()
        stopper = threading.Thread(target=self.language.stop)
        watchdog = threading.Timer(STUCK_AFTER, self.language.stop)
        if stop:
            watchdog.start()
        for chunk in without_questions(self.language.run(code)):
            ran.chunks.append(dict(chunk))
            if stop and not stopper.ident and "ready" in ran.text:
                stopper.start()
        watchdog.cancel()
        if stop:
            expect(stopper.ident is not None, "print `ready` while it runs", ran)
            stopper.join()
        return ran

    def close(self) -> None:
        self.language.terminate()
        self._folder.cleanup()


class NonConforming(AssertionError):
    """A language does not do what its samples claim."""


def expect(condition: bool, what: str, ran: Ran) -> None:
    if not condition:
        raise NonConforming(f"It should {what}. It did: ended={ran.ended}, {ran.chunks[-20:]}")


# -- the checks: each gets the subject and the samples that its parameters name ----------------------------------------


def output(subject: Subject, say: str) -> None:
    ran = subject.run(say)
    is_there = GREETING in ran.text if subject.samples.prints_tables else ran.text == GREETING + "\n"
    expect(is_there, f"print {GREETING!r} and nothing else", ran)
    expect((ran.ended, ran.exit_code) == ("done", 0), "end as done, with exit code 0", ran)


def exit_codes(subject: Subject, fail: str) -> None:
    ran = subject.run(fail)
    wanted = subject.samples.exit_code
    expect((ran.ended, ran.exit_code) == ("error", wanted), f"end as an error, with exit code {wanted}", ran)
    expect(bool(ran.text.strip()) or not subject.language.explains_failures, "say what went wrong", ran)
    output(subject, subject.samples.say)


def state(subject: Subject, keep: str, recall: str) -> None:
    subject.run(keep)
    ran = subject.run(recall)
    expect(ran.text.split()[-1:] == ["42"], "keep a variable from block to block", ran)


def answered_input(subject: Subject, ask: str) -> None:
    subject.context.on_input = lambda prompt, password: "Ædam 🌍"
    ran = subject.run(ask)
    subject.context.on_input = None
    expect("<Ædam 🌍>" in ran.text, "read what the user answers", ran)


def no_input(subject: Subject, ask: str) -> None:
    ran = subject.run(ask)
    expect(ran.ended in ("done", "error"), "end when there is no input", ran)
    expect("<>" in ran.text or ran.ended == "error", "take the end of input for an empty line, or fail", ran)


def _interrupted(subject: Subject, code: str) -> None:
    samples = subject.samples
    if samples.keep:
        subject.run(samples.keep)
    ran = subject.run(code, stop=True)
    expect(ran.ended == "interrupted", "end as interrupted", ran)
    if samples.recall and samples.keeps_state_when_stopped:
        ran = subject.run(samples.recall)
        expect(ran.text.split()[-1:] == ["42"], "keep its variables when a block is stopped", ran)
    output(subject, samples.say)


def interrupt_while_waiting(subject: Subject, wait: str) -> None:
    _interrupted(subject, wait)


def interrupt_while_busy(subject: Subject, loop: str) -> None:
    _interrupted(subject, loop)


def death(subject: Subject, die: str) -> None:
    ran = subject.run(die)
    expect(ran.ended in ("died", "error"), "end as died or as an error", ran)
    output(subject, subject.samples.say)


def large_output(subject: Subject, flood: str) -> None:
    ran = subject.run(flood)
    lines = ran.text.splitlines()
    expect(lines[:1] == ["line 1"] and lines[-1:] == [f"line {LINES}"], "print from the first line to the last", ran)
    expect(len(lines) == LINES, f"print {LINES} lines, not {len(lines)}", ran)


def directory(subject: Subject, where: str) -> None:
    ran = subject.run(where)
    expect(ran.text.strip() == subject.folder, f"start in {subject.folder}", ran)
    subject.context.cwd = below = os.path.join(subject.folder, "below")
    ran = subject.run(where)
    expect(ran.text.strip() == below, "follow the session to another folder", ran)
    subject.context.cwd = subject.folder


def own_directory(subject: Subject, go: str, where: str) -> None:
    ran = subject.run(go)
    expect(subject.context.cwd == os.path.join(subject.folder, "below"), "take the session to another folder", ran)
    subject.context.cwd = subject.folder
    expect(subject.run(where).text.strip() == subject.folder, "follow it back", ran)


def environment(subject: Subject, env: str) -> None:
    expect(subject.run(env).text.strip() == VALUE, "have the session's variables", subject.run(env))
    subject.context.exported[VARIABLE] = "two\nlines"
    ran = subject.run(env)
    expect(ran.text.strip() == "two\nlines", "notice a variable that changed", ran)
    subject.context.exported[VARIABLE] = VALUE


def figures(subject: Subject, figure: str) -> None:
    ran = subject.run(figure)
    images = [chunk for chunk in ran.chunks if chunk["type"] == "image"]
    expect(len(images) == 1 and len(images[0]["content"]) > 100, "show one image", ran)
    expect(ran.ended == "done", "end as done", ran)


def tables(subject: Subject, table: str) -> None:
    ran = subject.run(table)
    pages = [chunk["content"] for chunk in ran.chunks if chunk.get("format") == "html"]
    expect(len(pages) == 1 and "<table" in pages[0], "show one table to the user", ran)
    expect("3" in ran.text, "show it to the model as text", ran)


def gives_values(subject: Subject, give: str) -> None:
    subject.context.shared.clear()
    ran = subject.run(give)
    given = subject.context.shared.get("given")
    expect(given is not None and given.content == {"value": 41}, "share a value with other languages", ran)


def takes_values(subject: Subject, take: str) -> None:
    for number in (1, 41):
        subject.context.shared["taken"] = Shared(-number, f'{{"value": {number}}}', {"value": number})
        ran = subject.run(take)
        expect(ran.text.split()[-1:] == [str(number + 1)], "have what other languages share", ran)


Check = Callable[..., None]
CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        output,
        exit_codes,
        state,
        answered_input,
        no_input,
        directory,
        own_directory,
        environment,
        figures,
        tables,
        gives_values,
        takes_values,
        large_output,
        interrupt_while_waiting,
        interrupt_while_busy,
        death,
    )
}


def conform(
    language: type[BaseLanguage], samples: Samples, checks: Collection[str] = tuple(CHECKS), **context: Any
) -> dict[str, str]:
    """Run the checks with one instance. Returns for each `passed`, `not claimed`, or what the language does instead."""
    subject, results = Subject(language, samples, **context), {}
    try:
        for name in checks:
            given = [getattr(samples, each) for each in list(inspect.signature(CHECKS[name]).parameters)[1:]]
            results[name] = "not claimed" if None in given else "passed"
            if None not in given:
                try:
                    CHECKS[name](subject, *given)
                except NonConforming as error:
                    results[name] = str(error)
    finally:
        subject.close()
    return results
