"""Variables that outlive their runtimes: saved beside the journal, and loaded in a later run of the session.

To load them is to run code, so that happens in a runtime only, in a sandbox at least as tight as the one that they come
from. The journal has the digest of each file.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.errors import BusyError, InterpreterError, NotRestorableError
from interpreter.host.files import Folder, write_bytes
from interpreter.runtimes.state import Restored, Saving
from interpreter.session import Do
from interpreter.session.journal.file import VARIABLES

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.runtimes.live import LiveLanguage
    from interpreter.runtimes.pool import Outcomes
    from interpreter.sandbox.sandbox import Sandbox
    from interpreter.session.journal import SavedSession

IDLE_TIME = 1.0  # seconds at the prompt, after which variables are saved


class SavedVariables:
    """Saves the variables of a session, and gives those of an earlier run back."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._known: dict[str, int] = {}  # the state of each language that is saved
        self._saving = threading.Lock()
        self.found: dict[str, dict[str, Any]] = {}  # what an earlier run saved, by language, as its journal has it

    def resume(self, session: SavedSession) -> None:
        """Take over what the journal of a resumed session says."""
        self._known, self.found = dict.fromkeys(session.variables, -1), dict(session.variables)

    # -- saving --------------------------------------------------------------------------------------------------

    def save(self, seconds: float) -> None:
        """Save changed variables, in at most this many seconds. If that fails, the earlier save is kept."""
        agent, end = self._agent, time.monotonic() + seconds
        if not agent.settings.save_variables or agent.journal.path is None or not self._saving.acquire(timeout=seconds):
            return
        try:
            pool, most = agent.computer.runtimes, agent.settings.save_variables_bytes
            left = max(0.05, end - time.monotonic())
            session = agent.journal.id

            def begun() -> list[tuple[LiveLanguage, int, Saving, Sandbox | None]]:
                return [(*each, _sandbox_of(each[0].contained_in)) for each in pool.save(most, left, self._known)]

            begin = Do("save_variables", begun, recorded=False)
            savings = agent.session.perform(begin, agent.actor, wait=False).result()
            for language, state, saving, sandbox in savings or ():
                saved = saving()
                is_better = saved is not None and not (saved.is_late and language.name in self._known)
                if is_better and agent.journal.id == session:
                    fields = {
                        "names": saved.names,
                        "lost": saved.lost,
                        "cwd": agent.computer.context.cwd,
                        "sandbox": asdict(sandbox) if sandbox is not None else None,
                    }
                    self._write(language.name, saved.data, fields)
                    self._known[language.name] = state
        except (BusyError, OSError):
            pass  # it is saved the next time
        finally:
            self._saving.release()

    def _write(self, language: str, data: bytes, fields: dict[str, Any]) -> None:
        folder, digest = self._agent.journal.path, hashlib.sha256(data).hexdigest()
        if folder is None:
            return  # the session was left just now
        (folder / VARIABLES).mkdir(mode=0o700, exist_ok=True)
        name = f"{language}.{digest}"
        write_bytes(folder / VARIABLES / name, data, 0o600)
        self._agent.journal.write("variables", language=language, sha256=digest, bytes=len(data), **fields)
        for other in os.listdir(folder / VARIABLES):
            if other.startswith(f"{language}.") and other != name:
                (folder / VARIABLES / other).unlink(missing_ok=True)

    @contextmanager
    def saved_when_idle(self) -> Iterator[None]:
        """While this is entered, nothing happens: after a moment, the variables are saved in the background."""
        timer = threading.Timer(IDLE_TIME, lambda: self.save(self._agent.settings.save_variables_seconds))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    # -- restoring -----------------------------------------------------------------------------------------------

    def load(self) -> Outcomes:
        """Load the saved variables, and return the outcome for each language."""
        outcomes: Outcomes = {}
        pool = self._agent.computer.runtimes
        pool.apply_sandbox()
        for language, entry in self.found.items():
            try:
                data = self._read(language, entry)
                folder = os.path.realpath(str(entry.get("cwd")))
                workspace = os.path.realpath(self._agent.settings.workspace)
                if Path(folder).is_relative_to(workspace) and os.path.isdir(folder):
                    pool.context.cwd = folder
                restored = pool.load(language, data)
                outcomes[language] = Restored([*entry["lost"], *restored.lost], restored.running)
            except InterpreterError as error:
                outcomes[language] = NotRestorableError(str(error))
        self.found = {}
        return outcomes

    def _read(self, language: str, entry: dict[str, Any]) -> bytes:
        """Return the bytes that the journal names, if they may be loaded here."""
        from interpreter.sandbox.sandbox import Sandbox

        folder, present = self._agent.journal.path, _sandbox_of(self._agent.computer.context.containment)
        if entry.get("sandbox") is not None:
            origin = Sandbox.from_data(entry["sandbox"])
            if present is None or not present.is_within(origin):
                raise NotRestorableError(
                    f"The {language} variables come from a sandbox. They are only loaded in the same folder, in a "
                    f"sandbox that allows no more (--sandbox {origin.kind})."
                )
        try:
            assert folder is not None
            with Folder(folder) as files:
                data = files.read_bytes(f"{VARIABLES}/{language}.{entry['sha256']}", entry["bytes"] + 1)
        except OSError as error:
            raise NotRestorableError(f"Can't read the saved {language} variables: {error.strerror}.") from error
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise NotRestorableError(
                f"The saved {language} variables were not loaded, because their file has been changed."
            )
        return data


def _sandbox_of(containment: Any) -> Sandbox | None:
    return containment.sandbox if containment is not None else None
