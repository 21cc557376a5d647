"""`wtf`: explains the command that just failed, and offers a fix that runs only if the user says yes.

A hook in the user's shell (hook.bash, hook.zsh) remembers the command. Its output comes from a pipe, from the
recorder (`wtf --record`) or from tmux. Nothing is run again to get it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interpreter.console_text import OUTPUT, ConsoleText, visible
from interpreter.frontends.cli import run_program

if TYPE_CHECKING:
    from interpreter.frontends.flags import Parsed

USAGE = """\
Usage: wtf [flags] [question]     explain the command that failed last, and offer a fix
       command 2>&1 | wtf         explain the command's output
       wtf --show                 print what would be sent to the model, and exit
       wtf --record [command]     run your shell so that wtf can see the end of its output
       wtf --help

wtf learns about the last failed command from a hook in your shell. Add this to ~/.bashrc (or ~/.zshrc, with zsh):

    eval "$(interpreter --shell-hook bash)"

wtf takes the same flags as `interpreter`, such as --model and --profile."""
_NOTHING = """\
There is no failed command to explain. Either no command has failed yet, or the hook is not in this shell. Add this to
~/.bashrc (or ~/.zshrc, with zsh) and open a new shell:

    eval "$(interpreter --shell-hook bash)\""""
MAX_OUTPUT_LENGTH = 9000
RECORDING = "WTF_RECORD"  # the variable that names the recorder's file
_MARK = re.compile(r"\x1b\]133;(?P<kind>[CD])(?:;(?P<status>\d+))?(?:\x07|\x1b\\)")
_TMUX_LINES = 300


class FailedCommand(NamedTuple):
    """The command that failed last."""

    command: str = ""
    status: int | None = None
    folder: str = ""
    shell: str = ""
    is_sure: bool = True  # False: only the last command in the shell's history is known
    output: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program. Exit codes are those of `interpreter`."""
    return run_program("wtf", _run, list(sys.argv[1:] if argv is None else argv))


def print_hook(parsed: Parsed) -> int:
    """Print the lines for the rc file of a shell: `interpreter --shell_hook`."""
    print(hook(parsed.actions["shell_hook"]))
    return 0


def hook(shell: str) -> str:
    """Return the lines for the shell's rc file."""
    return (Path(__file__).parent / f"hook.{shell}").read_text(encoding="utf-8").rstrip("\n")


def _run(arguments: list[str]) -> int:
    """Ask the model, and run what it proposes if the user says yes. Nothing is kept."""
    match arguments:
        case ["--record", *command]:
            from interpreter.frontends.wtf.recorder import record

            return record(command)
        case ["--help" | "-h", *_]:
            print(USAGE)
            return 0
    from interpreter.frontends.start import configured, end, piped_text, say

    failure = last_failure(os.environ, piped_text())
    if not (failure.command or failure.output):
        print(_NOTHING, file=sys.stderr)
        return 1
    if "--show" in arguments:
        arguments.remove("--show")
        print(visible(message_for(failure, " ".join(arguments)), OUTPUT))
        return 0
    from interpreter.frontends.flags import parse
    from interpreter.frontends.headless.run import UserMessage
    from interpreter.frontends.terminal.terminal import Terminal

    has_flags = bool(arguments) and arguments[0].startswith("-")
    parsed = parse(arguments if has_flags else ["--", *arguments], "wtf")
    interpreter, profile = configured(parsed)
    interpreter.system_message = (Path(__file__).parent / "prompt.md").read_text(encoding="utf-8").strip()
    interpreter.auto_run = False
    interpreter.loop = False
    interpreter.conversation_history = False
    if profile is not None and not profile.is_python and "llm.model" not in parsed.settings:
        import yaml

        data = yaml.safe_load(profile.text)
        settings = data.get("wtf") if isinstance(data, dict) else None  # only this program reads it
        model = settings.get("model") if isinstance(settings, dict) else None
        if isinstance(model, str):
            interpreter.llm.model = model
    terminal = Terminal(plain=interpreter.plain_text_display)
    if not terminal.tty.can_type:
        terminal.tty.type_at_terminal()
    if not failure.output:
        terminal.tell(
            "Only the command and its status are known, not its output: run the shell in tmux or under `wtf --record`."
        )
    try:
        return say(terminal, interpreter, UserMessage("", message_for(failure, parsed.message or "")))
    finally:
        end(interpreter)


def message_for(failure: FailedCommand, question: str = "") -> str:
    """Write the message to the model, without environment variables or any secrets that we recognise."""
    import platform

    from interpreter.llm.secrets import redact

    parts = []
    if failure.command:
        doubt = "" if failure.is_sure else " (the last in the history; the one that failed may not be in it)"
        parts.append(f"I typed{doubt}:\n\n```sh\n{failure.command}\n```")
    if failure.status is not None:
        parts.append(f"It ended with status {failure.status}, in {failure.folder or os.getcwd()}.")
    if failure.output:
        parts.append(f"The end of its output:\n\n```text\n{failure.output}\n```")
        if source := _source_lines(failure.output, failure.folder or os.getcwd()):
            parts.append(f"From its source, {source}")
    else:
        parts.append("Its output is unknown.")
    parts.append(f"This is {platform.system()} {platform.machine()}, the shell is {failure.shell or 'unknown'}.")
    parts.append(question or "What went wrong, and how do I fix it?")
    return redact("\n\n".join(parts))


def _source_lines(output: str, folder: str, around: int = 4) -> str:
    """Quote the lines around the last place inside the folder that a Python traceback names."""
    folder = os.path.realpath(folder)
    for name, number in reversed(re.findall(r'File "([^"]+)", line (\d+)', output)):
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.commonpath([path, folder]) != folder or not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(1_000_000).splitlines()
        first = max(0, int(number) - 1 - around)
        shown = [f"{at}: {line}" for at, line in enumerate(lines[first : int(number) + around], first + 1)]
        return f"{name}, around line {number}:\n" + "\n".join(shown)
    return ""


# -- what is known of the failure --------------------------------------------------------------------------------


def last_failure(environ: Mapping[str, str], piped: str = "") -> FailedCommand:
    """Return the command that the shell's hook remembers, with output from a pipe, the recorder or tmux."""
    known = environ.get("WTF_STATUS", "")
    command = environ.get("WTF_COMMAND", "") if known else ""
    status = int(known) if known.isdigit() else None
    output = ""
    if piped.strip():
        output = piped.strip("\n")
    elif path := environ.get(RECORDING):
        from interpreter.frontends.wtf.recorder import read_recording

        output = recorded_output(read_recording(path).decode("utf-8", "replace"), status)
    elif environ.get("TMUX") and environ.get("TMUX_PANE"):
        output = _tmux_output(command, environ["TMUX_PANE"])
    return FailedCommand(
        command,
        status,
        environ.get("WTF_FOLDER", ""),
        environ.get("WTF_SHELL", ""),
        is_sure=bool(environ.get("WTF_SURE")),
        output=output[-MAX_OUTPUT_LENGTH:],
    )


def recorded_output(text: str, status: int | None) -> str:
    """Find the output of the last command with that status, between the marks that the hook puts around it."""
    begun, output = 0, ""
    for mark in _MARK.finditer(text):
        if mark["kind"] == "C":
            begun = mark.end()
        elif int(mark["status"] or 0) == status and status:
            output = text[begun : mark.start()]
    settled = ConsoleText(MAX_OUTPUT_LENGTH)
    settled.write(output)
    return settled.text().strip("\n")


def _tmux_output(command: str, pane: str) -> str:
    """Capture the pane from the line where the command was typed, without the line that called us."""
    from interpreter.host import processes

    capture = ["tmux", "capture-pane", "-p", "-J", "-S", f"-{_TMUX_LINES}", "-t", pane]
    try:
        done = processes.run(capture, timeout=10)
    except OSError:
        return ""
    lines = done.text.rstrip().splitlines() if done.returncode == 0 else []
    if lines and re.search(r"(?:^|\s)wtf\b", lines[-1]):
        lines.pop()
    first = command.splitlines()[0].strip() if command else ""
    typed = [number for number, line in enumerate(lines) if first and line.rstrip().endswith(first)]
    if not typed:
        return "\n".join(lines[-60:])
    return "\n".join(line.rstrip() for line in lines[typed[-1] :] if line.strip())
