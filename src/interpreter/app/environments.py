"""The Python environment of a session: switch to another one, or empty it."""

from __future__ import annotations

from collections.abc import Callable, Generator

from interpreter.api import OpenInterpreter
from interpreter.app import perform
from interpreter.console_text import counted
from interpreter.errors import NotRestorableError, RuntimeStartError, UsageError
from interpreter.questions import Confirm, Question
from interpreter.runtimes import data_stack
from interpreter.runtimes.environments import SESSION, Choice, Environment, empty_layer, offered_project
from interpreter.session import Do, Event


def environment_of(interpreter: OpenInterpreter) -> Environment:
    """Return the Python of the next session, and where its packages go."""
    if (machine := interpreter.computer.machine) is not None:
        raise UsageError(f"Code runs on {machine.name}: its Python can't be switched from here. %pip installs there.")
    interpreter.runtimes.apply_sandbox()
    return interpreter.runtimes.context.python_environment()


def switch_python(interpreter: OpenInterpreter, wanted: str | None) -> Generator[Event, None, str]:
    """Continue in another Python with the variables that can move there; returns a note about those that can't.

    `wanted` is what the setting `computer.python` takes.
    """
    switch = Do("python", lambda: _switch(interpreter, wanted), "Python is being switched")
    return (yield from perform(interpreter, switch))  # type: ignore[no-any-return]


def _switch(interpreter: OpenInterpreter, wanted: str | None) -> str:
    computer, pool = interpreter.computer, interpreter.runtimes
    before, environment = computer.python, environment_of(interpreter)
    old = pool.runtime("python") if pool.is_alive("python") else None
    computer.python = wanted
    try:
        after = environment_of(interpreter)
    except RuntimeStartError as error:
        computer.python = before
        _ = pool.context
        raise UsageError(f"There is no Python at {wanted}. Name a program, a folder, or conda:NAME.") from error
    if wanted == "in-process" or after == environment:
        return "" if after == environment else "Its variables are not carried over."
    known = Choice.of(pool.context.workspace)
    project = (
        known.folder
        if known is not None
        else offered_project(pool.context.workspace, None, pool.context.own_environment())
    )
    if project and (after.folder == project or wanted == SESSION):  # remember whether the user wants it from now on
        Choice(project, after.folder == project).save(pool.context.workspace)
    pool.context.change_environment(environment)
    if old is None:
        return ""
    try:
        new, restored = old.split(pool)
        note = str(restored).replace("Not restored", "Not carried over")
    except NotRestorableError as error:
        pool.end("python")
        return f"The variables were not carried over. {error}"
    pool.use(new)
    old.terminate()
    return note


def reset_environment(interpreter: OpenInterpreter) -> Generator[Event, None, Environment | None]:
    """Remove all packages of the session environment, after asking; None if the answer was not a yes."""
    chosen = environment_of(interpreter)
    if not chosen.is_layer:
        place = chosen.folder or chosen.python
        raise UsageError(f"{place} is your own environment. To remove a package from it: %env remove PACKAGE")
    prompt = f"Remove {counted(len(chosen.installed()), 'package')} from the session environment?"

    def empty() -> Environment:
        empty_layer(chosen)
        return chosen

    question = Question(Confirm(prompt, "environment", details=chosen))
    reset = Do("environment", empty, "packages are being removed", question=question)
    return (yield from perform(interpreter, reset))  # type: ignore[no-any-return]


# -- the data stack --------------------------------------------------------------------------------------------------


def update_stack(interpreter: OpenInterpreter, on_change: Callable[[str], object]) -> None:
    """Install the data stack, or its newest versions, in the background, and remember that the user wants it."""
    if interpreter.offline:
        raise UsageError("Offline mode is on. Start without --offline to install the data packages.")
    if not environment_of(interpreter).stack:
        raise UsageError("Code here runs in your own environment, which doesn't use the data packages.")
    data_stack.agree(True)
    data_stack.make(interpreter.computer.data_stack, on_change, again=True)


def resume_stack(interpreter: OpenInterpreter, on_change: Callable[[str], object]) -> None:
    """Continue an installation that the user agreed to and that was interrupted."""
    if data_stack.agreed() and not data_stack.installed() and not interpreter.offline:
        data_stack.make(interpreter.computer.data_stack, on_change)
