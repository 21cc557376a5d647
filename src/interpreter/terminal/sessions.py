"""Earlier conversations: choosing one, taking it up, and running again what built its variables."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from interpreter.errors import ConversationNotFoundError, UsageError

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.journal import Session, Summary
    from interpreter.journal.entries import Block
    from interpreter.messages import Chunk
    from interpreter.terminal.terminal import Terminal

FLAGS = frozenset({"conversations", "resume", "continue"})
_WIDE = 100  # columns
_GONE = (
    "[This conversation was taken up again on {date}, in a new process. The live sessions of before are over: "
    "variables, functions and imports are gone, files are still there. {again}The working directory is {folder}.]"
)
_ANEW = "[The user has begun the {name} session anew and run {done} of its {all} blocks again that had run well.]"
_AGAIN = "The user has run {done} of the {all} blocks that had run well again, so what they define is there. "


def take_up(terminal: Terminal, interpreter: OpenInterpreter, actions: Mapping[str, Any]) -> Session | None:
    """Take up the conversation that the command line names; None if it names none, or the user chose none."""
    row = named(terminal, interpreter, actions) if FLAGS & actions.keys() else None
    return None if row is None else resume(interpreter, row)


def resume(interpreter: OpenInterpreter, row: Summary) -> Session:
    """Take up a conversation; the model will be told that variables are gone."""
    session = interpreter.journal.resume(row)
    if _blocks(session):
        interpreter.journal.tell_model(_note(interpreter))
    return session


def named(terminal: Terminal, interpreter: OpenInterpreter, actions: Mapping[str, Any]) -> Summary | None:
    """The conversation that flags or a command name, else one that the user picks."""
    from interpreter.journal import find, last_in

    root = interpreter.journal.root
    if "continue" in actions:
        return last_in(root, os.path.abspath(interpreter.workspace))
    wanted = actions.get("resume")
    return find(root, wanted) if isinstance(wanted, str) else pick(terminal, interpreter)


def pick(terminal: Terminal, interpreter: OpenInterpreter) -> Summary | None:
    """Let the user choose a conversation; None if they would rather not."""
    from interpreter.journal import listed

    if not (terminal.tty.can_type and terminal.tty.can_show):
        raise UsageError("Choosing a conversation needs a terminal. `--resume ID` and `--continue` do without one.")
    rows = listed(interpreter.journal.root)
    if not rows:
        raise ConversationNotFoundError(f"There is no conversation in {interpreter.journal.root} yet.")
    try:
        return rows[_pick_by_number(terminal, rows) if terminal.plain else _pick_by_arrows(terminal, rows)]
    except KeyboardInterrupt:
        return None


def _pick_by_arrows(terminal: Terminal, rows: Sequence[Summary]) -> int:
    from interpreter.terminal.picker import Picker

    searched = [f"{row.title} {row.facts.folder} {row.facts.model} {row.id}" for row in rows]
    picker = Picker("Which conversation?", searched, lambda number, width: drawn(rows[number], width))
    return picker.choose(terminal.tty)


def _pick_by_number(terminal: Terminal, rows: Sequence[Summary]) -> int:
    width = terminal.tty.size()[0] - 6
    for number, row in enumerate(rows[:20], 1):
        terminal.display.line(f"{number:>3}. {drawn(row, width)}")
    answer = terminal.ask("Which one? Its number, or Enter to leave: ")
    if not answer or not answer.strip().isdigit() or not 0 < int(answer) <= min(len(rows), 20):
        raise KeyboardInterrupt
    return int(answer) - 1


def drawn(row: Summary, width: int) -> str:
    """A row of the list: title, age, folder, model, cost."""
    facts, wide = row.facts, width >= _WIDE
    folder, model = _short(facts.folder, 24 if wide else 14), _short(facts.model, 24 if wide else 12)
    columns = [f"{age_in_words(row.age):>7}", folder, model, _cost(row)]
    rest = "  ".join(columns)
    room = width - len(rest) - 2
    if room < 16:
        return _fitted(f"{row.title}  {columns[0].strip()}", width)
    return f"{_fitted(row.title, room)}  {rest}"


def _fitted(text: str, width: int) -> str:
    from interpreter.terminal.render.ansi import cells, clip, visible

    text = clip(visible(text), width)
    return text + " " * (width - cells(text))


def _short(path: str, width: int) -> str:
    """The end of a long path or name is what tells it apart."""
    home = os.path.expanduser("~")
    path = "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
    return f"{path if len(path) <= width else '...' + path[3 - width :]:<{width}}"


def _cost(row: Summary) -> str:
    from interpreter.llm.money import in_dollars

    usage = row.facts.usage
    if not usage.requests or (usage.unpriced_tokens and not usage.cost):
        return f"{'':>8}"
    return f"{in_dollars(usage.cost):>8}"


def age_in_words(seconds: float) -> str:
    """How long ago, in one unit."""
    if seconds < 60:
        return "now"
    for unit, size, most in (("min", 60, 60), ("h", 3600, 24), ("d", 86400, 30)):
        if seconds < size * most:
            return f"{int(seconds // size)} {unit}"
    return time.strftime("%Y-%m", time.localtime(time.time() - seconds))


# -- taken up ----------------------------------------------------------------------------------------------------


def show(terminal: Terminal, interpreter: OpenInterpreter, session: Session) -> None:
    """The conversation so far, and what of it is gone."""
    from interpreter.terminal.replay import replay

    replay(terminal, session.messages)
    if session.torn:
        terminal.display.line("The program was ended in the middle of writing: the last piece is missing.")
    if session.damaged:
        terminal.display.line(f"{session.damaged} lines of the journal could not be read and are left out.", "error")
    if blocks := _blocks(session):
        what = "the block that built them" if len(blocks) == 1 else f"the {len(blocks)} blocks that built them"
        terminal.display.line(f"The variables of before are gone. F5 (or %rerun) runs {what} again.")
    terminal.display.finish()


def rerun(terminal: Terminal, interpreter: OpenInterpreter, language: str = "") -> None:
    """Run the blocks that had run well once more, in order; each is asked about as always.

    With a language only its own, in a new session: so it has the variables of before, where there is no other return.
    """
    computer = interpreter.computer
    wanted = computer.get_language(language) if language else None
    if language and wanted is None:
        terminal.display.line(f"{language} is no language here, so nothing is run again.")
        return
    session = interpreter.journal.read()
    blocks = _blocks(session) if session is not None else _blocks_of_messages(interpreter)
    if wanted is not None:
        blocks = [block for block in blocks if computer.get_language(block.language) is wanted]
        computer.end(wanted.name)
    if not blocks:
        begun = f"The {wanted.name} session begins anew. " if wanted is not None else ""
        terminal.display.line(f"{begun}No block of this conversation has run well, so there is nothing to run again.")
        return
    done = 0
    for block in blocks:
        if not _run_again(terminal, interpreter, block):
            break
        done += 1
    counts = {"done": done, "all": len(blocks)}
    anew = _ANEW.format(name=wanted.name, **counts) if wanted is not None else ""
    interpreter.journal.tell_model(anew or _note(interpreter, _AGAIN.format(**counts)))
    terminal.display.line(f"{done} of {len(blocks)} blocks were run again.")


def _run_again(terminal: Terminal, interpreter: OpenInterpreter, block: Block) -> bool:
    """Show the block, ask whom the rules and the mode say, run it; False if it did not run, or did not end well."""
    from interpreter.blocks import PendingBlock
    from interpreter.consent import Consent
    from interpreter.terminal.approval import approve
    from interpreter.terminal.turn import show_block

    shown: Chunk = {"role": "assistant", "type": "code", "format": block.language}
    terminal.display.show({**shown, "content": block.code})
    terminal.display.show({**shown, "end": True})
    pending = PendingBlock(block.language, block.code, lambda *code: interpreter.scanner.scan(*code))
    for chunk in Consent(interpreter).obtain(pending, stored=False):
        terminal.display.show(chunk)
        if chunk["type"] == "confirmation":
            approve(terminal, pending)
    if pending.denied is not None or pending.declined:
        return False
    run = interpreter.computer.stream_widened(pending.language, pending.code, pending.widening)
    ended, code = "done", None
    for chunk in show_block(terminal, interpreter, run):
        ended, code = chunk.get("ended", ended), chunk.get("exit_code", code)
    return ended == "done" and not code and not terminal.interrupted


def _blocks(session: Session) -> list[Block]:
    from interpreter.journal.entries import Block
    from interpreter.journal.transcript import entries_from_session

    return [entry for entry in entries_from_session(session) if isinstance(entry, Block) and _ran_well(entry)]


def _blocks_of_messages(interpreter: OpenInterpreter) -> list[Block]:
    from interpreter.journal.entries import Block, entries_from_messages

    entries = entries_from_messages(interpreter.messages)
    return [entry for entry in entries if isinstance(entry, Block) and _ran_well(entry)]


def _ran_well(block: Block) -> bool:
    # What the user ran themselves without any output looks as if it had not been run.
    return block.succeeded or (block.author == "user" and block.decision == "not_run")


def _note(interpreter: OpenInterpreter, again: str = "") -> str:
    """What the model is told, once, before the user's next message."""
    folder = interpreter.computer.surroundings.cwd
    return _GONE.format(date=time.strftime("%d %B %Y"), again=again, folder=folder)
