"""The command line: from arguments to a chat, a single turn, or a line of text."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from interpreter.errors import ProfileError, UsageError

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.config.profiles import Profile
    from interpreter.frontends.flags import Parsed
    from interpreter.frontends.headless.run import OutputSchema, Said
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.session.journal import Session


_NOTHING_ELSE = frozenset({"server"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; its exit code, which exit_codes.py explains."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    from interpreter.errors import InterpreterError

    try:
        return _run(arguments)
    except InterpreterError as error:
        from interpreter.frontends.exit_codes import code_for

        print(f"interpreter: {error}", file=sys.stderr)
        return code_for(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; what is still buffered must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - people get a line, not a traceback
        from interpreter.frontends.terminal.chat import fault

        print(fault(error, "--debug" in arguments), file=sys.stderr)
        return 1


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:  # answered without loading the settings
        print(version_line())
        return 0
    from interpreter.frontends.flags import parse

    parsed = parse(arguments, os.path.basename(sys.argv[0]))
    code = _answered_at_once(parsed)
    if code is not None:
        return code
    for notice in parsed.notices:
        print(notice, file=sys.stderr)
    if _NOTHING_ELSE & parsed.actions.keys():
        return 1
    signal.signal(signal.SIGTERM, _leave)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, _leave)
    return _talk_as_events(parsed) if "json" in parsed.actions else _talk(parsed)


def version_line() -> str:
    """What `--version` prints."""
    from interpreter.version import __version__

    return f"Open Interpreter {__version__} Developer Preview"


def _answered_at_once(parsed: Parsed) -> int | None:
    """What needs no interpreter: the exit code, or None if it is something else."""
    if "version" in parsed.actions:
        print(version_line())
        return 0
    if "help" in parsed.actions:
        from interpreter.frontends.flags import help_text

        print(help_text())
        return 0
    if "completion" in parsed.actions:
        from interpreter.frontends.flags import script

        print(script(parsed.actions["completion"]))
        return 0
    if "shell_hook" in parsed.actions:
        from interpreter.frontends.terminal.wtf import hook

        print(hook(parsed.actions["shell_hook"]))
        return 0
    if "models" in parsed.actions:
        from interpreter.frontends.commands import list_models

        return list_models(parsed)
    if "policy_check" in parsed.actions:
        from interpreter.frontends.commands import check

        return check(parsed)
    if "local_models" in parsed.actions:
        from interpreter.frontends.commands import open_models

        open_models()
        return 0
    return _about_profiles(parsed)


def _about_profiles(parsed: Parsed) -> int | None:
    if "profiles" in parsed.actions:
        from interpreter.config.profiles import make_default
        from interpreter.frontends.commands import open_folder

        open_folder(make_default().parent)
        return 0
    if "reset_profile" in parsed.actions:
        from interpreter.config.profiles import reset

        name = parsed.actions["reset_profile"]
        print("\n".join(reset(name if isinstance(name, str) else None)))
        return 0
    return None


def _talk(parsed: Parsed) -> int:
    from interpreter.frontends.terminal import sessions
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.frontends.terminal.tty import Tty

    schema = _schema(parsed)
    interpreter, profile = configured(parsed)
    # With a schema, standard output is for the value that fits it.
    tty = Tty(stdout=sys.stderr) if schema else None
    terminal = Terminal(plain=interpreter.plain_text_display or "stdin" in parsed.actions, tty=tty)
    try:
        if "debug_config" in parsed.actions:
            return _debug_config(interpreter, profile)
        session = sessions.take_up(terminal, interpreter, parsed.actions)
        if session is None and sessions.FLAGS & parsed.actions.keys():
            return 0
        message = _message(parsed, terminal)
        if not _model_ready(parsed, terminal, interpreter):
            return 1
        if message is None and schema is None:
            return _chat(terminal, interpreter, session)
        from interpreter.frontends.headless.run import say
        from interpreter.frontends.terminal.chat import check_rules

        check_rules(interpreter)
        return say(terminal, interpreter, _said(message, "--output_schema"), schema)
    finally:
        _end(interpreter)


def _talk_as_events(parsed: Parsed) -> int:
    """`--json`: whatever happens is an event."""
    from contextlib import redirect_stdout

    from interpreter.errors import InterpreterError
    from interpreter.frontends.headless.run import say_as_events, standard_events
    from interpreter.frontends.terminal import sessions
    from interpreter.frontends.terminal.chat import check_rules
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.frontends.terminal.tty import Tty

    events, interpreter = standard_events(), None
    try:
        schema = _schema(parsed)
        terminal = Terminal(plain=True, tty=Tty(stdout=sys.stderr))
        with redirect_stdout(sys.stderr):  # a profile may print what it likes
            interpreter, _ = configured(parsed)
        sessions.take_up(terminal, interpreter, parsed.actions)
        message = _said(_message(parsed, terminal), "--json")
        with redirect_stdout(sys.stderr):
            _model_ready(parsed, terminal, interpreter)
        check_rules(interpreter)
        return say_as_events(terminal, interpreter, message, schema, events)
    except InterpreterError as error:
        events.error(error)
        raise
    finally:
        if interpreter is not None:
            _end(interpreter)


def _said(message: Said | None, flag: str) -> Said:
    if message is None:
        from interpreter.errors import UsageError

        raise UsageError(f"{flag} needs a message: as words, or on standard input.")
    return message


def _end(interpreter: OpenInterpreter) -> None:
    if "computer" in vars(interpreter):
        interpreter.computer.terminate()
    if "journal" in vars(interpreter):
        interpreter.journal.close()


def _schema(parsed: Parsed) -> OutputSchema | None:
    if "output_schema" not in parsed.actions:
        return None
    from interpreter.frontends.headless.run import OutputSchema

    return OutputSchema(parsed.actions["output_schema"])


def _model_ready(parsed: Parsed, terminal: Terminal, interpreter: OpenInterpreter) -> bool:
    from interpreter.frontends.terminal import setup

    if "local" in parsed.actions:
        setup.remember_local(interpreter)
        return True
    return setup.ready(terminal, interpreter, anew="setup" in parsed.actions)


def configured(parsed: Parsed) -> tuple[OpenInterpreter, Profile | None]:
    """An interpreter with the settings of a profile, the environment and the command line; and that profile."""
    import interpreter as package
    from interpreter.api import OpenInterpreter
    from interpreter.config.setting import apply, headless_defaults

    interpreter = OpenInterpreter()
    package.interpreter = interpreter  # the one of this process, for what a profile imports
    interpreter.in_terminal_interface = True
    if not sys.stdin.isatty() and not sys.stdout.isatty():
        apply(interpreter, headless_defaults(), "default")
    # Before the profile, which sees them; the weaker source gives way, whichever speaks first.
    apply(interpreter, parsed.settings, "flag")
    profile = load_profile(interpreter, parsed)
    for notice in notices(profile, parsed):
        print(notice, file=sys.stderr)
    if parsed.shortcut:
        interpreter.custom_instructions = shortcut_instructions()
    if interpreter.verbose:
        from interpreter.frontends.commands import changed

        print("\n".join(changed(interpreter)), file=sys.stderr)
    return interpreter, profile


def _debug_config(interpreter: OpenInterpreter, profile: Profile | None) -> int:
    from interpreter.frontends.commands import setting_lines

    print("\n".join(setting_lines(interpreter, profile)))
    return 0


def shortcut_instructions() -> str:
    """What the model is told when somebody wants one thing done quickly, with a look at the folder."""
    from pathlib import Path

    words = (Path(__file__).parent / "shortcut.md").read_text(encoding="utf-8").strip()
    names = sorted(os.listdir())
    listed = "\n".join(names[:100]) or "(nothing)"
    more = f"\n(and {len(names) - 100} more)" if len(names) > 100 else ""
    return f"{words}\n\nIn {os.getcwd()}:\n{listed}{more}"


def _message(parsed: Parsed, terminal: Terminal) -> Said | None:
    """What there is to say without a chat: the words, what is piped in, or both."""
    from interpreter.errors import UsageError
    from interpreter.frontends.headless.run import Said

    if terminal.tty.can_type:
        if parsed.message is None and "stdin" in parsed.actions:
            return Said(sys.stdin.readline().rstrip("\n"))
        return Said(parsed.message) if parsed.message is not None else None

    text = piped_text()
    if parsed.message is None and not text:
        raise UsageError("There is no message: standard input is empty.")
    terminal.tty.type_at_terminal()
    return Said(text) if parsed.message is None else Said(parsed.message, text)


def _chat(terminal: Terminal, interpreter: OpenInterpreter, session: Session | None = None) -> int:
    from interpreter.app.models import model_problem
    from interpreter.errors import MissingKeyError
    from interpreter.frontends.terminal import sessions
    from interpreter.frontends.terminal.chat import (
        ask_for_key,
        converse,
        explained,
        greet,
    )

    error = model_problem(interpreter)
    if error is not None:
        terminal.error(explained(error))
        if not isinstance(error, MissingKeyError) or not ask_for_key(terminal, interpreter):
            return 1
    greet(terminal, interpreter)
    if session is not None:
        sessions.show(terminal, interpreter, session)
    for _ in converse(terminal, interpreter):
        pass
    return 0


def _leave(number: int, frame: object) -> None:
    """Told to end: unwind, so that the terminal and the sessions are put in order."""
    prompt = sys.modules.get("interpreter.frontends.terminal.prompt")
    if prompt is None or not prompt.leave(128 + number):
        raise SystemExit(128 + number)


_SHORTCUTS = ("fast", "codestral", "llama3", "groq", "assistant")
_VARIED = ("codestral", "llama3")  # those with a form for the screen and one for images
_LOCAL_VISION = "--vision: with --local, images are not described for a model that cannot look at them."


def load_profile(interpreter: OpenInterpreter, parsed: Parsed) -> Profile | None:
    """Load the profile that the command line names, or else the user's default one if there is one."""
    name = named_profile(parsed)
    if name is None:
        from interpreter.config.profiles.profile import default_file

        file = default_file()
        if file is None:
            return None
        name = str(file)
    from interpreter.config.profiles import load

    return load(interpreter, name, accept=_trusted if "trust_profile" in parsed.actions else _accepted)


def notices(profile: Profile | None, parsed: Parsed) -> list[str]:
    """What the user should know about the profile, in a line or two."""
    lines = [_LOCAL_VISION] if {"local", "vision"} <= parsed.actions.keys() else []
    if profile is None:
        return lines
    lines += profile.notices
    later = [words for words in profile.later if not any(words in told for told in parsed.notices)]
    # Everybody's old default profile asks for the computer API: no reason to say so at every start.
    if later and named_profile(parsed) is not None:
        lines.append(f"The profile {Path(profile.place.address).stem} asks for more: {'; '.join(later)}.")
    return lines


def named_profile(parsed: Parsed) -> str | None:
    """The profile that flags name; `--codestral --vision` together name one."""
    actions, with_os = parsed.actions, parsed.settings.get("os") is True
    given = [f"--{name}" for name in (*_SHORTCUTS, "profile") if name in actions]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} each name a profile: use one of them.")
    if not given and "local" in actions:
        return None
    if not given:
        return "vision" if "vision" in actions else "os" if with_os else None
    name = given[0][2:]
    if name == "profile":
        return str(actions["profile"])
    if name in _VARIED and with_os:
        return f"{name}-os"
    return f"{name}-vision" if name in _VARIED and "vision" in actions else name


def _trusted(profile: Profile) -> bool:
    return True


def _accepted(profile: Profile) -> bool:
    """Show the whole of a profile from the net and ask."""
    from interpreter.frontends.terminal.terminal import Terminal

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ProfileError(
            f"The profile {profile.place.address} was not loaded: nobody is here to look at it. Save it as a file and "
            "name that, or say --trust_profile."
        )
    print(described(profile))
    answer = Terminal(plain=True).ask("Load it? (y/n) ")
    return (answer or "").strip().lower() in ("y", "yes")


def described(profile: Profile) -> str:
    """Everything that a profile would do."""
    from interpreter.frontends.terminal.render.ansi import visible

    lines = [f"The profile {profile.place.address}"]
    if profile.place.address.lower().startswith("http://"):
        lines[0] += " (not encrypted on its way)"
    if profile.is_python:
        lines += ["is a program. It would run as you, with all that you may do:", "", profile.code.rstrip(), ""]
    else:
        lines += ["sets:", *(f"  {line}" for line in _setting_lines(profile))]
    if profile.code and not profile.is_python:
        lines += ["and runs this program as you, with all that you may do:", "", profile.code.rstrip(), ""]
    if profile.variables:
        lines.append(f"It reads the environment variables {', '.join(profile.variables)}.")
    return "\n".join(visible(line) for text in lines for line in text.split("\n"))


def _setting_lines(profile: Profile) -> list[str]:
    """The settings as the file has them: what a variable holds is not shown."""
    rows = profile.text.split("\n")
    lines = []
    for name, value in profile.settings.items():
        at = profile.lines.get(name)
        written = rows[at - 1].partition(":")[2].strip() if profile.variables and at else ""
        lines.append(f"{name} = {written if '$' in written else repr(value)}")
    if profile.languages is not None:
        lines.append(f"computer.languages = {list(profile.languages)}")
    return lines or ["(nothing)"]


LARGEST = 10_000_000  # characters: more is no message
_SILENCE = 2.0  # seconds before we say that we wait
_WAITING = "Reading standard input until its end. (If nothing is to come, start with </dev/null.)"


def piped_text() -> str:
    """All of standard input, where it is a file or a pipe."""
    if sys.stdin is None or not _has_something_to_say(sys.stdin.fileno()):
        return ""
    # Text and nothing but text reaches the model: what is not UTF-8 becomes a mark.
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
    if not select.select([sys.stdin], [], [], _SILENCE)[0]:
        print(_WAITING, file=sys.stderr, flush=True)
    text = sys.stdin.read(LARGEST + 1)
    if len(text) > LARGEST:
        words = f"Standard input is longer than {LARGEST:,} characters: name the file in your message instead."
        raise UsageError(words)
    return text.strip()


def _has_something_to_say(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
