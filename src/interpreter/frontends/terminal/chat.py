"""Conversations on a terminal: read a message, show the turn that answers it, ask its questions; replay old ones."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from itertools import islice
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from interpreter.api import OpenInterpreter
from interpreter.app.own_blocks import SIGNS
from interpreter.console_text import PROSE, visible
from interpreter.errors import (
    InterpreterError,
    LiteLLMMissingError,
    MissingKeyError,
    PolicyError,
    ProviderNotFoundError,
    WrongKeyError,
)
from interpreter.frontends.terminal.approval import MODES, approve, shown_in_preview, yes_or_no
from interpreter.frontends.terminal.keyboard import TurnKeyboard
from interpreter.frontends.terminal.terminal import LineReader, Terminal, reader_for
from interpreter.frontends.terminal.tty import Tty
from interpreter.leaves import leaves, load
from interpreter.messages import Chunk, Message, group_of, is_declined
from interpreter.policy.review import GRANT
from interpreter.questions import ANSWER, APPROVE, REFUSE, Answer, Question
from interpreter.session import Event

if TYPE_CHECKING:
    from interpreter.frontends.terminal.prompt import Prompt

Result = TypeVar("Result")
INTERRUPTED = "Interrupted."
SCREENS = 3  # of an earlier conversation that are shown
_INPUT: tuple[Literal["text", "password"], ...] = ("text", "password")
_MAX_ENTRIES = 500  # of a folder that are looked at for an example
_EXAMPLES = {
    ".csv": "what is in {}?",
    ".tsv": "what is in {}?",
    ".xlsx": "what is in {}?",
    ".parquet": "what is in {}?",
    ".jsonl": "what is in {}?",
    ".pdf": "summarize {}",
    ".py": "explain what {} does",
    ".md": "summarize {}",
    ".jpg": "make a smaller copy of {}",
    ".png": "make a smaller copy of {}",
    "any": "which files here are the largest?",
}
_FOR_THE_SHELL = re.compile(r"interpreter\s+--?\w|pip3?\s+install\s[^\n]*\bopen-interpreter\b")
_NEEDED_SOON = (
    "interpreter.agent.turn",
    "interpreter.llm",
    "interpreter.computer_api",
    "rich.console",
    "markdown_it",
    "rich.table",
    "pygments.lexers.python",
    "httpx",
    "interpreter.frontends.terminal.magics",
)
_NO_MODEL_HELP = """\
To set up a model, do one of these:
  export OPENAI_API_KEY=...     set a key; other providers have their own variables
  interpreter --setup           paste a key, or pick a model on this machine (in the chat: %setup)
  interpreter --api_base http://localhost:8000/v1 --model NAME
                                use any server with an OpenAI-compatible API"""


def converse(terminal: Terminal, interpreter: OpenInterpreter) -> Iterator[Chunk]:
    """Ask for messages and answer them; yields every chunk of every turn."""
    try:
        check_rules(interpreter)
    except PolicyError as error:
        terminal.tell(f"{error} No code runs until this is fixed.", "error")
        terminal.display.finish()
    reader = reader_for(terminal, interpreter)
    warm_up = Thread(target=_warm_up, args=(terminal, interpreter), name="warm-up", daemon=True)

    def prepare() -> None:
        if warm_up.ident is None:
            warm_up.start()

    reader.when_ready(prepare)
    try:
        with terminal.early_keys():
            text = _next_message(terminal, reader, interpreter)
        while text is not None:
            prepare()  # if the first message was typed before there was a prompt
            warm_up.join()  # before anything imports the same modules
            text = _expanded(interpreter, _as_command(text))
            if text.lstrip().startswith(("%", "!", ">>>")):
                from interpreter.frontends.terminal import magics

                with _errors_shown(terminal, interpreter):
                    magics.run(terminal, interpreter, text.strip())
                    interpreter.journal.sync()  # records what the command changed in the conversation
                if terminal.left:
                    return
                if terminal.forks is not None and terminal.forks.current is not interpreter:
                    interpreter = terminal.forks.current
                    reader = reader_for(terminal, interpreter)
            elif _FOR_THE_SHELL.match(text.strip()):
                terminal.display.line(
                    f"That is a shell command. Run it here with !{text.strip()}, or exit with Ctrl-D first."
                )
            elif text.strip().lower() in ("exit", "quit", "exit()", "quit()"):
                return
            elif text.strip():
                yield from answer(terminal, interpreter, text)
            text = _next_message(terminal, reader, interpreter)
    finally:  # the forks of a chat and its last %reset end with it
        terminal.forks = None
        terminal.discard_reset()


def _as_command(text: str) -> str:
    """Turn `help`, `?` and `/undo` into magic commands; leave other text alone."""
    typed = text.strip()
    if typed.lower() in ("help", "?", "help()", "/?"):
        return "%help"
    if not typed.startswith("/"):
        return text
    from interpreter.frontends.terminal.magics import slash_command

    return slash_command(typed) or text


def _expanded(interpreter: OpenInterpreter, text: str) -> str:
    """Return the message that a command of the user stands for; other text stays."""
    if not text.lstrip().startswith(("%", "/")):
        return text
    makes = (part.make for leaf in leaves() for part in leaf.expansions if interpreter.agent.uses(part))
    return next((message for make in makes if (message := load(make)(interpreter, text)) is not None), text)


def answer(terminal: Terminal, interpreter: OpenInterpreter, text: str, data: str = "") -> Iterator[Chunk]:
    """Run one turn; show an error, and let the chat continue."""
    with _errors_shown(terminal, interpreter):
        yield from show_turn(terminal, interpreter, send(terminal, interpreter, text, data))


@contextmanager
def _errors_shown(terminal: Terminal, interpreter: OpenInterpreter) -> Iterator[None]:
    """Show errors in this context once, as a message; they don't end the chat."""
    try:
        yield
    except KeyboardInterrupt:
        terminal.interrupted = True  # in the moment before or after the turn
    except BrokenPipeError:
        raise  # the reader of our output is gone
    except InterpreterError as error:
        terminal.problem = error
        terminal.error(explained(error))
    except Exception as error:  # noqa: BLE001 - a fault of ours must not take the conversation with it
        terminal.error(fault(error, interpreter.debug))


def fault(error: Exception, debug: bool) -> str:
    """Describe an unexpected error in one line, or with `debug` return its traceback."""
    if debug:
        from traceback import format_exception

        return "".join(format_exception(error)).rstrip()
    what = f"{type(error).__name__}: {error}".rstrip(": ")
    return f"Internal error in Open Interpreter: {what}. Use --debug to see where."


def send(terminal: Terminal, interpreter: OpenInterpreter, text: str, data: str = "") -> Iterator[Event]:
    """Send a message with the files and images that it names, but not those in its data; yield the turn's events."""
    from interpreter.app import attachments

    outgoing = attachments.prepare(interpreter, text, data)
    for name in outgoing.missing:
        terminal.tell(f"There is no file {name}.")
    if attached := outgoing.attached:
        folder = interpreter.computer.context.folder_here
        terminal.tell(f"Attached: {', '.join(os.path.relpath(each.path, folder) for each in attached)}.")
        pictures = [each.path for each in attached if each.is_image]
        if pictures and not terminal.plain:  # plain text would only repeat their names
            terminal.follow(interpreter)
            for path in pictures:
                terminal.display.show({"role": "computer", "type": "image", "format": "path", "content": path})
    if outgoing.hides_images:
        terminal.tell(f"{interpreter.llm.model} doesn't accept images, so it only gets their paths.")
    return attachments.send(interpreter, outgoing)


def _next_message(terminal: Terminal, reader: Prompt | LineReader, interpreter: OpenInterpreter) -> str | None:
    """Return the next message, first those sent during the last turn; None to leave."""
    if not terminal.interrupted and (sent := terminal.typed.take_sent()):
        terminal.tty.write(f"> {visible(sent, PROSE)}\n")
        return sent
    terminal.interrupted = False
    pressed = 0
    while True:
        try:
            if pressed:
                # Inside the `try`, because the next Ctrl-C may come while this is shown.
                terminal.display.line("Press Ctrl-C again, or Ctrl-D, to exit.")
            has_run = "agent" in vars(interpreter)
            with interpreter.timeline.variables.saved_when_idle() if has_run else nullcontext():
                return reader.read(terminal.typed.take_all())
        except EOFError:
            terminal.tty.write("\n" if terminal.plain else "")
            return None
        except KeyboardInterrupt:
            pressed += 1
            if pressed > 1:
                return None


def greet(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    from interpreter.policy.policy import mode_of
    from interpreter.version import __version__

    asked = MODES[mode_of(interpreter)]
    terminal.display.line(
        f"Open Interpreter {__version__}, model {interpreter.llm.model}\n"
        f"{asked[0].upper()}{asked[1:]}. %help lists the commands, Ctrl-D exits.\n"
        f"Try: {example_request(interpreter.workspace)}"
    )
    if interpreter.os:
        try:
            interpreter.computer.display.size()
            terminal.display.line("OS mode: the model sees the screen and can use mouse and keyboard.")
        except InterpreterError as error:
            terminal.display.line(f"Can't start OS mode. {error}", "error")
    terminal.display.finish()


def example_request(folder: str) -> str:
    names: dict[str, str] = {}  # the first name of each kind
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, _MAX_ENTRIES):
            name = entry.name
            is_fit = len(name) <= 40 and visible(name) == name and not name.startswith(".")
            if is_fit and entry.is_file(follow_symlinks=False):
                kind = os.path.splitext(name)[1].lower()
                names[kind] = min(name, names.get(kind, name))
                names["any"] = name
    for kind, request in _EXAMPLES.items():
        if kind in names:
            by_column = _total_per_column(os.path.join(folder, names[kind])) if kind in (".csv", ".tsv") else ""
            return (by_column or request).format(names[kind])
    return "plot a sine wave and save it as wave.png"


def _total_per_column(path: str) -> str:
    """Suggest a question about a table whose first two lines show a column of words and one of numbers; else empty."""
    import csv

    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = [file.readline(2000), file.readline(2000)]
        header, values = csv.reader(lines, delimiter="\t" if path.lower().endswith("tsv") else ",")
    except (OSError, ValueError, csv.Error):
        return ""
    columns: dict[bool, str] = {}
    for name, value in zip(header, values, strict=False):
        is_number = re.fullmatch(r"-?\d+(\.\d+)?", value.strip()) is not None
        is_text = value.strip().replace(" ", "").isalpha()
        if re.fullmatch(r"[\w ]{1,20}", name) and (is_text or (is_number and not name.lower().endswith("id"))):
            columns.setdefault(is_number, name)
    return f"total {columns[True]} per {columns[False]} in {{}}" if len(columns) == 2 else ""


def connect(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """Connect to the machine that the session works on, if that is another one; its questions are asked here."""
    machine = interpreter.computer.machine if "computer" in vars(interpreter) else None
    if machine is not None:
        from interpreter.app import perform

        terminal.tell(f"Connecting to {visible(machine.name)} ...")
        for _ in show_block(terminal, interpreter, perform(interpreter, machine.connection())):
            pass


def check_rules(interpreter: OpenInterpreter) -> None:
    """Raise PolicyError for a mistake in the rules before it stops the first block; load nothing if there are none."""
    from interpreter.policy import files as rule_files

    if rule_files.are_there(interpreter.workspace):
        from interpreter.policy import Policy

        Policy.load(interpreter.workspace)


def explained(error: InterpreterError) -> str:
    """Return the text of an error. If no model can be asked, add the keys that are set, and what to do."""
    if isinstance(error, WrongKeyError):
        return f"{error}\nIn the chat, %model asks for another key, and %setup lists all options."
    if not isinstance(error, MissingKeyError | ProviderNotFoundError) or isinstance(error, LiteLLMMissingError):
        return str(error)
    from interpreter.llm.providers import PROVIDERS

    names = [name for row in PROVIDERS for name in row.key_variables if os.environ.get(name)]
    keys = f"Keys in the environment: {', '.join(dict.fromkeys(names)) or 'none'}."
    return "\n".join([str(error), keys, _NO_MODEL_HELP])


def _warm_up(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """Load what the first answer needs, and continue what was interrupted, while the user is still typing."""
    for name in _NEEDED_SOON:
        with suppress(ImportError):  # the same error is raised, and reported, where the model is used
            import_module(name)
    if terminal.is_attended:
        from interpreter.app.environments import resume_stack
        from interpreter.frontends.terminal.prompt import show_data_stack

        resume_stack(interpreter, show_data_stack)


# -- a turn ----------------------------------------------------------------------------------------------------------


def show_turn(terminal: Terminal, interpreter: OpenInterpreter, events: Iterator[Event]) -> Iterator[Chunk]:
    """Show the model's answer, ask its questions, and pass every chunk on."""
    with _busy(terminal, interpreter) as busy:
        terminal.display.begin()
        begun = time.monotonic()
        yield from _show(terminal, interpreter, events, busy)
        terminal.notify(interpreter, "finished", time.monotonic() - begun)


def show_block(terminal: Terminal, interpreter: OpenInterpreter, events: Iterator[Event]) -> Iterator[Chunk]:
    """Show the output of blocks that the user, not the model, asked for."""
    with _busy(terminal, interpreter, own_blocks=True) as busy:
        yield from _show(terminal, interpreter, events, busy, own_blocks=True)


def follow(
    interpreter: OpenInterpreter, events: Generator[Event, None, Result], answer: Callable[[Question], Answer]
) -> Result:
    """Run a use case without showing its output and return its result; `answer` answers its questions."""
    with closing(events):
        while True:
            try:
                event = next(events)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
            question = interpreter.session.questions.find(event.data.get("question", ""))
            if question is not None and question.is_open:
                try:
                    given = answer(question)
                except KeyboardInterrupt:
                    given = Answer(REFUSE)
                interpreter.session.answer(question.id, given)


@contextmanager
def _busy(terminal: Terminal, interpreter: OpenInterpreter, own_blocks: bool = False) -> Iterator[TurnKeyboard]:
    """The terminal during a turn; the session's code may ask the person there."""
    from interpreter.app.trust import IN_SANDBOX
    from interpreter.policy.policy import mode_of

    outer = terminal.busy
    try:
        terminal.follow(interpreter)
        busy = TurnKeyboard(terminal.tty, terminal.display, terminal.typed, interpreter, marks=not terminal.plain)
        terminal.busy = busy
        shared = interpreter.computer.context
        # Answers input that `on_input` leaves open, and calls that code in this thread makes.
        handler = partial(_ask, terminal, interpreter, busy)
        asks = mode_of(interpreter) in ("ask", IN_SANDBOX)
        offers = ("offer",) if terminal.tty.can_type and (own_blocks or asks) else ()
        with busy.on(), interpreter.session.questions.answerable((*_INPUT, "call", *offers), handler):
            shared.size, shared.colors = terminal.tty.size(), terminal.colors
            if terminal.tty.can_type:
                shared.keyboard = terminal.tty.in_foreground
            yield busy
    finally:
        if terminal.tty.can_type:
            interpreter.computer.context.keyboard = False
        terminal.busy = outer
        terminal.display.finish()


def _show(
    terminal: Terminal,
    interpreter: OpenInterpreter,
    events: Iterator[Event],
    busy: TurnKeyboard,
    own_blocks: bool = False,
) -> Iterator[Chunk]:
    reported, begun = False, time.monotonic()
    try:
        for event in busy.interrupts.passing(events):
            if (
                own_blocks
                and event.kind == "action"
                and event.data["state"] == "begun"
                and event.data["kind"] == "block"
            ):
                busy.block_runs(event.data["language"])
            chunk = event.chunk
            if chunk is None:
                continue
            if not shown_in_preview(terminal, chunk):
                terminal.display.show(chunk)
            busy.follow(chunk)
            question = interpreter.session.questions.find(chunk["question"]) if "question" in chunk else None
            if question is not None and question.is_open and question.kind not in _INPUT:
                terminal.notify(interpreter, "waiting for you", time.monotonic() - begun)
                answer = _ask(terminal, interpreter, busy, question)
                begun = time.monotonic()
                if answer is not None and question.is_open:  # another front end may have answered it first
                    interpreter.session.answer(question.id, answer)
            reported = reported or chunk.get("ended") == "interrupted"
            yield chunk
    except KeyboardInterrupt:
        with busy.interrupts.state("inside"):
            interpreter.cancel()
            close = getattr(events, "close", None)
            if close is not None:
                close()
    terminal.interrupted = busy.interrupts.count > 0
    if terminal.interrupted and not reported:
        terminal.tell(INTERRUPTED)


def _ask(terminal: Terminal, interpreter: OpenInterpreter, busy: TurnKeyboard, question: Question) -> Answer | None:
    """Ask the user; None if this terminal can't. Ctrl-C ends the turn."""
    try:
        match question.kind:
            case "block":
                answer = approve(terminal, interpreter, question)
                if answer.choice in (APPROVE, GRANT) and answer.preview is None:
                    busy.block_runs(question.subject.language)
                return answer
            case "call" | "offer":
                return yes_or_no(terminal, question.text, getattr(question.subject, "for_session", False))
            case "text" | "password" if terminal.tty.can_type:
                return Answer(ANSWER, terminal.ask(question.text, question.kind == "password"))
    except KeyboardInterrupt:
        busy.interrupts.count += 1
        interpreter.cancel()
        return None if question.kind in _INPUT else Answer(REFUSE)
    return None


# -- an earlier conversation -----------------------------------------------------------------------------------------


def replay(terminal: Terminal, messages: Sequence[Message]) -> None:
    """Show the end of a conversation, and say how much is above it. Code is not separated from its output."""
    display = terminal.display
    columns, lines = terminal.tty.size()
    start, rows = len(messages), SCREENS * lines
    for message in reversed(messages):
        content = message.get("content")
        if message.get("type") == "image" or not isinstance(content, str):
            rows -= 10
        else:
            rows -= 2 + sum(1 + len(line) // columns for line in content.split("\n"))
        if rows < 0:
            break
        start -= 1
    start = max(0, min(start, len(messages) - 1))
    while start > 0 and messages[start].get("role") == "computer":
        start -= 1
    if start > 0:
        above = "1 earlier message is" if start == 1 else f"{start:,} earlier messages are"
        display.line(f"{above} not shown here. %markdown exports the whole conversation.")
        display.finish()
    before: Message | None = None
    for message, following in zip(messages[start:], [*messages[start + 1 :], None], strict=False):
        match message:
            case _ if is_declined(message):
                display.line("Not run: you said no.")
            case {"role": "user"}:
                display.finish()
                terminal.tty.write(_typed(message, columns - 2))
                display.begin()
            case {"role": "computer", "type": "message"}:
                display.line(str(message.get("content")))
            case _ if not _is_shown_as_text(message, before):
                for chunk in chunks_of(message, is_last=following is None or following.get("role") != "computer"):
                    display.show(chunk)
        before = message
    display.finish()


def _is_shown_as_text(message: Message, before: Message | None) -> bool:
    """Check whether this is a table that the stored output before it contains as text."""
    from interpreter.frontends.terminal.render.tables import table_in

    is_page = (message.get("role"), message.get("format")) == ("computer", "html")
    has_text = before is not None and before.get("type") == "console" and bool(str(before.get("content")).strip())
    return is_page and has_text and table_in(str(message.get("content"))) is not None


def _typed(message: Message, width: int) -> str:
    """Format a message of the user as it looked at the prompt."""
    text = visible(str(message.get("content", "")), PROSE)
    if message.get("type") == "code":
        text = SIGNS.get(message.get("format", ""), "") + text
    elif message.get("type") == "image" and message.get("format") != "path":
        text = "(an image)"
    rows = [line[at : at + width] for line in text.split("\n") for at in range(0, len(line) or 1, width)]
    return "> " + "\n  ".join(rows) + "\n"


def chunks_of(message: Message, is_last: bool) -> Iterator[Chunk]:
    """Replay a stored message as the stream that it came from; `is_last`: it is the last output of its block."""
    is_console = message.get("type") == "console"
    flag = group_of(cast("Chunk", message))
    yield {**flag, "start": True}
    if message.get("content"):
        form: Chunk = {"format": "output"} if is_console else {}
        yield {**flag, **form, "content": message["content"]}
    if is_console and is_last:
        ending = {key: value for key, value in message.items() if key in ("exit_code", "ended", "truncated")}
        yield cast("Chunk", {"role": "computer", "type": "console", "format": "active_line", "content": None, **ending})
    yield {**flag, "end": True}


# -- for the library -------------------------------------------------------------------------------------------------

_terminals: dict[bool, Terminal] = {}


def show_chat(interpreter: OpenInterpreter, message: Any = None) -> Iterator[Chunk]:
    """Chat in the terminal, or show the answer to one message; yields every chunk."""
    if message is None:
        yield from converse(_terminal(interpreter), interpreter)
    else:
        yield from show_turn(_terminal(interpreter), interpreter, interpreter.respond(message))


def show_events(interpreter: OpenInterpreter | None, events: Iterator[Event]) -> Iterator[Chunk]:
    shown_for = interpreter or OpenInterpreter()
    yield from show_block(_terminal(shown_for), shown_for, events)


def show_message(interpreter: OpenInterpreter, markdown: str) -> None:
    _terminal(interpreter).display.markdown(markdown)


def local_setup(interpreter: OpenInterpreter) -> None:
    from interpreter.frontends.terminal import setup

    setup.local_setup(_terminal(interpreter), interpreter)


def _terminal(interpreter: OpenInterpreter) -> Terminal:
    """Return the process's terminal, plain or not; it keeps what was typed ahead between turns."""
    plain, tty = interpreter.plain_text_display, Tty()
    known = _terminals.get(plain)
    if known is None or known.tty.stdout is not tty.stdout or known.tty.stdin is not tty.stdin:
        _terminals[plain] = known = Terminal(plain, tty)
    return known
