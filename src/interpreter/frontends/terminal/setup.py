"""Choosing a model: a provider's key, a server on this machine, or the built-in engine (`--setup`, `--local`)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib import invalidate_caches
from pathlib import Path

from interpreter.api import OpenInterpreter
from interpreter.app import trust
from interpreter.app.attachments import existing
from interpreter.app.models import remember, use_server_model
from interpreter.config.settings import DATA_STACK
from interpreter.console_text import visible
from interpreter.errors import (
    DownloadError,
    LocalServerError,
    ModelError,
    NoModelError,
    SandboxUnavailableError,
    UsageError,
    WeightsMissingError,
    WrongKeyError,
)
from interpreter.frontends.terminal.render.ansi import wrapped
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.widgets import choose_row, show_download
from interpreter.host import processes
from interpreter.host.installation import install_command, pip_command
from interpreter.llm import ollama, servers
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
from interpreter.local_models import engine, weights
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

OLLAMA = "ollama"
# Offered for Ollama besides what it has; any other name can be typed.
SUGGESTED = ("qwen2.5-coder:7b", "llama3.1", "codestral", "gemma2", "mistral-nemo", "phi3")
_QUESTION = "Which model?"
_TO_EXIT = "to exit"

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
    """Let the user type a key for the model they named, until one works, and keep it if they like; False to leave."""
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
    running = servers.find()
    choices = [*_served(running), *_startable(running), *_builtin()]
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
        running = servers.find()
        for server in running:
            if server.problem:
                terminal.tell(server.problem, "")
        choices = [*_served(running), *others, *_startable(running), *_builtin()]
        # Keys pressed in between are for the next list, so they aren't echoed. In plain text, the terminal
        # itself edits the line, and would miss Enter.
        hides_keys = terminal.tty.in_foreground and not terminal.plain
        try:
            with terminal.tty.keys(marks=False) if hides_keys else nullcontext():
                taken = choices[choose_row(terminal, _QUESTION, [choice.label for choice in choices], _TO_EXIT)]
                taken.take(terminal, interpreter)
            return taken
        except (ModelError, DownloadError) as error:
            terminal.tell(f"{error}\n", "")  # then show the list again: another choice may work


def start_again(terminal: Terminal, interpreter: OpenInterpreter, program: str, model: str) -> bool:
    """Start a program as an earlier choice did, and use that model; False if it no longer exists."""
    for choice in _startable([]):
        if choice.program == program:
            choice.take(terminal, interpreter, model)
            return True
    return False


def _served(found: list[servers.LocalServer]) -> Iterator[ModelChoice]:
    for server in found:
        for model in server.models:
            take = partial(_use_server_model, server=server, model=model)
            yield ModelChoice(_model_label(server, model), take, is_ready=True)
        if server.kind.name == OLLAMA:
            yield ModelChoice("Get another model for Ollama", partial(_get_for_ollama, server=server))


def _startable(found: list[servers.LocalServer]) -> Iterator[ModelChoice]:
    program = engine.ollama_program()
    if program and not any(server.kind.name == OLLAMA for server in found):
        kind = next(kind for kind in servers.known_kinds() if kind.name == OLLAMA)
        start = partial(engine.start_ollama, kind, program)
        yield ModelChoice("Start Ollama", partial(_start, start=start), program=OLLAMA)
    for file in engine.llamafiles():
        start = partial(engine.start_llamafile, file)
        yield ModelChoice(f"Start {file.name}", partial(_start, start=start), program=str(file))


def _builtin() -> Iterator[ModelChoice]:
    installed = engine.is_installed()
    for row in weights.WEIGHTS:
        here = weights.is_here(row)
        state = "on this machine" if here else f"{row.size / 1e9:.1f} GB to download"
        label = f"built-in  {row.title} ({state})"
        yield ModelChoice(label, partial(_use_builtin, what=row), here and installed)
    for file in weights.own_files():
        yield ModelChoice(f"built-in  {file.name}", partial(_use_builtin, what=file), installed)
    yield ModelChoice("built-in  Your own GGUF file, or one from Hugging Face", _ask_for_file)


# -- taking a choice -----------------------------------------------------------------------------------------------


def _use_server_model(
    terminal: Terminal, interpreter: OpenInterpreter, server: servers.LocalServer, model: servers.Model
) -> None:
    window = use_server_model(interpreter, server, model)
    size = f", window {window:,} tokens." if window else "."
    terminal.tell(f"Using {model.name} at {server.kind.title}{size}", "")


def _get_for_ollama(terminal: Terminal, interpreter: OpenInterpreter, server: servers.LocalServer) -> None:
    had = {model.name for model in server.models}
    names = [name for name in SUGGESTED if name not in had]
    rows = [*names, "Another one: type its name (see https://ollama.com/library)"]
    number = choose_row(terminal, "Which model should Ollama download?", rows)
    name = names[number] if number < len(names) else terminal.ask("Model: ")
    if not name:
        raise LocalServerError("No model was named.")
    _check_online(interpreter.offline)
    show_download(name, (weights.Progress(*step) for step in ollama.pull(server.kind.address, name)))
    _use_server_model(terminal, interpreter, server, servers.Model(name))


def _start(
    terminal: Terminal, interpreter: OpenInterpreter, wanted: str = "", *, start: Callable[[], engine.StartedServer]
) -> None:
    terminal.tell("Starting it. It stops when this program exits.", "")
    started = start()
    server = servers.look(started.kind)
    if server is None:
        started.child.close()
        raise LocalServerError(f"{started.kind.title} started, but it doesn't list its models.")
    known = [model for model in server.models if server.model_string(model) == wanted] or server.models
    if known:
        labels = [_model_label(server, model) for model in known]
        number = choose_row(terminal, _QUESTION, labels, _TO_EXIT) if len(known) > 1 else 0
        _use_server_model(terminal, interpreter, server, known[number])
    else:
        _get_for_ollama(terminal, interpreter, server)


def fetch_named(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """If the settings name a model of the hub that is not on this machine, download it once the user agrees."""
    name = interpreter.llm.model.removeprefix(weights.PREFIX)
    try:
        weights.file_of(name)
    except WeightsMissingError:
        _use_from_hub(terminal, interpreter, name)


def _use_from_hub(terminal: Terminal, interpreter: OpenInterpreter, name: str) -> None:
    _check_online(interpreter.offline)
    row = weights.from_hub(name)
    if not weights.is_here(row) and not terminal.confirm(f"Download {row.title} ({row.size / 1e9:.1f} GB)?"):
        raise DownloadError("Not downloaded.")
    _use_builtin(terminal, interpreter, row)


def _use_builtin(terminal: Terminal, interpreter: OpenInterpreter, what: weights.Weights | Path) -> None:
    engine.check_system()
    if not engine.is_installed():
        _check_online(interpreter.offline)
        _install(terminal, "The built-in model needs llama.cpp. To install it:", pip_command(engine.PACKAGE))
        if not engine.is_installed():
            raise LocalServerError("The installation failed. See the output above.")
    if isinstance(what, weights.Weights) and not weights.is_here(what):
        _check_online(interpreter.offline)
        show_download(what.file, weights.download(what, weights.models_folder()))
    name = weights.model_string(what)
    file = weights.file_of(name.removeprefix(weights.PREFIX))
    terminal.tell(f"Loading {file.name} ...", "")
    served = engine.running(file, interpreter.llm.context_window)
    interpreter.llm.model, interpreter.llm.api_base = name, None
    interpreter.llm.context_window = served.context
    terminal.tell(f"Using {name}, window {served.context:,} tokens.", "")


def install_extra(terminal: Terminal, extra: str, offline: bool, unasked: bool = False) -> None:
    """Add an extra to this installation, or raise an error that says why not; `unasked`: the user agreed already."""
    command = install_command(extra)
    _check_online(offline)
    _install(terminal, f"To add {extra} to Open Interpreter:", command, unasked)
    invalidate_caches()
    terminal.tell(f"Installed {extra}.", "")


def _install(terminal: Terminal, purpose: str, command: list[str], unasked: bool = False) -> None:
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


def _check_online(offline: bool) -> None:
    if offline:
        raise LocalServerError("Can't download anything while `offline` is set.")


def _ask_for_file(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    terminal.tell(f"One from Hugging Face, by its name there: {weights.HUB}OWNER/REPO/FILE.gguf", "")
    given = (terminal.ask("Path of the GGUF file: ") or "").strip()
    if given.startswith(weights.HUB):
        _use_from_hub(terminal, interpreter, given)
    else:
        path = existing(given, os.getcwd()) if given else None  # dropped into a terminal, it comes quoted or escaped
        if path is None or not os.path.isfile(path):
            raise LocalServerError(f"There is no file {given!r}.")
        _use_builtin(terminal, interpreter, Path(path))


def _model_label(server: servers.LocalServer, model: servers.Model) -> str:
    notes = [f"{model.size / 1e9:.1f} GB"] if model.size else []
    notes += ["loaded"] if model.is_loaded else []
    return f"{server.kind.title}  {model.name}" + (f" ({', '.join(notes)})" if notes else "")
