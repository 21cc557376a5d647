"""Starts what the command line asks for: a chat, or the answer to one message, as text or as JSON events."""

from __future__ import annotations

import json
import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from functools import partial
from io import UnsupportedOperation
from pathlib import Path
from typing import TYPE_CHECKING

import interpreter as package
from interpreter import leaves
from interpreter.api import OpenInterpreter
from interpreter.app import models, trust
from interpreter.config.setting import apply, headless_defaults, sources
from interpreter.console_text import visible
from interpreter.errors import InterpreterError, LocalServerError, MissingKeyError, ProfileError, UsageError
from interpreter.frontends import exit_codes
from interpreter.frontends.headless.run import Events, HeadlessRun, OutputSchema, UserMessage, say_as_events
from interpreter.frontends.terminal import chat
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.tty import Tty
from interpreter.llm.providers import with_prefix_in_name
from interpreter.runtimes import data_stack

if TYPE_CHECKING:
    from interpreter.config.profiles import Profile
    from interpreter.frontends.flags import Parsed
    from interpreter.messages import Chunk
    from interpreter.session.journal import SavedSession

_RESUMING = frozenset({"conversations", "resume", "continue"})
UNATTENDED_SAFE_MODE = (
    "Not run: safe_mode requires approval for this code even with -y, and there is no terminal to ask at."
)
UNATTENDED = "Not run: code needs approval, and there is no terminal to ask at. Use -y to run code without asking."

MAX_INPUT_LENGTH = 10_000_000  # characters
_SILENCE = 2.0  # seconds before we say that we are waiting

_VARIED = ("codestral", "llama3")  # those with a form for the screen and one for images


def start(parsed: Parsed, present: OpenInterpreter | None = None) -> int:
    """Run what the command line asks for and return the exit code; with an interpreter, the terminal uses that one."""
    schema_file = parsed.actions.get("output_schema")
    if "json" in parsed.actions:
        return _start_events(parsed, schema_file)
    schema = OutputSchema.read_file(schema_file) if schema_file is not None else None
    interpreter, profile = configured(parsed, present)
    # With a schema, standard output is for the value that fits it.
    tty = Tty(stdout=sys.stderr) if schema else None
    terminal = Terminal(plain=interpreter.plain_text_display or "stdin" in parsed.actions, tty=tty)
    try:
        if "debug_config" in parsed.actions:
            from interpreter.frontends.commands import setting_lines

            print("\n".join(setting_lines(interpreter, profile)))
            return 0
        session = _resume(parsed, terminal, interpreter)
        if session is None and _RESUMING & parsed.actions.keys():
            return 0
        message = _message(parsed, terminal, "--output_schema" if schema else None)
        is_named = models.is_model_named(interpreter)
        if not _model_ready(parsed, terminal, interpreter):
            return 1
        chat.connect(terminal, interpreter)
        if message is not None:
            if session is not None:
                from interpreter.frontends.terminal import sessions

                sessions.offer_variables(terminal, interpreter)
            chat.check_rules(interpreter)
            return say(terminal, interpreter, message, schema)
        error = models.model_problem(interpreter)
        if error is not None:
            terminal.error(chat.explained(error))
            if not isinstance(error, MissingKeyError):
                return 1
            from interpreter.frontends.terminal.setup import ask_for_key

            if not ask_for_key(terminal, interpreter):
                return 1
        _apply_trust(terminal, interpreter, is_named)
        may_ask = not is_named and not interpreter.auto_run and terminal.is_attended
        if "setup" in parsed.actions or (may_ask and data_stack.agreed() is None):
            from interpreter.frontends.terminal.setup import offer_data_stack

            offer_data_stack(terminal, interpreter)
        chat.greet(terminal, interpreter)
        if session is not None:
            from interpreter.frontends.terminal import sessions

            sessions.show(terminal, interpreter, session)
        for _ in chat.converse(terminal, interpreter):
            pass
        return 0
    finally:
        end(interpreter)


def _start_events(parsed: Parsed, schema_file: str | None) -> int:
    """Print everything that happens as events on standard output (`--json`)."""

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    events, interpreter = Events(write), None
    try:
        schema = OutputSchema.read_file(schema_file) if schema_file is not None else None
        terminal = Terminal(plain=True, tty=Tty(stdout=sys.stderr))
        with redirect_stdout(sys.stderr):  # profiles may print anything
            interpreter, _ = configured(parsed)
        _resume(parsed, terminal, interpreter)
        message = _message(parsed, terminal, "--json")
        assert message is not None
        with redirect_stdout(sys.stderr):
            _model_ready(parsed, terminal, interpreter)
        if _RESUMING & parsed.actions.keys():
            from interpreter.app import conversations, result_of

            result_of(conversations.restore_variables(interpreter))  # without asking, or not at all
        chat.check_rules(interpreter)
        return say_as_events(interpreter, message, schema, events, partial(chat.send, terminal, interpreter))
    except InterpreterError as error:
        events.error(error)
        raise
    finally:
        if interpreter is not None:
            end(interpreter)


def _resume(parsed: Parsed, terminal: Terminal, interpreter: OpenInterpreter) -> SavedSession | None:
    """Resume the conversation that the command line names; None if it names none, or the user picks none."""
    if not _RESUMING & parsed.actions.keys():
        return None
    from interpreter.app import conversations, result_of
    from interpreter.frontends.terminal import sessions

    row = sessions.named(terminal, interpreter, parsed.actions)
    if row is None:
        return None
    interpreter.computer.return_to_machine(row.path)
    return result_of(conversations.resume(interpreter, row))


def end(interpreter: OpenInterpreter) -> None:
    """Save the variables, end the runtimes and close the journal."""
    if "agent" in vars(interpreter) and interpreter.journal.path is not None:
        with suppress(KeyboardInterrupt):  # the user does not want to wait for it
            interpreter.save_variables_now(interpreter.save_variables_exit_seconds)
    if "computer" in vars(interpreter):
        interpreter.computer.terminate()
    if "agent" in vars(interpreter):
        interpreter.journal.close()


def say(terminal: Terminal, interpreter: OpenInterpreter, said: UserMessage, schema: OutputSchema | None = None) -> int:
    """Answer a message on the terminal; with a schema, standard output gets the JSON value alone."""
    run = HeadlessRun(interpreter)

    def speak(words: str, data: str) -> Iterator[Chunk]:
        yield from chat.answer(terminal, interpreter, words, data)
        run.error, run.interrupted = terminal.problem, terminal.interrupted
        if terminal.failed and run.error is None:
            run.error = InterpreterError()

    code = run.go(speak, said, schema)
    if terminal.unanswered:
        run.not_approved = True
        print(UNATTENDED_SAFE_MODE if interpreter.auto_run else UNATTENDED, file=sys.stderr)
    if run.mismatch:
        print(f"The answer does not match the schema: {visible(str(run.mismatch))}", file=sys.stderr)
    if schema is not None and code == exit_codes.DONE:
        value = json.dumps(run.result, ensure_ascii=False, indent=2)
        is_printable = value.replace("\n", "").isprintable()
        print(value if is_printable else json.dumps(run.result, indent=2))
    return run.code


# -- the message ---------------------------------------------------------------------------------------------------


def _message(parsed: Parsed, terminal: Terminal, needed_by: str | None) -> UserMessage | None:
    """Take the message from the command line, from standard input, or both; None starts a chat."""
    if terminal.tty.can_type:
        message = parsed.message
        if message is None and "stdin" in parsed.actions:
            message = sys.stdin.readline().rstrip("\n")
        if message is None and needed_by:
            raise UsageError(f"{needed_by} needs a message, as an argument or on standard input.")
        return UserMessage(message) if message is not None else None
    text = piped_text()
    if parsed.message is None and not text:
        raise UsageError("No message: standard input is empty.")
    terminal.tty.type_at_terminal()
    return UserMessage(text) if parsed.message is None else UserMessage(parsed.message, text)


def piped_text() -> str:
    """Read all of standard input, if it is a file or a pipe."""
    if sys.stdin is None:
        return ""
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    # The model gets only text: bytes that aren't UTF-8 become replacement characters.
    with suppress(UnsupportedOperation):  # a profile has read from it
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
    if sys.platform != "win32" and not select.select([sys.stdin], [], [], _SILENCE)[0]:
        print("Waiting for standard input to end. (If there is no input, add </dev/null.)", file=sys.stderr, flush=True)
    text = sys.stdin.read(MAX_INPUT_LENGTH + 1)
    if len(text) > MAX_INPUT_LENGTH:
        raise UsageError(
            f"Standard input is longer than {MAX_INPUT_LENGTH:,} characters. Name the file in your message instead."
        )
    return text.strip()


# -- the model -----------------------------------------------------------------------------------------------------


def _model_ready(parsed: Parsed, terminal: Terminal, interpreter: OpenInterpreter) -> bool:
    """Make sure that there is a model to use; False if the user leaves instead."""
    if not {"local", "setup"} & parsed.actions.keys() and (
        models.is_model_named(interpreter) or find_model(terminal, interpreter)
    ):
        for host in leaves.hosts(needed=True):
            if interpreter.llm.model.startswith(f"{host.prefix}/"):
                leaves.load(host.fetch)(terminal, interpreter)
        return True
    from interpreter.frontends.terminal import setup

    if "local" in parsed.actions:
        models.remember(interpreter, setup.local_setup(terminal, interpreter).program)
        return True
    return setup.choose_model(terminal, interpreter)


def _apply_trust(terminal: Terminal, interpreter: OpenInterpreter, is_named: bool) -> None:
    """Let code run as the user chose for their chats; ask at the first start, unless it names a model."""
    if sources(interpreter)["mode"] == "code" or trust.is_given(interpreter) or not terminal.is_attended:
        return
    mode = trust.recall(interpreter).replace(trust.NO_SANDBOX, "")
    if mode or not is_named:
        from interpreter.frontends.terminal import setup

        setup.use_trust(terminal, interpreter, mode) if mode else setup.choose_trust(terminal, interpreter)


def find_model(terminal: Terminal, interpreter: OpenInterpreter) -> bool:
    """Use the model for a key in the environment, or the last choice, and say which one."""
    if (variable := models.choose_by_key(interpreter)) is not None:
        terminal.tell(f"Using {interpreter.llm.model} because {variable} is set. Use --model to pick another.")
        return True
    if models.model_problem(interpreter) is None:
        return True
    chosen = models.recall(interpreter)
    if chosen is None:
        return False
    problem = chosen.problem
    try:
        if problem and chosen.program:
            from interpreter.frontends.terminal.setup import start_again

            return start_again(terminal, interpreter, chosen.program, chosen.model)
    except LocalServerError as error:
        problem = str(error)
    if not problem and (refused := models.use_remembered(interpreter, chosen)) is not None:
        problem = str(refused).rstrip(".")
    if problem:
        terminal.tell(f"Can't use your last model, {chosen.model}: {problem}.")
        return False
    terminal.tell(f"Using {chosen.model}, your last choice. To change it: interpreter --setup")
    return True


# -- settings and profiles -----------------------------------------------------------------------------------------


def configured(parsed: Parsed, present: OpenInterpreter | None = None) -> tuple[OpenInterpreter, Profile | None]:
    """Apply a profile, the environment and the command line to an interpreter; return it and the profile."""
    interpreter = present or OpenInterpreter()
    package.interpreter = interpreter  # `from interpreter import interpreter` in a profile must get this one
    interpreter.in_terminal_interface = True
    if not sys.stdin.isatty() and not sys.stdout.isatty():
        apply(interpreter, headless_defaults(), "default")
    # Before the profile, which may read them. The weaker source loses in any order.
    apply(interpreter, parsed.settings, "flag")
    profile = _load_profile(interpreter, parsed)
    if (llm := interpreter.llm).api_base:
        vars(llm)["model"] = with_prefix_in_name(llm.model, llm.api_base)
    if parsed.shortcut:  # `i want ...`: do one thing quickly
        instructions = (Path(__file__).parent / "shortcut.md").read_text(encoding="utf-8").strip()
        names = sorted(os.listdir())
        listed = "\n".join(names[:100]) or "(nothing)"
        more = f"\n(and {len(names) - 100} more)" if len(names) > 100 else ""
        interpreter.custom_instructions = f"{instructions}\n\nIn {os.getcwd()}:\n{listed}{more}"
    if interpreter.verbose:
        from interpreter.frontends.commands import settings_in_use

        for name, value, origin in settings_in_use(interpreter):
            if origin not in ("default", "code"):
                print(f"{name} = {value} ({origin})", file=sys.stderr)
    return interpreter, profile


def _load_profile(interpreter: OpenInterpreter, parsed: Parsed) -> Profile | None:
    """Load the profile that the command line names, or else the user's default one; print its notices."""
    from interpreter.config.profiles.profile import default_file

    file = _named_profile(parsed) or default_file()
    notices, profile = [], None
    if {"local", "vision"} <= parsed.actions.keys():
        notices = ["--vision has no effect with --local: images are not described for models that don't accept them."]
    if file is not None:
        from interpreter.config.profiles import load

        profile = load(interpreter, str(file), lambda found: "trust_profile" in parsed.actions or _accepted(found))
        notices += profile.notices
    for notice in notices:
        print(visible(notice), file=sys.stderr)
    return profile


def _named_profile(parsed: Parsed) -> str | None:
    """Return the profile that flags name; `--codestral --vision` together name one."""
    actions, with_os = parsed.actions, parsed.settings.get("os") is True
    naming = ("fast", "codestral", "llama3", "groq", "assistant", "profile")
    given = [f"--{name}" for name in naming if name in actions]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} each name a profile. Use only one of them.")
    if not given:
        flag = "vision" if "vision" in actions else "os" if with_os else None
        return None if "local" in actions else flag
    name = given[0][2:]
    if name == "profile":
        return str(actions["profile"])
    if name in _VARIED and with_os:
        return f"{name}-os"
    return f"{name}-vision" if name in _VARIED and "vision" in actions else name


def _accepted(profile: Profile) -> bool:
    """Show a profile from the internet in full and ask whether to use it."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ProfileError(
            f"The profile {profile.location.address} was not loaded, because there is no terminal to show it and ask. "
            f"Save it as a file and load that, or use --trust_profile."
        )
    print(described(profile))
    return (Terminal(plain=True).ask("Load it? (y/n) ") or "").strip().lower() in ("y", "yes")


def described(profile: Profile) -> str:
    lines = [f"The profile {profile.location.address}"]
    if profile.location.address.lower().startswith("http://"):
        lines[0] += " (fetched without encryption)"
    if profile.is_python:
        lines += ["is a program. It would run with your permissions:", "", profile.code.rstrip(), ""]
    else:
        lines.append("sets:")
        rows = profile.text.split("\n")
        for name, value in profile.settings.items():
            at = profile.lines.get(name)
            # Print the entry as written, so that the value of a variable isn't shown.
            written = rows[at - 1].partition(":")[2].strip() if profile.variables and at else ""
            lines.append(f"  {name} = {written if '$' in written else repr(value)}")
        if profile.languages is not None:
            lines.append(f"  computer.languages = {list(profile.languages)}")
        if lines[-1] == "sets:":
            lines.append("  (nothing)")
        if profile.code:
            lines += ["and runs this program with your permissions:", "", profile.code.rstrip(), ""]
    if profile.variables:
        lines.append(f"It reads these environment variables: {', '.join(profile.variables)}.")
    return "\n".join(visible(line) for text in lines for line in text.split("\n"))
