"""Streams of chunks on an emulated screen of a given size."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from interpreter.frontends.terminal.render.display import TerminalDisplay, TerminalScreen
from interpreter.frontends.terminal.render.theme import Theme
from interpreter.messages import Chunk
from terminal.emulator import EmulatedOutput, Emulator


class Stage:
    """A display on an emulated terminal, with a clock that the test moves."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self.now = 100.0
        self.emulator = Emulator(columns, lines)
        self.out = EmulatedOutput(self.emulator)
        self.display = TerminalDisplay(TerminalScreen(self.out.write, self.emulator.size), Theme(), lambda: self.now)

    def show(self, *chunks: dict[str, Any]) -> None:
        for chunk in chunks:
            shown: Chunk = {"role": "assistant", **chunk}  # type: ignore[typeddict-item]
            self.display.show(shown)
            self.now += 0.05

    def wait(self, seconds: float) -> None:
        """Let time pass, drawing whenever the display is due."""
        end = self.now + seconds
        while (due := self.display.deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.display.tick()
        self.now = end

    @property
    def rows(self) -> list[str]:
        return self.emulator.everything


@pytest.fixture
def stage() -> Stage:
    return Stage()


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "content": text}


def code(text: str, language: str = "python") -> dict[str, Any]:
    return {"type": "code", "format": language, "content": text}


def output(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "computer", "type": "console", "format": "output", "content": text, **more}


def over(exit_code: int | None = 0, ended: str = "done", **more: Any) -> dict[str, Any]:
    chunk = {"role": "computer", "type": "console", "format": "active_line", "content": None}
    return {**chunk, "exit_code": exit_code, "ended": ended, **more}


def test_a_turn_shows_text_code_and_output(stage: Stage) -> None:
    stage.display.begin()
    stage.show(
        {"type": "message", "start": True},
        message("I will "),
        message("count.\n"),
        {"type": "message", "end": True},
    )
    stage.show(
        {**code(""), "start": True},
        code("x = 1\npri"),
        code("nt(x)"),
        {"type": "code", "format": "python", "end": True},
    )
    stage.show({"role": "computer", "type": "console", "start": True}, output("1\n"), over())
    stage.show({"role": "computer", "type": "console", "end": True}, message("Done."))
    stage.display.finish()
    rule = "─" * 72
    assert stage.rows == [
        "",
        "I will count.",
        "",
        "── python " + "─" * 62,
        "x = 1",
        "print(x)",
        rule,
        "1",
        "",
        "Done.",
    ]


def test_our_own_lines_appear_in_any_style(stage: Stage) -> None:
    for style in ("", "hint", "error"):
        stage.display.line(f"Said {style}.", style)
    assert [row.rstrip() for row in stage.rows if row.strip()] == ["Said .", "Said hint.", "Said error."]


def test_the_spinner_waits_counts_and_leaves_no_trace(stage: Stage) -> None:
    stage.display.begin()
    stage.wait(0.2)
    assert stage.rows == []
    stage.wait(3)
    assert stage.rows[-1].endswith("thinking 3 s")
    stage.show(message("Hello"))
    stage.wait(0.1)
    assert stage.rows == ["", "Hello"]
    stage.wait(2)
    assert "thinking 5 s" in stage.rows[-1]
    stage.display.finish()
    assert stage.rows == ["", "Hello"]


def test_an_idle_display_has_no_deadline(stage: Stage) -> None:
    stage.display.begin()
    stage.display.finish()
    assert stage.display.deadline() is None


def test_the_active_line_is_shown_while_a_block_is_silent(stage: Stage) -> None:
    stage.show(code("import time\ntime.sleep(9)\n"), {"type": "code", "format": "python", "end": True})
    stage.show({"role": "computer", "type": "console", "format": "active_line", "content": 2})
    stage.wait(1)
    assert stage.rows[-1].endswith("running 1 s · line 2: time.sleep(9)")
    stage.show(over(None, "interrupted"))
    stage.display.finish()
    assert stage.rows[-1] == "Interrupted after 1.0 s."


@pytest.mark.parametrize(
    ("closing", "said"),
    [
        (over(), "No output."),
        (over(3, "error"), "Exit code 3."),
        (over(None, "timed_out"), "Stopped at the time limit after 0.1 s."),
        (over(None, "died"), "The session died after 0.1 s."),
        (over(None, "background"), "Moved to the background."),
    ],
)
def test_the_display_says_how_a_block_ended(stage: Stage, closing: dict[str, Any], said: str) -> None:
    stage.show({"role": "computer", "type": "console", "start": True})
    stage.now += 0.05
    stage.show(closing)
    stage.display.finish()
    assert stage.rows == [said]


def test_a_progress_bar_is_drawn_in_place(stage: Stage) -> None:
    for percent in range(0, 101, 10):
        stage.show(output(f"\r{percent}% {'#' * percent}"))
        stage.wait(0.1)
        assert len(stage.rows) == 1
    stage.show(output("\n"), over())
    stage.display.finish()
    assert len(stage.rows) == 2
    assert "".join(stage.rows) == "100% " + "#" * 100


def test_long_output_is_shortened(stage: Stage) -> None:
    for number in range(0, 2000, 10):
        stage.show(output("".join(f"line {number + n}\n" for n in range(10))))
    assert stage.rows[0] == "line 0"
    assert stage.rows[-1] == "line 1999"
    assert len(stage.rows) < 40
    stage.show(over(truncated="/kept/here.txt"))
    stage.display.finish()
    assert [row for row in stage.rows if "more lines" in row] == ["… 1,970 more lines, all in /kept/here.txt"]
    assert stage.rows[-2:] == ["line 1999", "Done after 10.0 s."]


def test_images_and_pages_are_saved_and_their_paths_shown(stage: Stage) -> None:
    picture = base64.b64encode(b"not really a png").decode()
    stage.show(output("before"), {"role": "computer", "type": "image", "format": "base64.png", "content": picture})
    stage.show({"role": "computer", "type": "code", "format": "html", "content": "<b>x</b>", "recipient": "user"})
    stage.show(output("<svg/>", mime="image/svg+xml", recipient="user"), output("hidden", recipient="assistant"))
    stage.show(output("# Title\n*x*", mime="text/markdown"), over())
    stage.display.finish()
    first, image, page, drawing, *rest = stage.rows
    assert (first, rest) == ("before", ["Title", "x"])
    assert Path(image.removeprefix("Image: ")).read_bytes() == b"not really a png"
    assert Path(page.removeprefix("Page: ")).read_text() == "<b>x</b>"
    assert Path(drawing.removeprefix("Drawing: ")).read_text() == "<svg/>"


def test_an_image_in_the_output_does_not_end_the_block(stage: Stage) -> None:
    picture = {"role": "computer", "type": "image", "format": "base64.png"}
    stage.show(code("plot()"), {"type": "code", "format": "python", "end": True})
    stage.show({"role": "computer", "type": "console", "start": True}, output("1\n"))
    stage.show({"role": "computer", "type": "console", "end": True}, {**picture, "start": True})
    stage.show({**picture, "content": "AAAA"}, {**picture, "end": True})
    stage.show({"role": "computer", "type": "console", "start": True}, over())
    stage.show({"role": "computer", "type": "console", "end": True}, message("Drawn."))
    stage.display.finish()
    shown, image, *rest = stage.rows[3:]
    assert (shown, rest) == ("1", ["", "Drawn."])
    assert image.startswith("Image: ")


def test_a_rate_limit_counts_down_in_place(stage: Stage) -> None:
    stage.display.begin()
    status = {"reason": "rate limited", "seconds": 12.0, "attempt": 1}
    stage.show({"role": "computer", "type": "status", "format": "retry", "content": status})
    stage.wait(2)
    assert len(stage.rows) == 1
    assert "rate limited, trying again in 10 s" in stage.rows[0]
    stage.show(message("Here."))
    stage.display.finish()
    assert stage.rows == ["", "Here."]


def test_reasoning_and_approvals_are_shown(stage: Stage) -> None:
    stage.show({"type": "reasoning", "content": "Hmm.\nSo"}, {"type": "reasoning", "end": True})
    allowed = {"by": "policy", "reason": "The package index may be reached, and needs no approval for that."}
    decisions = [
        ("denied", {"by": "policy", "reason": "this comes as output"}),
        ("approved", allowed),
        ("declined", {"by": "user", "reason": ""}),
    ]
    for kind, content in decisions:
        stage.show({"role": "computer", "type": "decision", "format": kind, "content": content})
    stage.display.finish()
    assert stage.rows[:2] == ["Hmm.", "So"]
    assert " ".join(stage.rows[2:]) == f"Approved: {allowed['reason']}"


def reasoning_lines(count: int) -> list[dict[str, Any]]:
    return [{"type": "reasoning", "content": f"thought {number}\n"} for number in range(count)]


def test_long_reasoning_shows_its_last_lines_and_then_a_summary(stage: Stage) -> None:
    stage.display.begin()
    stage.show(*reasoning_lines(40))
    stage.wait(0.1)
    assert stage.rows == ["", "thought 36", "thought 37", "thought 38", "thought 39"]
    stage.now += 10
    stage.show({"type": "reasoning", "end": True}, message("Done."))
    stage.display.finish()
    assert stage.rows == ["", "Thought for 12.1 s.", "", "Done."]


@pytest.mark.full
def test_reasoning_without_line_breaks_folds_cheaply(stage: Stage) -> None:
    stage.show(*[{"type": "reasoning", "content": f"word{number} "} for number in range(1000)])
    stage.wait(0.1)
    assert len(stage.rows) == 4
    assert stage.rows[-1].endswith("word999")
    assert stage.out.written < 1000 * 600, "no more than the rows that can be seen"
    stage.show({"type": "reasoning", "end": True})
    stage.display.finish()
    assert [row[:11] for row in stage.rows] == ["Thought for"]


def test_all_reasoning_stays_without_folding(stage: Stage) -> None:
    stage.display.fold_reasoning = False
    stage.show(*reasoning_lines(40), {"type": "reasoning", "end": True})
    stage.display.finish()
    assert stage.rows == [f"thought {number}" for number in range(40)]


def test_a_loading_model_is_named(stage: Stage) -> None:
    stage.display.begin()
    status = {"model": "tiny", "done": False}
    stage.show({"role": "computer", "type": "status", "format": "loading", "content": status})
    stage.wait(2)
    assert "loading tiny 2 s" in stage.rows[-1]
    stage.show({"role": "computer", "type": "status", "format": "loading", "content": {**status, "done": True}})
    stage.wait(1)
    assert "thinking 1 s" in stage.rows[-1]


def test_typed_text_is_shown_below_and_then_removed(stage: Stage) -> None:
    stage.display.begin()
    stage.show(message("A text"))
    stage.display.typed("then do this")
    assert stage.rows == ["", "A text", "› then do this"]
    stage.display.finish()
    assert stage.rows == ["", "A text"]


def test_an_unfinished_output_line_becomes_a_question(stage: Stage) -> None:
    stage.show(output("one\nYour name? "))
    with stage.display.asking() as begun:
        assert begun == "Your name? "
        assert stage.rows == ["one"]
        assert stage.emulator.cursor == (0, 1)


@pytest.mark.parametrize(("columns", "lines"), [(20, 10), (80, 24), (200, 50)])
def test_text_and_output_are_complete_at_any_size(columns: int, lines: int) -> None:
    stage = Stage(columns, lines)
    stage.display.begin()
    words = [f"word{number}" for number in range(120)]
    for word in words:
        stage.show(message(word + " "))
    stage.wait(5)
    stage.show(code("print('a rather long line of code that does not fit')\n" * 3))
    stage.wait(5)
    stage.show(output("x" * 300 + "\n"), over())
    stage.display.finish()
    assert " ".join(stage.rows).split()[:120] == words
    assert "".join(stage.rows).count("x" * 20) == 300 // 20


def test_drawing_a_long_text_takes_linear_output() -> None:
    written = []
    for size in (1_000, 2_000, 4_000):
        stage = Stage()
        text = ("Some words that make a paragraph, again and again. " * 6 + "\n\n") * 70
        for at in range(0, size, 16):
            stage.show(message(text[at : at + 16]))
        stage.display.finish()
        written.append(stage.out.written)
    assert written[2] < 2.5 * written[1] < 2.5 * 2.5 * written[0]


def test_our_own_messages_in_the_output_wrap_between_words() -> None:
    stage = Stage(40)
    notice = "Blocked by the sandbox: writing /etc/hosts. Rule: only the workspace can be written."
    stage.show(output("printed\n"), output(notice + "\n", stream="stderr", ours=True), output("x" * 50 + "\n"), over())
    rows = [row for row in stage.rows if row]
    assert rows[0] == "printed" and " ".join(rows[1:4]) == notice
    assert all(len(row) < 40 for row in rows[1:4]) and rows[4:6] == ["x" * 40, "x" * 10]
