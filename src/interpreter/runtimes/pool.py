"""The live runtimes of a computer: one per language, what they share, and the states they can return to."""

from __future__ import annotations

import inspect
import os
import shutil
import threading
import traceback
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from interpreter.errors import BusyError, InterpreterError, LanguageNotFound, NotPreviewableError, NotRestorableError
from interpreter.leaves import code_names, exists, load
from interpreter.messages import Chunk, notice
from interpreter.questions import ANSWER, Answer, Question, Step, without_questions
from interpreter.runtimes.base import BaseLanguage
from interpreter.session import Action, ActionContext, ActionFields, Actor, Block
from interpreter.sigint import call_user_code, iterate_user_code, wait_for_abandoned

if TYPE_CHECKING:
    from interpreter.computer_api.computer import Computer
    from interpreter.config.settings import InterpreterSettings
    from interpreter.preview.dry_run import DryRun
    from interpreter.preview.overlay import Overlay
    from interpreter.runtimes import Registry
    from interpreter.runtimes.launch import RuntimeContext, RuntimeSandbox
    from interpreter.runtimes.live import Job, LiveLanguage
    from interpreter.runtimes.state import Completions, Mark, Restored, Saving, Variable

Language = type[BaseLanguage]
Outcomes = dict[str, "Restored | NotRestorableError"]


SEPARATE = "This code runs in separate runtimes: its sandbox, or its agent, differs from that of the session."
MAX_LOG_LENGTH = 100_000  # characters of what an installer says


class SuspendedRuntimes(NamedTuple):
    """Runtimes that a pool has set aside, and their sandboxes."""

    running: dict[Language, BaseLanguage]
    left_sandboxes: list[RuntimeSandbox]
    containment: RuntimeSandbox | None

    def terminate(self) -> None:
        for language in self.running.values():
            language.terminate()
        for containment in (*self.left_sandboxes, self.containment):
            if containment is not None:
                containment.close()


class Installation(Action):
    """Install packages for a block in its runtime: a child action of the block, while it holds the lane."""

    kind = "install"

    def __init__(self, runtime: LiveLanguage, packages: Sequence[str], code: str) -> None:
        super().__init__()
        self._runtime, self._code = runtime, code
        self._fields: ActionFields = {"language": runtime.name, "packages": [*packages]}

    @property
    def fields(self) -> ActionFields:
        return self._fields

    def run(self, context: ActionContext) -> Generator[Chunk]:
        self.result = ""
        outer, self._runtime.on_end = self._runtime.on_end, self.mark_over
        try:
            with closing(self._runtime.run(self._code)) as chunks:  # type: ignore[type-var]
                for chunk in without_questions(chunks):
                    self.outcome = chunk.get("ended", self.outcome)
                    if chunk.get("format") == "output":
                        self.result = (self.result + str(chunk["content"]))[-MAX_LOG_LENGTH:]
        finally:
            self._runtime.on_end = outer
        yield from ()

    def stop(self) -> None:
        self._runtime.stop()


class RuntimePool:
    """The runtimes that one actor's blocks run in.

    A computer has one. An actor with another sandbox, and an agent that another agent started, has its own.
    """

    def __init__(self, computer: Computer, actor: Actor | None = None) -> None:
        self._computer, self._actor = computer, actor
        self._lock = threading.RLock()
        self._running: dict[Language, BaseLanguage] = {}
        self._context: RuntimeContext | None = None
        self._left_sandboxes: list[RuntimeSandbox] = []  # runtimes may still be inside
        self._dry_run: DryRun | None = None
        self.active: BaseLanguage | None = None  # it is running a block
        self._known: tuple[object, ...] = ()  # what `_found` depends on
        self._found: list[tuple[Language, str | None]] = []
        self._is_announced = False  # whether a notice has said that these are separate ones
        self._introduced = False  # whether a notice has named the environment of Python

    @property
    def settings(self) -> InterpreterSettings | None:
        """Return the settings whose limits apply: those of its actor, otherwise those of the computer's session."""
        return self._computer.settings_of(self._actor)

    @property
    def registry(self) -> Registry:
        return self._computer.registry

    # -- what the runtimes share -----------------------------------------------------------------------------------

    @property
    def context(self) -> RuntimeContext:
        """Return the context that the runtimes share, with the present settings."""
        from interpreter.runtimes.launch import RuntimeContext

        computer, settings = self._computer, self.settings
        if self._context is None:
            self._context = RuntimeContext()
            if settings is not None:
                self._context.cwd = self._context.workspace = settings.workspace
        shared = self._context
        if computer.machine is not None and not shared.elsewhere:
            shared.cwd, shared.elsewhere = computer.machine.workspace, True
        shared.python, shared.shell, shared.shell_rc = computer.python, computer.shell, computer.shell_rc
        shared.active_lines, shared.table_rows = computer.active_line_detection, computer.table_rows
        shared.sql, shared.browser, shared.snapshots = computer.sql, computer.browser_path, computer.undo_snapshots
        shared.shares_environment = computer.environment == "shared"
        shared.preload, shared.max_shared = computer.preload, computer.max_shared
        shared.tools, shared.stand_in = computer.code_calls, computer.code_calls.stand_in
        shared.emit_images = computer.emit_images
        shared.names = code_names()
        shared.skills = computer.skills.import_skills if computer.import_skills else None
        shared.offline = computer.is_offline
        if settings is not None:
            shared.timeout, shared.max_output = settings.block_timeout, settings.max_output
        return shared

    def apply_sandbox(self) -> None:
        """Start new runtimes in the sandbox that the settings ask for, or in none."""
        _ = self._computer.session  # with it comes what contains code
        shared, contain, settings = self.context, self._computer.contain, self.settings
        if contain is None or settings is None:
            return
        actor, before = self._actor or self._computer.user, shared.containment
        shared.containment = contain(settings, actor.permissions.sandbox, before)
        if before is not None and before is not shared.containment:
            self._left_sandboxes.append(before)
            shared.exported.clear()  # such as LD_PRELOAD: programs outside would obey it
            shared.shared.clear()

    # -- runtimes by language --------------------------------------------------------------------------------------

    def runtime(self, name: str) -> BaseLanguage:
        """Return the runtime of a language, made on first use; LanguageNotFound for an unknown one."""
        wait_for_abandoned()
        language = self._computer.get_language(name)
        if language is None:
            raise LanguageNotFound(unknown_language(name, self.available()))
        running, variant = self._running.get(language), language.variant(self.context)
        if running is not None and variant is not language and not isinstance(running, variant):
            self._running.pop(language).terminate()  # Python moves into our own process
        return self._running.get(language) or self._make(language)

    def _make(self, language: Language) -> BaseLanguage:
        with self._lock:  # several threads may be the first
            if language not in self._running:
                variant = language.variant(self.context)
                takes_computer = any(
                    parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
                    for parameter in inspect.signature(variant).parameters.values()
                )
                given = self._computer if self._computer.runtimes is self else self
                try:
                    self._running[language] = variant(given) if takes_computer else variant()  # type: ignore[call-arg]
                except Exception as error:  # a user's own class may raise anything
                    raise LanguageNotFound(
                        f"{language.name} could not be started: {type(error).__name__}: {error}"
                    ) from error
            return self._running[language]

    def use(self, runtime: BaseLanguage) -> None:
        self._running[self._computer.get_language(runtime.name) or type(runtime)] = runtime

    def keep_only(self, languages: Iterable[Language]) -> None:
        for dropped in set(self._running) - set(languages):
            self._running.pop(dropped).terminate()

    def available(self) -> list[Language]:
        """Return the languages that run here: their program is installed, or they need none."""
        return [language for language, version in self._versions() if version is not None]

    def describe_languages(self, only_common: bool = False) -> str:
        """List the languages that run here with their versions, for the model."""
        return ", ".join(
            f"{language.name.lower()} ({version})" if version else language.name.lower()
            for language, version in self._versions()
            if version is not None and (language.is_common or not only_common)
        )

    def _versions(self) -> list[tuple[Language, str | None]]:
        """Return every language with its version, None if its program is missing.

        Each request needs this, so it is cached until a setting or a folder with programs changes.
        """
        self.apply_sandbox()
        context, languages = self.context, tuple(self._computer.languages)
        env = context.own_environment()
        folders = [*env.get("PATH", "").split(os.pathsep), os.path.join(context.cwd, "node_modules")]
        settings = (context.python, context.shell, context.sql, context.containment, context.cwd)
        known = (languages, settings, env.get("VIRTUAL_ENV"), env.get("NODE_PATH"), *map(_modified_at, folders))
        if known != self._known:
            self._found = [(each, self._version(each, env.get("PATH"))) for each in languages]
            self._known = known
        return self._found

    def _version(self, language: Language, path: str | None) -> str | None:
        if language.programs and not any(shutil.which(program, path=path) for program in language.programs):
            return None
        is_asked = language.has_version and (language.implementation or language.version is not BaseLanguage.version)
        return self.runtime(language.name).version() if is_asked else ""

    def has_python_package(self, name: str) -> bool:
        """Return whether Python blocks can import a package, without starting a runtime."""
        try:
            return not self.context.elsewhere and self.context.has_python_package(name)
        except InterpreterError:
            return False

    def is_alive(self, name: str) -> bool:
        """Return whether a language has a runtime that keeps what its blocks have defined."""
        from interpreter.runtimes.live import LiveLanguage

        language = self._computer.get_language(name)
        instance = self._running.get(language) if language is not None else None
        if isinstance(instance, LiveLanguage):
            return instance.runtime is not None and instance.runtime.alive
        return instance is not None

    # -- running a block: the kernel calls these ---------------------------------------------------------------------

    def get_ready(self, block: Block) -> BaseLanguage:
        """Return the runtime for a block; it starts while the session notes where the files are."""
        runtime = self.runtime(block.language)
        if any(isinstance(other, Block) and other.runtime is runtime for other in block.ancestors()):
            raise BusyError(f"The {runtime.name} runtime is busy with the code that made this call.")
        if block.replay is None:
            self.end_dry_run()
        self._start(runtime, block.replay is None)
        return runtime

    def execute(self, block: Block) -> Generator[Step]:
        """Run a block; errors are part of its output."""
        shared, session = self.context, self._computer.session
        outer = self.active, shared.action, shared.ask, shared.cancelled
        try:
            shared.action, shared.ask, shared.cancelled = block, partial(session.ask, action=block), block.is_cancelled
            uses_environment = getattr(block.runtime, "uses_environment", False)
            if self is not self._computer.runtimes and not self._is_announced:
                self._is_announced = True
                yield notice(SEPARATE)
            if block.replay is None and uses_environment and not self._introduced:
                from interpreter.runtimes.environments import introduce

                self._introduced = True
                yield from introduce(shared, may_ask=self._can_ask())
            if block.replay is None and uses_environment and not shared.elsewhere:
                from interpreter.runtimes.data_stack import wait_until_made

                live = cast("LiveLanguage", block.runtime)
                yield from wait_until_made(live, block.code, self._computer.data_stack, block.is_cancelled)
            if block.replay is not None:
                running = block.replay()
            elif block.sandbox_request is not None:
                running = block.sandbox_request.run(self, block)
            else:
                running = self.run_now(block)
            with session.questions.answerable(("text", "password"), self._ask_on_input), closing(running) as chunks:
                yield from chunks
        except InterpreterError as error:
            yield _failure(f"{error}\n")
        except Exception:  # noqa: BLE001 - a user's own language may raise anything, and the model should read it
            yield _failure(traceback.format_exc())
        finally:
            self.active, shared.action, shared.ask, shared.cancelled = outer

    def _ask_on_input(self, question: Question) -> Answer | None:
        ask = self.context.on_input
        if ask is None:
            return None
        return Answer(ANSWER, ask(question.text, question.kind == "password"), by="on_input")

    def run_now(self, block: Block) -> Generator[Step]:
        """Run a block in the present runtime of its language."""
        self.active = block.runtime = self.runtime(block.language)
        self.active.on_end = block.mark_over
        if getattr(self.active, "installer", "") or getattr(self.active, "uses_environment", False):
            yield from self._run_with_packages(block, cast("LiveLanguage", self.active))
        elif self.active.handles_interrupts:
            yield from self.active.run(block.code)
        else:  # a user's language may yield or return chunks, also one alone or a text
            made: Any = call_user_code(self.active.run, block.code)
            for item in iterate_user_code([made] if isinstance(made, str | dict) or made is None else made):
                if isinstance(item, Question):  # of a runtime of ours that it uses
                    yield item
                    continue
                chunk: Any = item if isinstance(item, dict) else {"content": "" if item is None else str(item)}
                if chunk.setdefault("type", "console") == "console":
                    chunk.setdefault("format", "output")
                yield chunk

    def _run_with_packages(self, block: Block, runtime: LiveLanguage) -> Generator[Step]:
        from interpreter.runtimes.missing_packages import Host, run_with_packages

        session = self._computer.session
        approver, context = session.approver, session.context_of(block)
        agent = block.actor if block.actor is not None and block.actor.kind == "agent" else None

        def perform(packages: Sequence[str], code: str) -> tuple[str, str]:
            block.not_over()  # more runs after this
            action = Installation(runtime, packages, code)
            log: str = session.perform(action, block.actor or self._computer.user).result()
            return action.outcome, log

        host = Host(
            self._computer.install_missing,
            agent is not None,
            self._can_ask(),
            lambda command: approver.judge_installation(command, context) if approver and agent else ("ask", ""),
            perform,
            lambda code, missing: approver is not None and approver.only_reads(block.language, code, missing),
        )
        yield from run_with_packages(runtime, block.code, host)

    def _can_ask(self) -> bool:
        return self._computer.session.questions.can_be_answered("offer")

    def _awaits_choice(self, instance: LiveLanguage) -> bool:
        """Return whether the user will be asked which Python to use."""
        if self._introduced or not instance.uses_environment or not self._can_ask():
            return False
        from interpreter.runtimes.environments import offered_project

        shared = self.context
        return offered_project(shared.workspace, shared.python, shared.own_environment()) is not None

    def warm(self, language: str) -> None:
        """Start a runtime ahead of its first block, without waiting for it."""
        if self._computer.get_language(language) is not None:
            self._start(self.runtime(language))

    def _start(self, instance: BaseLanguage, live: bool = True) -> None:
        """Apply the sandbox, and with `live` start the process of a runtime that has one."""
        from interpreter.runtimes.live import LiveLanguage

        with self._lock:  # a turn warms what it is about to need while another thread's block begins
            self.apply_sandbox()
            if live and isinstance(instance, LiveLanguage) and not self._awaits_choice(instance):
                instance.start()

    def send_keys(self, keys: bytes) -> None:
        send = getattr(self.active, "send_keys", None)
        if send is not None:
            send(keys)

    def detach(self) -> None:
        detach = getattr(self.active, "detach", None)
        if detach is not None:
            detach()

    @property
    def jobs(self) -> list[Job]:
        return [job for language in self._running.values() for job in getattr(language, "jobs", ())]

    def end(self, language: str) -> None:
        """End the runtime of one language; its next block starts a new one."""
        self.end_dry_run()
        self.runtime(language).terminate()

    def suspend(self) -> SuspendedRuntimes:
        """Set all runtimes aside, alive: the next block starts new ones."""
        self.end_dry_run()
        shared = self._context
        containment = shared.containment if shared is not None else None
        suspended = SuspendedRuntimes(self._running, self._left_sandboxes, containment)
        self._running, self._left_sandboxes = {}, []
        if shared is not None:
            shared.containment = None
        return suspended

    def restore(self, suspended: SuspendedRuntimes) -> None:
        """End the present runtimes, and continue with those that were set aside."""
        self.terminate()
        self._running, self._left_sandboxes, self.context.containment = suspended

    def terminate(self) -> None:
        suspended = self.suspend()
        if self._context is not None and suspended.containment is not None:
            self._context.exported.clear()
            self._context.shared.clear()
        suspended.terminate()

    # -- dry runs ----------------------------------------------------------------------------------------------------

    def can_dry_run(self, language: str) -> bool:
        if self._computer.get_language(language) is None:
            return False
        preview = self.runtime(language).preview
        return preview is not None and exists(preview)

    def start_dry_run(self, language: str, overlay: Overlay) -> DryRun:
        """Copy a runtime into an overlay of the file system."""
        self.apply_sandbox()
        self.end_dry_run()
        if self.context.containment is not None:
            raise NotPreviewableError(
                "Can't preview a block in a sandbox: a copy-on-write view of the files is not possible there."
            )
        runtime = self.runtime(language)
        if runtime.preview is None:
            raise NotPreviewableError(
                f"{runtime.name} blocks can't be previewed, because their variables can't be copied."
            )
        self._dry_run = dry_run = load(runtime.preview)(runtime, overlay)
        return dry_run  # type: ignore[no-any-return]

    def run_dry(self, dry_run: DryRun, code: str) -> Generator[Step]:
        """Run a block in such a copy."""
        self.active = dry_run.active
        try:
            yield from dry_run.run(code)
        finally:
            self.active = None

    def end_dry_run(self) -> None:
        """Discard a dry run that was not applied, because another block runs next."""
        dry_run, self._dry_run = self._dry_run, None
        if dry_run is not None:
            dry_run.drop()

    # -- variables and states, for the methods of the computer that have these names -------------------------------

    def variables(self, language: str | None = None) -> dict[str, list[Variable]]:
        if language is not None:
            runtime = self.runtime(language)
            return {runtime.name: runtime.variables()}
        wait_for_abandoned()
        listed = {each.name: instance.variables() for each, instance in list(self._running.items())}
        return {name: variables for name, variables in listed.items() if variables}

    def complete(self, language: str, code: str, cursor: int | None = None) -> Completions:
        from interpreter.runtimes.state import Completions

        known_language = self._computer.get_language(language)
        instance = self._running.get(known_language) if known_language else None
        at = len(code) if cursor is None else cursor
        return instance.complete(code, at) if instance is not None else Completions(at)

    def mark(self) -> Mark:
        from interpreter.runtimes.state import Mark

        shared = self.context
        runtimes = {
            each.name: self._running.get(each) or self._make(each)
            for each in self._computer.languages
            if each.restorable
        }
        states = {name: runtime.state for name, runtime in runtimes.items() if runtime.state is not None}
        return Mark(states, shared.cwd, dict(shared.exported))

    def go_back(self, mark: Mark) -> Outcomes:
        outcomes: Outcomes = {}
        for name, state in mark.states.items():
            try:
                if state != self.state(name):
                    self.end_dry_run()
                    outcomes[name] = self.runtime(name).restore(state)
            except NotRestorableError as error:
                outcomes[name] = error
        self.context.return_to(mark.cwd, mark.exported)
        return outcomes

    def resend_cwd(self) -> None:
        """Send each runtime its folder again, because restored files may have replaced that folder."""
        self.context.leave_lost_folder()
        for live in self._live():
            live.known_cwd = None

    def state(self, language: str) -> int | None:
        """Return the present state of one language; None if it cannot return to states."""
        _ = self.context
        return self.runtime(language).state

    def save(self, most: int, seconds: float, known: Mapping[str, int]) -> list[tuple[LiveLanguage, int, Saving]]:
        """Begin to save the variables of languages whose state isn't the known one; return the states' numbers."""
        begun = []
        for live in self._live():
            if live.present != known.get(live.name):
                saving = live.save(most, seconds)
                if saving is not None:
                    begun.append((live, live.present, saving))
        return begun

    def forget_snapshots(self, but: int) -> None:
        """End all but the newest `but` snapshots of each language, while no block runs."""
        for live in self._live():
            if live.runtime is not None:
                live.runtime.snapshots.forget(but)

    def _live(self) -> list[LiveLanguage]:
        """List the runtimes that are programs of their own."""
        from interpreter.runtimes.live import LiveLanguage

        return [each for each in list(self._running.values()) if isinstance(each, LiveLanguage)]

    def load(self, language: str, data: bytes) -> Restored:
        from interpreter.runtimes.live import LiveLanguage

        instance = self.runtime(language)
        if not isinstance(instance, LiveLanguage):
            raise NotRestorableError(f"{instance.name} can't load saved variables.")
        if instance.runtime is not None and instance.contained_in is not self.context.containment:
            instance.end_runtime()  # loading runs code, which may come from a sandbox
        return instance.load(data)

    def split(self, other: RuntimePool) -> Outcomes:
        """Give another pool, without live runtimes yet, the same variables; return the outcome by language.

        The directory and the exported variables are the same there too; the caller may change them before a block runs.
        """
        outcomes: Outcomes = {}
        other.apply_sandbox()
        other.context.workspace = self.context.workspace  # the same session environment
        other.context.return_to(self.context.cwd, self.context.exported)
        for language, instance in list(self._running.items()):
            try:
                other._running[language], outcomes[language.name] = instance.split(other)
            except NotRestorableError as error:
                outcomes[language.name] = error
        return outcomes


def _modified_at(folder: str) -> int:
    """Return when an entry was last added to or removed from a folder; 0 if there is no such folder."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0


def unknown_language(name: str, languages: list[Language]) -> str:
    known = ", ".join(language.name.lower() for language in languages)
    return f"`{name}` is disabled or not supported here. Available languages: {known}."


def _failure(text: str) -> Chunk:
    return {"type": "console", "format": "output", "content": text, "stream": "stderr"}
