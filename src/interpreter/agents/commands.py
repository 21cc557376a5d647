"""`%agent` and `%agents` in a chat."""

from __future__ import annotations

import shlex
import textwrap
import threading
from typing import TYPE_CHECKING, Any

from interpreter.agents.calls import summary, task_of
from interpreter.agents.files import accept, agent_files
from interpreter.agents.subagents import Accept, SubAgent, SubAgents, subagents_of
from interpreter.agents.tries import best_of, cost_line, estimate, retry
from interpreter.console_text import visible
from interpreter.errors import UsageError
from interpreter.frontends.terminal.magics.undo import show_difference
from interpreter.llm.usage import in_dollars

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal

TICK = 0.2  # seconds between two looks at a tree without changes
MAX_MESSAGES = 12  # that a look shows
MAX_LINES = 12  # of one output, side by side


def agent(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    """Have a sub-agent do a task, and show the tree meanwhile. Ctrl-C stops it."""
    options, text = options_in(argument, {"--model": True, "--as": True, "--background": False})
    if not text:
        raise UsageError("Say what to do: %agent find out why test_parser fails")
    family = subagents_of(interpreter.agent)
    task = task_of(interpreter.agent, text, name=options.get("--as"), model=options.get("--model"))
    child = family.start(task)
    if "--background" in options:
        terminal.display.line(f"Sub-agent {child.number} works in the background. %agents shows it.")
        return
    follow(terminal, family, child)
    try:
        terminal.display.markdown(visible(str(child.result())))
    finally:
        show_outcome(terminal, child)


def follow(terminal: Terminal, family: SubAgents, child: SubAgent) -> None:
    """Draw the tree until one of it has ended. Ctrl-C stops that one."""
    try:
        draw_until(terminal, family, child.ready)
    except KeyboardInterrupt:
        child.stop("by you")
        child.done.wait()


def draw_until(terminal: Terminal, family: SubAgents, event: threading.Event) -> None:
    """Draw the tree until something has happened, and have the user answer the questions in it."""
    screen = getattr(terminal.display, "screen", None)
    try:
        while not event.is_set():
            with family.changed:
                family.changed.wait(TICK)
            for each in family.walk():
                if each.question is not None and each.question.is_open and each.state == "asking":
                    clear(screen)
                    put_to_user(terminal, each)
            if screen is not None:
                with screen.lock:
                    screen.paint(body=[f"  {row}" for row in tree(family)])
    finally:
        clear(screen)


def clear(screen: Any) -> None:
    if screen is not None:
        with screen.lock:
            screen.paint()


def put_to_user(terminal: Terminal, child: SubAgent) -> None:
    """Have the user answer the question of a sub-agent."""
    question = child.question
    assert question is not None
    subject = question.subject
    code = f"\n{subject.code}" if question.kind == "block" else ""
    terminal.display.line(f"Sub-agent {child.number}: {question.text}{code}", "")
    if question.kind in ("text", "choose"):
        child.answer(terminal.ask("> ") or "")
    else:
        child.answer("yes" if terminal.confirm("Allow it?") else "no")
    child.question, child.state = None, "running"


def tree(family: SubAgents, indent: str = "") -> list[str]:
    """Write the tree, a line for each."""
    rows = []
    for each in list(family.all.values()):
        rows.append(indent + each.line())
        if each.family_below is not None:
            rows += tree(each.family_below, indent + "  ")
    return rows


def show_outcome(terminal: Terminal, child: SubAgent) -> None:
    """Print the sub-agent's changes, and the commands that keep or discard them."""
    show = terminal.display.line
    if child.changes:
        show(f"Sub-agent {child.number} changed {', '.join(sorted(child.changes.pairs))} in its copy of the workspace.")
        show(f"%agents diff {child.number} shows it, %agents accept {child.number} brings it here.")
    show_conflicts(terminal, child)
    show(child.line())


def show_conflicts(terminal: Terminal, child: SubAgent) -> None:
    for path, numbers in child.conflicts().items():
        others = ", ".join(map(str, numbers))
        terminal.display.line(f"Conflict: {path}, changed by {child.number} and {others}. Accept one of them.", "error")


def agents(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    """Show the tree of sub-agents, or perform a command on one of them."""
    family, show = subagents_of(interpreter.agent), terminal.display.line
    word, _, rest = argument.strip().partition(" ")
    if not word:
        rows = tree(family)
        show("\n".join([summary(family), *rows]) if rows else "No sub-agents yet. %agent TASK starts one.")
        for each in family.all.values():
            show_conflicts(terminal, each)
        return
    if word == "files":
        for file in agent_files(interpreter.workspace):
            trusted = "" if file.is_accepted else f" (not used yet: %agents trust {file.name})"
            show(visible(f"{file.name}: {file.description} · {file.path}{trusted}"))
        return
    if word == "trust":
        trust(terminal, interpreter, rest.strip())
        return
    number, _, text = rest.strip().partition(" ")
    if word not in ("diff", "accept", "drop", "stop", "look", "answer") or not number.isdigit():
        raise UsageError("Use %agents, or %agents diff|accept|drop|stop|look|answer with a number.")
    child = family.get(int(number))
    match word:
        case "diff":
            for text in child.diffs().values():
                show_difference(terminal, text, None)
            if not child.changes:
                show(f"Sub-agent {number} changed no files.")
        case "accept":
            accept_changes(terminal, interpreter, child, overwrite=text == "--overwrite")
        case "drop":
            child.settle_files("dropped")
            show(f"Dropped. The conversation of sub-agent {number} stays: --resume {child.conversation}")
        case "stop":
            child.stop("by you")
            child.done.wait()
            show(child.line())
        case "look":
            look(terminal, child)
        case "answer":
            child.answer(text)


def accept_changes(terminal: Terminal, interpreter: OpenInterpreter, child: SubAgent, overwrite: bool) -> None:
    paths = sorted(child.changes.pairs)
    kept = interpreter.session.perform(Accept(child, paths if overwrite else ()), interpreter.user).result()
    done = [path for path in paths if path not in kept]
    if done:
        terminal.display.line(f"Changed {', '.join(done)}. %undo --block reverts this.")
    if kept:
        terminal.display.line(
            f"Left as they are, because they have changed here, too: {', '.join(kept)}. "
            f"`%agents accept {child.number} --overwrite` takes the sub-agent's.",
            "error",
        )


def look(terminal: Terminal, child: SubAgent) -> None:
    """Show the end of a conversation."""
    made = child.interpreter
    messages = made.messages if made is not None else child.messages
    for message in messages[-MAX_MESSAGES:]:
        terminal.display.line(visible(f"{message['role']}: {message.get('content')}"[:1000]), "")
    terminal.display.line(child.line())
    if child.conversation:
        terminal.display.line(f"Its conversation: interpreter --resume {child.conversation}")


def trust(terminal: Terminal, interpreter: OpenInterpreter, name: str) -> None:
    """Show the file of an agent, and use it from now on if the user wants that."""
    file = next((each for each in agent_files(interpreter.workspace) if each.name == name), None)
    if file is None:
        raise UsageError(f"There is no agent named {name!r}. `%agents files` lists them.")
    tools = f"\nTools: {', '.join(file.tools)}" if file.tools else ""
    terminal.display.line(visible(f"{file.path}\n{file.description}{tools}\n\n{file.prompt}"), "")
    if terminal.confirm(f"Use the agent {name} as it is now?"):
        accept(file)
        terminal.display.line(f"{name} can be used: %agent --as {name} TASK")


# -- several tries --------------------------------------------------------------------------------------------------


def best(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    """Try a task several times, and keep the best."""
    known = {"--judge": True, "--models": True}
    options, text = options_in(argument, known)
    number, _, task = text.partition(" ")
    if not number.isdigit() or not task.strip():
        raise UsageError("Give a number and a task: %best 4 fix the failing test")
    n, models = int(number), [name for name in options.get("--models", "").split(",") if name]
    tokens, dollars = estimate(interpreter, n, models)
    cost = f", {in_dollars(dollars)}" if dollars else ""
    if not terminal.confirm(f"{n} tries take about {tokens:,} tokens{cost}. Start?"):
        return
    family, over = subagents_of(interpreter.agent), threading.Event()
    results: list[Any] = []

    def work() -> None:
        try:
            results.append(best_of(interpreter, n, task.strip(), options.get("--judge", "agreement"), models))
        except Exception as error:  # noqa: BLE001 - raised below
            results.append(error)
        finally:
            over.set()

    threading.Thread(target=work, name="best", daemon=True).start()
    with interpreter.session.questions.answerable(["confirm"], lambda question: None):
        try:
            draw_until(terminal, family, over)
        except KeyboardInterrupt:
            family.stop()
            over.wait()
    if isinstance(results[0], Exception):
        raise results[0]
    kept = results[0]
    terminal.display.markdown(visible(kept.text))
    scores = ", ".join("failed" if score is None else f"{score:g}" for score in kept.scores)
    terminal.display.line(f"Kept try {kept.winner + 1}. Scores: {scores}. {in_dollars(kept.cost)}. %undo reverts it.")
    for line in (kept.lost, *(f"{path} has changed here and stays as it is." for path in kept.kept)):
        if line:
            terminal.display.line(line, "error")


def retry_with(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    """Have another model try from a checkpoint on, show both, and keep one."""
    number, _, rest = argument.strip().partition(" ")
    options, _ = options_in(rest, {"--model": True})
    model = options.get("--model", "")
    if not number.isdigit() or not model:
        raise UsageError("Give a checkpoint and a model: %retry 4 --model gpt-4o. %rewind lists the checkpoints.")
    family = subagents_of(interpreter.agent)
    other = retry(interpreter, int(number), model)
    try:
        follow(terminal, family, other.attempt)
        other.attempt.raise_error()
        first, second = transcript(other.first), transcript(other.second)
        width = terminal.tty.size()[0] if hasattr(terminal.tty, "size") else 80
        titles = f"1: {interpreter.llm.model}", f"2: {cost_line(other.attempt, model)}"
        for row in side_by_side([titles[0], "", *first], [titles[1], "", *second], width - 1):
            terminal.display.line(row, "")
        if (terminal.ask("Keep 1 or 2? ") or "1").strip() == "2":
            kept, lost = other.keep()
            terminal.display.line("\n".join(["Kept 2.", *filter(None, [lost, *kept])]))
        else:
            terminal.display.line("Kept 1. Nothing changed.")
    finally:
        other.drop()


def transcript(messages: list[Any]) -> list[str]:
    """Write messages as lines; of a long output the beginning, of pictures and tables their kind."""
    rows: list[str] = []
    for message in messages:
        mark = {"user": "> ", "computer": "  "}.get(message["role"], "")
        lines = visible(str(message.get("content"))).splitlines()
        if message["role"] == "computer" and message["type"] != "console":
            lines = [f"({message.get('format') or message['type']})"]
        elif mark and len(lines) > MAX_LINES:
            lines = [*lines[:MAX_LINES], f"and {len(lines) - MAX_LINES} more lines"]
        rows += [f"{mark}{line}" for line in lines]
    return rows


def side_by_side(left: list[str], right: list[str], width: int) -> list[str]:
    """Put two texts into two columns."""
    half = max(10, (width - 3) // 2)
    columns = [[part for line in side for part in (textwrap.wrap(line, half) or [""])] for side in (left, right)]
    length = max(map(len, columns))
    padded = [[*column, *[""] * (length - len(column))] for column in columns]
    return [f"{one.ljust(half)} | {other}".rstrip() for one, other in zip(*padded, strict=True)]


def options_in(argument: str, known: dict[str, bool]) -> tuple[dict[str, str], str]:
    """Read the options before a text; those that are true take a value."""
    options, rest = dict[str, str](), argument.strip()
    while rest.startswith("--"):
        word, _, after = rest.partition(" ")
        if word not in known:
            raise UsageError(f"Unknown option {word}. Options: {', '.join(known)}.")
        rest = after.strip()
        options[word] = ""
        if known[word]:
            try:
                options[word] = shlex.split(rest)[0]
            except (ValueError, IndexError):
                raise UsageError(f"{word} takes a value.") from None
            rest = rest.partition(" ")[2].strip()
    return options, rest
