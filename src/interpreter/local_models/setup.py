"""Choosing a model on this machine in the terminal: a server that runs, one to start, or the built-in engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from interpreter.api import OpenInterpreter
from interpreter.app.attachments import existing
from interpreter.console_text import visible
from interpreter.errors import DownloadError, LocalServerError, WeightsMissingError
from interpreter.frontends.commands import open_folder
from interpreter.frontends.flags import Parsed
from interpreter.frontends.terminal.setup import (
    QUESTION,
    TO_EXIT,
    ModelChoice,
    check_online,
    run_installer,
)
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.frontends.terminal.widgets import choose_row
from interpreter.host.installation import pip_command
from interpreter.local_models import engine, ollama, servers, weights

OLLAMA = "ollama"
# Offered for Ollama besides what it has; any other name can be typed.
SUGGESTED = ("qwen2.5-coder:7b", "llama3.1", "codestral", "gemma2", "mistral-nemo", "phi3")


def choices(terminal: Terminal, others: Sequence[ModelChoice] = ()) -> list[ModelChoice]:
    """List the models of running servers, then the others, then what can be started or downloaded."""
    running = servers.find()
    for server in running:
        if server.problem and terminal.is_attended:
            terminal.tell(server.problem, "")
    return [*_served(running), *others, *_startable(running), *_builtin()]


def open_models_folder(parsed: Parsed) -> int:
    """`--local_models`: open the folder with downloaded models, and print its path."""
    open_folder(weights.models_folder())
    return 0


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


def _use_server_model(
    terminal: Terminal, interpreter: OpenInterpreter, server: servers.LocalServer, model: servers.Model
) -> None:
    window = _use_at_server(interpreter, server, model)
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
    check_online(interpreter.offline)
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
        number = choose_row(terminal, QUESTION, labels, TO_EXIT) if len(known) > 1 else 0
        _use_server_model(terminal, interpreter, server, known[number])
    else:
        _get_for_ollama(terminal, interpreter, server)


def fetch_named(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    """If the settings name a model of the hub that is not on this machine, download it once the user agrees."""
    name = interpreter.llm.model.removeprefix(weights.PREFIX)
    if not (name.startswith(weights.HUB) and terminal.is_attended):
        return
    try:
        weights.file_of(name)
    except WeightsMissingError:
        _use_from_hub(terminal, interpreter, name)


def _use_from_hub(terminal: Terminal, interpreter: OpenInterpreter, name: str) -> None:
    check_online(interpreter.offline)
    row = weights.from_hub(name)
    if not weights.is_here(row) and not terminal.confirm(f"Download {row.title} ({row.size / 1e9:.1f} GB)?"):
        raise DownloadError("Not downloaded.")
    _use_builtin(terminal, interpreter, row)


def _use_builtin(terminal: Terminal, interpreter: OpenInterpreter, what: weights.Weights | Path) -> None:
    engine.check_system()
    if not engine.is_installed():
        check_online(interpreter.offline)
        run_installer(terminal, "The built-in model needs llama.cpp. To install it:", pip_command(engine.PACKAGE))
        if not engine.is_installed():
            raise LocalServerError("The installation failed. See the output above.")
    if isinstance(what, weights.Weights) and not weights.is_here(what):
        check_online(interpreter.offline)
        show_download(what.file, weights.download(what, weights.models_folder()))
    name = weights.model_string(what)
    file = weights.file_of(name.removeprefix(weights.PREFIX))
    terminal.tell(f"Loading {file.name} ...", "")
    served = engine.running(file, interpreter.llm.context_window)
    interpreter.llm.model, interpreter.llm.api_base = name, None
    interpreter.llm.context_window = served.context
    terminal.tell(f"Using {name}, window {served.context:,} tokens.", "")


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


def _use_at_server(interpreter: OpenInterpreter, server: servers.LocalServer, model: servers.Model) -> int | None:
    """Use a model of a server on this machine; return its window in tokens, if known."""
    llm = interpreter.llm
    window = servers.context_of(server, model, llm.context_window)
    llm.model, llm.api_base = server.model_string(model), server.api_base
    if window is not None:
        llm.context_window = window
    if server.kind.prefix == "openai/" and llm.api_key is None:
        llm.api_key = "local"  # or OpenAI's own key would go to this server
    return window


def show_download(name: str, steps: Iterable[weights.Progress]) -> None:
    """Run a download with a progress bar. Ctrl-C stops it and keeps the part that has arrived."""
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    # The names are printed above the bar, so that it fits 80 columns.
    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(20), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    announced, quarters = "", 0
    with Progress(*columns) as bar:
        task = bar.add_task("waiting", total=None)
        for step in steps:
            source = f" from {step.source}" if step.source else ""
            if step.step == "downloading" and announced != (announced := f"{name}{source}"):
                verb = "Resuming" if step.done else "Downloading"
                announcement = f"{verb} {announced}. If it stops, the next start resumes it."
                bar.console.print(visible(announcement), markup=False, highlight=False)
            if not bar.console.is_terminal and step.total and step.done * 4 // step.total > quarters:
                quarters = step.done * 4 // step.total  # in a pipe, print a few lines instead of a bar
                bar.console.print(f"{25 * quarters}%")
            bar.update(task, description=visible(step.step), completed=step.done, total=step.total or None)
