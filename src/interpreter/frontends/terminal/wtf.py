"""`wtf`: the command that just failed, explained, and a fix that runs only if the user says yes."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.config.profiles import Profile
    from interpreter.frontends.terminal.shell_hook.failure import Failure

USAGE = """\
Usage: wtf [flags] [question]     explain the command that failed last, and offer a fix
       command 2>&1 | wtf         explain what the command says
       wtf --show                 print what would be told to the model, and end
       wtf --record [command]     run your shell so that wtf can see the end of its output
       wtf --help

wtf knows the last failed command from a hook in your shell. Put this into ~/.bashrc (or ~/.zshrc, with zsh):

    eval "$(interpreter --shell-hook bash)"

Flags are those of `interpreter`, such as --model and --profile."""
_NOTHING = """\
wtf does not know of a failed command. Its hook is not in this shell, or nothing has failed yet. Put this into
~/.bashrc (or ~/.zshrc, with zsh) and open a new shell:

    eval "$(interpreter --shell-hook bash)\""""
_NO_OUTPUT = (
    "(Only the command and its status are known, not its output: run the shell in tmux or under `wtf --record`.)"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; its exit code is that of `interpreter`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    from interpreter.errors import InterpreterError

    try:
        return _run(arguments)
    except InterpreterError as error:
        from interpreter.frontends.exit_codes import code_for

        print(f"wtf: {error}", file=sys.stderr)
        return code_for(error)
    except KeyboardInterrupt:
        return 130


def _run(arguments: list[str]) -> int:
    if arguments[:1] == ["--record"]:
        from interpreter.frontends.terminal.shell_hook.recorder import record

        return record(arguments[1:])
    if arguments[:1] in (["--help"], ["-h"]):
        print(USAGE)
        return 0
    showing = "--show" in arguments
    if showing:
        arguments.remove("--show")
    failure = _failure()
    if not failure.known:
        print(_NOTHING, file=sys.stderr)
        return 1
    return _show(failure, arguments) if showing else _explain(failure, arguments)


def _failure() -> Failure:
    from interpreter.frontends.terminal.shell_hook.failure import last_failure

    piped = ""
    if sys.stdin is not None and not sys.stdin.isatty():
        from interpreter.frontends.cli import piped_text

        piped = piped_text()
    return last_failure(os.environ, piped)


def _show(failure: Failure, arguments: list[str]) -> int:
    print(told(failure, " ".join(arguments)))
    return 0


def told(failure: Failure, question: str = "") -> str:
    """What the model is told: no variable of the environment, and no secret that can be recognised."""
    from interpreter.frontends.terminal.shell_hook.failure import source_lines
    from interpreter.llm.secrets import redact

    parts = []
    if failure.command:
        doubt = "" if failure.sure else " (the last in the history; the one that failed may not be in it)"
        parts.append(f"I typed{doubt}:\n\n```sh\n{failure.command}\n```")
    if failure.status is not None:
        parts.append(f"It ended with status {failure.status}, in {failure.folder or os.getcwd()}.")
    if failure.output:
        parts.append(f"The end of its output:\n\n```text\n{failure.output}\n```")
        if source := source_lines(failure.output, failure.folder):
            parts.append(f"From its source, {source}")
    else:
        parts.append("Its output is not known.")
    parts.append(f"This is {platform.system()} {platform.machine()}, the shell is {failure.shell or 'not known'}.")
    parts.append(question or "What went wrong, and how do I fix it?")
    return redact("\n\n".join(parts))


def _explain(failure: Failure, arguments: list[str]) -> int:
    """Ask the model, and run what it proposes if the user says yes."""
    from interpreter.frontends.cli import configured
    from interpreter.frontends.flags import parse
    from interpreter.frontends.headless.run import Said, say
    from interpreter.frontends.terminal.terminal import Terminal

    has_flags = bool(arguments) and arguments[0].startswith("-")
    parsed = parse(arguments if has_flags else ["--", *arguments], "wtf")
    interpreter, profile = configured(parsed)
    _prepare(interpreter, profile, "llm.model" in parsed.settings)
    terminal = Terminal(plain=interpreter.plain_text_display)
    if not terminal.tty.can_type:
        terminal.tty.type_at_terminal()
    if not failure.output:
        terminal.tell(_NO_OUTPUT)
    try:
        return say(terminal, interpreter, Said("", told(failure, parsed.message or "")))
    finally:
        if "computer" in vars(interpreter):
            interpreter.computer.terminate()


def _prepare(interpreter: OpenInterpreter, profile: Profile | None, model_given: bool) -> None:
    """A short answer, nothing without a yes, nothing kept."""
    interpreter.system_message = (Path(__file__).parent / "wtf.md").read_text(encoding="utf-8").strip()
    interpreter.auto_run = False
    interpreter.loop = False
    interpreter.conversation_history = False
    model = _settings(profile).get("model")
    if isinstance(model, str) and not model_given:
        interpreter.llm.model = model


def _settings(profile: Profile | None) -> dict[str, Any]:
    """The key `wtf` of a profile, which only this program reads."""
    if profile is None or profile.is_python:
        return {}
    import yaml

    data = yaml.safe_load(profile.text)
    found = data.get("wtf") if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}
