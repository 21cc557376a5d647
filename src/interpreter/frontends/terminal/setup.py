"""Which model answers: the one that is named, the one that a key or the last choice tells, or one chosen now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from interpreter.errors import LocalServerError, NoModelError
from interpreter.frontends.terminal.menu import Menu, fitting
from interpreter.frontends.terminal.render.words import wrapped
from interpreter.llm.providers import (
    STARTING_MODELS,
    keys_file,
    keys_in_environment,
    provider_of,
    save_key,
    starting_model,
)

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal
    from interpreter.llm.providers import Provider

_NO_MODEL = "No model is set up yet. Choose one; the next start takes it without asking."
_KINDS = {
    "a key": "of OpenAI, Anthropic, Google or another provider; one in the environment (OPENAI_API_KEY, "
    "ANTHROPIC_API_KEY, ...) is found there",
    "a server": "Ollama, LM Studio, Jan, llama.cpp, vLLM: what runs here is listed",
    "built-in": "a small model, downloaded once: no key, no account, and nothing that you say leaves this machine",
}
_CAUTION = (
    "You are asked before code runs. `interpreter --sandbox workspace` (in the chat: %sandbox workspace) also keeps it "
    "from all files but those of the folder that you start in, and from the network: recommended."
)
_WIDEST = 79

NOBODY_TO_ASK = """\
No model is set up, and there is no terminal to choose one at. One of these helps:
  a key in the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, ...
  a server on this machine: interpreter --local, or --api_base ADDRESS --model NAME
  a choice for all later starts: `interpreter` in a terminal, once"""


def ready(terminal: Terminal, interpreter: OpenInterpreter, anew: bool = False) -> bool:
    """See to it that there is a model to ask; False if the user would rather leave."""
    from interpreter.app.models import is_model_named
    from interpreter.frontends.terminal import local

    if not anew and (is_model_named(interpreter) or _is_found(terminal, interpreter)):
        return True

    if not local.can_ask():
        raise NoModelError(NOBODY_TO_ASK)
    return _choose(terminal, interpreter)


def remember_local(interpreter: OpenInterpreter) -> None:
    """`--local`: choose a model on this machine, and keep the choice."""
    from interpreter.app.models import remember
    from interpreter.frontends.terminal import local

    taken = local.local_setup(interpreter)
    remember(interpreter, taken.program)


def _is_found(terminal: Terminal, interpreter: OpenInterpreter) -> bool:
    """Whether the environment or the last choice tell what to ask; a line says what that is."""
    from interpreter.app import models

    if models.model_problem(interpreter) is None:
        return True
    if (variable := models.choose_by_key(interpreter)) is not None:
        terminal.tell(f"{variable} is set, so the model is {interpreter.llm.model}. --model names another.")
        return True
    return _by_memory(terminal, interpreter)


def _by_memory(terminal: Terminal, interpreter: OpenInterpreter) -> bool:
    from interpreter.app import models
    from interpreter.frontends.terminal import local

    chosen = models.recall(interpreter)
    if chosen is None:
        return False
    problem = chosen.problem
    try:
        if problem and chosen.program:
            return local.start_again(interpreter, chosen.program, chosen.model)
    except LocalServerError as error:
        problem = str(error)
    if not problem and (refused := models.use_remembered(interpreter, chosen)) is not None:
        problem = str(refused).rstrip(".")
    if problem:
        terminal.tell(f"The model chosen last, {chosen.model}, cannot be used: {problem}.")
        return False
    terminal.tell(f"Chosen last: {chosen.model}. `interpreter --setup` changes it.")
    return True


# -- choosing ------------------------------------------------------------------------------------------------


def _choose(terminal: Terminal, interpreter: OpenInterpreter) -> bool:
    from interpreter.app.models import remember
    from interpreter.frontends.terminal import local

    print("\n".join(_first_words(min(terminal.tty.size()[0] - 1, _WIDEST))))
    for row, variable in keys_in_environment(os.environ):
        print(fitting(f"{variable} is set: --model {starting_model(row) or f'{row.prefix}/NAME'} uses it."))
    print()
    paste = _PastedKey(terminal)
    try:
        taken = local.choose(interpreter, [] if interpreter.offline else [local.Choice(_PASTE, paste)])
    except KeyboardInterrupt:
        return False
    if taken.label != _PASTE or paste.is_kept:
        remember(interpreter, taken.program)
    return True


def _first_words(width: int) -> list[str]:
    """What there is to choose from, in one screen."""
    rows = wrapped(_NO_MODEL, width)
    for kind, told in _KINDS.items():
        rows += wrapped(f"  {kind:<9} {told}", width, hanging=10 if width >= _WIDEST else 2)
    return rows + wrapped(_CAUTION, width)


_PASTE = "Paste the key of a provider"


class _PastedKey:
    """A key from the user: whose it is, and whether it is kept, is asked where it cannot be known."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.is_kept = False

    def __call__(self, interpreter: OpenInterpreter) -> None:
        key = (self._terminal.ask("Key, hidden while you type (Enter goes back): ", password=True) or "").strip()
        if not key:
            raise NoModelError("No key was given.")
        row = provider_of(key) or self._whose()
        model = starting_model(row)
        interpreter.llm.model, interpreter.llm.api_base, interpreter.llm.api_key = model, None, key
        self.is_kept = offer_to_keep(row, key, self._terminal.plain)
        print(fitting(f"Using {model} with this key. --model names another model."))

    def _whose(self) -> Provider:
        from interpreter.llm.providers import ROWS

        rows = [ROWS[prefix] for prefix in STARTING_MODELS]
        labels = [f"{row.prefix}  ({row.key_variables[0]})" for row in rows]
        try:
            return rows[Menu("Whose key is it?", labels, "goes back", self._terminal.plain).choose()]
        except KeyboardInterrupt:
            raise NoModelError("The key is not used.") from None


def offer_to_keep(row: Provider, key: str, plain: bool) -> bool:
    """Keep a key for the next start if the user says so; in a file of theirs, and nowhere else."""
    answers = ["No: for this session alone", f"Yes: in {keys_file()}, which only you can read"]
    try:
        wanted = Menu("Keep the key for the next start?", answers, plain=plain).choose() == 1
        path = save_key(row.key_variables[0], key) if wanted else None
    except KeyboardInterrupt:
        return False
    except OSError as error:
        print(fitting(f"It could not be kept in {keys_file()}: {error.strerror}."))
        return False
    if path is not None:
        print(f"The key is kept in {path}.")
    return path is not None
