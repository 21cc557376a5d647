"""Choosing a model: a provider's key, a server on this machine, or the built-in engine (`--setup`, `--local`)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from importlib import invalidate_caches

from interpreter.api import OpenInterpreter
from interpreter.app import trust
from interpreter.app.models import remember
from interpreter.config.settings import DATA_STACK
from interpreter.console_text import visible
from interpreter.errors import (
    DownloadError,
    LocalServerError,
    ModelError,
    NoModelError,
    SandboxUnavailableError,
    UsageError,
    WrongKeyError,
)
from interpreter.frontends.terminal.render.ansi import wrapped
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.widgets import choose_row
from interpreter.host import processes
from interpreter.host.installation import install_command
from interpreter.leaves import hosts, load
from interpreter.llm.providers import (
    ROWS,
    STARTING_MODELS,
    Provider,
    identify,
    keys_file,
    keys_in_environment,
    provider_of,
    save_key,
    starting_model,
)
from interpreter.policy.policy import mode_of
from interpreter.runtimes import data_stack

_KINDS = {
    "a key": "from OpenAI, Anthropic, Google or another provider; keys in the environment (OPENAI_API_KEY, "
    "ANTHROPIC_API_KEY, ...) are detected",
    "a server": "Ollama, LM Studio, Jan, llama.cpp, vLLM: lists the ones that are running",
    "built-in": "a small model, downloaded once: no key, no account, and nothing leaves this machine",
}
_TRUST = (
    "Ask before each block",
    "Run freely inside a sandbox of this folder: writes only here, network off, homes and keys hidden, undo on. "
    "I'll ask before anything leaves it.",
)
_MAX_WIDTH = 79

QUESTION = "Which model?"
TO_EXIT = "to exit"

NO_TERMINAL = """\
No model is set up, and there is no terminal to pick one. Do one of these:
  set a key: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, ...
  use a local server: interpreter --local, or --api_base URL --model NAME
  run `interpreter` in a terminal once and pick a model"""


def choose_model(terminal: Terminal, interpreter: OpenInterpreter, again: bool = False) -> bool:
    """Let the user pick a model, or another one, and remember it; False if they leave."""
    if not terminal.is_attended:
        raise NoModelError(NO_TERMINAL)
    width = min(terminal.tty.size()[0] - 1, _MAX_WIDTH)
    rows = wrapped(f"{'' if again else 'No model is set up yet. '}Pick a model. I'll remember it.", width)
    for kind, label in _KINDS.items():
        rows += wrapped(f"  {kind:<9} {label}", width, hanging=10 if width >= _MAX_WIDTH else 2)
    for row, variable in keys_in_environment(os.environ):
        rows.append(f"{variable} is set. To use it: --model {starting_model(row) or f'{row.prefix}/NAME'}")
    terminal.tell("\n".join([*rows, ""]), "")
    is_kept = True

    def paste_key(terminal: Terminal, interpreter: OpenInterpreter) -> None:
        nonlocal is_kept
        key = (terminal.ask("API key, hidden while you type (Enter to go back): ", password=True) or "").strip()
        if not key:
            raise NoModelError("No key was given.")
        row = provider_of(key)
        if row is None:
            rows = [ROWS[prefix] for prefix in STARTING_MODELS]
            labels = [f"{row.prefix}  ({row.key_variables[0]})" for row in rows]
            try:
                row = rows[choose_row(terminal, "Whose key is it?", labels, "to go back")]
            except KeyboardInterrupt:
                raise NoModelError("The key was not used.") from None
        model, llm = starting_model(row), interpreter.llm
        before = llm.model, llm.api_base, llm.api_key
        llm.model, llm.api_base, llm.api_key = model, None, key
        try:
            _test_key(terminal, interpreter)
        except WrongKeyError:
            llm.model, llm.api_base, llm.api_key = before  # a server must not get this key
            raise
        is_kept = _offer_to_keep(terminal, row, key)
        terminal.tell(f"Using {model} with this key. --model names another model.", "")

    try:
        paste = ModelChoice("Paste a provider's API key", paste_key)
        taken = choose(terminal, interpreter, [] if interpreter.offline else [paste])
    except KeyboardInterrupt:
        return False
    if is_kept:
        remember(interpreter, taken.program)
    return True


def offer_data_stack(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """Ask whether to install the data packages. The chat installs them in the background."""
    wanted, is_away = interpreter.computer.data_stack, interpreter.offline or interpreter.computer.remote
    asks = terminal.is_attended and mode_of(interpreter) != "auto" and not is_away and hasattr(os, "fork")
    if not (asks and wanted) or data_stack.installed():
        return
    size = " (200 MB to download, 800 MB on disk)" if wanted == list(DATA_STACK) else ""
    offer = (
        f"Code for data needs packages: {', '.join(wanted)}. I can install them once for all folders{size}, "
        "while you chat. Your own environments don't change, and %env stack remove deletes them."
    )
    terminal.tell("\n".join([*wrapped(offer, min(terminal.tty.size()[0] - 1, _MAX_WIDTH)), ""]), "")
    rows = ["Yes: install them in the background", "No: ask for each package when code needs it"]
    with suppress(KeyboardInterrupt, UsageError):  # they decide later; installing reports an unwritable folder
        data_stack.agree(choose_row(terminal, "Install the data packages?", rows, "to decide later") == 0)


# -- when code may run ---------------------------------------------------------------------------------------------


def choose_trust(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """Let the user pick when code may run, and remember it; where no sandbox works, say once how to get one."""
    from interpreter.sandbox.containment import check_available

    try:
        check_available()
    except SandboxUnavailableError as error:
        if trust.recall(interpreter) != trust.NO_SANDBOX:
            terminal.tell(f"I'll ask before running any code. To let it run freely, a sandbox has to work: {error}", "")
            trust.remember(interpreter, trust.NO_SANDBOX)
        return
    question, mode = "When may code run? I'll remember it; Shift-Tab and %mode change it in a chat.", "ask"
    with suppress(KeyboardInterrupt):
        mode = ("ask", trust.IN_SANDBOX)[choose_row(terminal, question, _TRUST, "to be asked")]
    trust.remember(interpreter, mode)
    use_trust(terminal, interpreter, mode, "code")


def use_trust(terminal: Terminal, interpreter: OpenInterpreter, mode: str, source: str = "default") -> None:
    """Apply the choice to this chat; where the folder can't be a sandbox, say why and ask before each block."""
    try:
        trust.switch_mode(interpreter, mode, source)
    except SandboxUnavailableError as error:
        terminal.tell(f"I'll ask before running any code here. {error}", "")
        trust.switch_mode(interpreter, "ask", source)


# -- a key ---------------------------------------------------------------------------------------------------------


def ask_for_key(terminal: Terminal, interpreter: OpenInterpreter) -> bool:
    """Ask for the model's key until one works, and offer to save it; False if the user leaves."""
    before = interpreter.llm.api_key
    while True:
        try:
            key = terminal.ask("API key, hidden while you type (Enter to leave): ", password=True)
        except KeyboardInterrupt:
            key = None
        if not key or not key.strip():
            interpreter.llm.api_key = before
            return False
        interpreter.llm.api_key = key.strip()
        try:
            _test_key(terminal, interpreter)
            break
        except WrongKeyError as error:
            terminal.tell(str(error), "")
    row = ROWS.get(identify(interpreter.llm.model)[0])
    if row is not None and row.key_variables and terminal.is_attended:
        _offer_to_keep(terminal, row, key.strip())
    return True


def _test_key(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """Ask the model for a word; WrongKeyError if the provider rejects the key. Other problems are only shown."""
    from interpreter.llm.llm import SideChat

    terminal.tell("Testing the key ...", "")
    chat = SideChat(interpreter.llm, max_tokens=16)
    vars(chat)["max_retries"] = 0
    try:
        chat.answer("Answer with one word.", "Hello")
    except WrongKeyError:
        raise
    except ModelError as error:
        terminal.tell(f"The key couldn't be tested: {error}", "")
    else:
        terminal.tell("The key works.", "")


def _offer_to_keep(terminal: Terminal, row: Provider, key: str) -> bool:
    """Save a key for the next start if the user agrees, only in the user's own file."""
    answers = ["No: only for this session", f"Yes: save it in {keys_file()}, which only you can read"]
    try:
        wanted = choose_row(terminal, "Save the key for next time?", answers) == 1
        path = save_key(row.key_variables[0], key) if wanted else None
    except KeyboardInterrupt:
        return False
    except OSError as error:
        terminal.tell(f"Can't save it in {keys_file()}: {error.strerror}.", "")
        return False
    if path is not None:
        terminal.tell(f"Saved the key in {path}.", "")
    return path is not None


# -- a list of what there is ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelChoice:
    """A row of the list, and what taking it does; `is_ready` if that needs no download and no start."""

    label: str
    take: Callable[..., None]
    is_ready: bool = False
    program: str = ""  # what has to be started first, if anything: `ollama`, or the path of a llamafile


def local_setup(terminal: Terminal, interpreter: OpenInterpreter) -> ModelChoice:
    """Let the user choose a model on this machine; without a terminal, take the only one there is."""
    if terminal.is_attended:
        return choose(terminal, interpreter)
    choices = _choices(terminal)
    ready = [choice for choice in choices if choice.is_ready]
    if len(ready) == 1:
        terminal.tell(f"Using {ready[0].label}", "")
        ready[0].take(terminal, interpreter)
        return ready[0]
    listed = "".join(f"\n  {choice.label}" for choice in ready or choices)
    if ready:
        raise LocalServerError(f"There are several local models. Pick one with --model:{listed}")
    raise LocalServerError(
        "No local model is running, and there is no terminal to ask at. Run `interpreter --local` in a terminal once. "
        f"It can offer:{listed}"
    )


def choose(terminal: Terminal, interpreter: OpenInterpreter, others: Sequence[ModelChoice] = ()) -> ModelChoice:
    """Let the user choose from the list: running servers first, then `others`."""
    while True:
        choices = _choices(terminal, others)
        # Keys pressed in between are for the next list, so they aren't echoed. In plain text, the terminal
        # itself edits the line, and would miss Enter.
        hides_keys = terminal.tty.in_foreground and not terminal.plain
        try:
            with terminal.tty.keys(marks=False) if hides_keys else nullcontext():
                taken = choices[choose_row(terminal, QUESTION, [choice.label for choice in choices], TO_EXIT)]
                taken.take(terminal, interpreter)
            return taken
        except (ModelError, DownloadError) as error:
            terminal.tell(f"{error}\n", "")  # then show the list again: another choice may work


def _choices(terminal: Terminal, others: Sequence[ModelChoice] = ()) -> list[ModelChoice]:
    """List the models on this machine with the others; MissingLeafError if there can be none."""
    choices = list(others)
    for host in hosts(needed=not others):
        choices = load(host.choices)(terminal, choices)
    return choices


def start_again(terminal: Terminal, interpreter: OpenInterpreter, program: str, model: str) -> bool:
    """Start a program as an earlier choice did, and use that model; False if it no longer exists."""
    for choice in _choices(terminal):
        if choice.program == program:
            choice.take(terminal, interpreter, model)
            return True
    return False


def install_extra(terminal: Terminal, extra: str, offline: bool, unasked: bool = False) -> None:
    """Add an extra to this installation, or raise an error that says why not; `unasked`: the user agreed already."""
    command = install_command(extra)
    check_online(offline)
    run_installer(terminal, f"To add {extra} to Open Interpreter:", command, unasked)
    invalidate_caches()
    terminal.tell(f"Installed {extra}.", "")


def run_installer(terminal: Terminal, purpose: str, command: list[str], unasked: bool = False) -> None:
    """Run an installer once the user agrees, with its output shown; DownloadError if it doesn't succeed."""
    terminal.tell(purpose, "")
    line = shlex.join(command)
    terminal.tty.write(visible(f"  {line}\n"))  # on one line, to be copied
    answer = "y" if unasked else terminal.ask("Install it now? [Y/n] ")
    if answer is None or answer.strip().lower() not in ("", "y", "yes"):
        raise DownloadError(f"Not installed. To install it yourself, run: {line}")
    try:
        installer = processes.start(command, stdout=1, stderr=2)
    except OSError as error:
        raise DownloadError(f"Can't start {command[0]}: {error.strerror}.") from error
    try:
        if installer.wait():
            raise DownloadError("The installation failed. See the output above.")
    finally:
        processes.kill(installer)


def check_online(offline: bool) -> None:
    if offline:
        raise LocalServerError("Can't download anything while `offline` is set.")
