"""The diff on the card: what a block would change, from the text of its edits or an automatic dry run."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from interpreter.console_text import first_few, visible_line
from interpreter.errors import InterpreterError
from interpreter.host.files import Folder, beneath
from interpreter.messages import has_failed
from interpreter.repo.ci import file_diff
from interpreter.repo.edits import Edit, plan_patch, plan_replace
from interpreter.repo.git import Repository
from interpreter.session import Do
from interpreter.workspace.tree import repository_of

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent
    from interpreter.policy import Effects
    from interpreter.policy.review import BlockReview
    from interpreter.preview.preview import Preview
    from interpreter.session import ActionContext

LONGEST_WAIT = 0.3  # seconds that the question waits for a dry run
_MAX_DIFF = 400_000  # characters
MIXED = (
    "The commit would also take in changes in {} that this session did not make. The tool `commit` commits exactly "
    "what the session changed. For a commit with everything, the user runs git, or allows the command with a rule."
)
_EDITS = {"computer.files.replace", "computer.files.patch"}


def forecast(agent: Agent, review: BlockReview, context: ActionContext) -> Forecast | None:
    """Find out what a block that is asked about would change, if all it does is to write files of the workspace."""
    effects, mode = review.effects, agent.settings.card_diff
    if effects is None:
        return None
    mixed = mixed_in(agent, effects) if agent.actor in context.actor.chain() else []
    if review.only_sandbox_request and not review.asks_for_more:  # it would run without asking
        return Forecast(refusal=MIXED.format(first_few(mixed, 5))) if mixed and not review.allowed_by else None
    notes = [*git_notes(effects), *([f"Also commits your changes in {first_few(mixed, 5)}"] if mixed else [])]
    if notes:
        return Forecast(note="\n".join(dict.fromkeys(notes)))
    if mode == "off" or agent.settings.preview or not only_writes_here(effects):
        return None
    is_shown = agent.settings.in_terminal_interface or context.session.questions.can_be_answered("block")
    if not is_shown:  # a program that reads on past the question
        return None
    if any(name in review.code for name in ("computer.", "files.")):
        return _forecast_edits(review.code, effects)
    interpreter: Any = agent.computer.interpreter
    is_shared = context.runtimes is agent.computer.runtimes and context.session.lane.holder is None
    if interpreter is None or not is_shared or not interpreter.can_dry_run(review.language):
        return None
    trial = DryRunForecast(interpreter, review.language, review.code, mode == "apply")
    trial.wait(LONGEST_WAIT)
    return trial


def only_writes_here(effects: Effects) -> bool:
    """Check whether a block surely does nothing but read and write files of the workspace."""
    writes = [effect for effect in effects.all if effect.kind in ("write", "delete")]
    others = [effect for effect in effects.all if effect.kind not in ("write", "delete", "read")]
    is_all = all(
        (effect.kind == "program" and effect.known) or effect.what in _EDITS or effect.what == "computer.files.read"
        for effect in others
    )
    is_here = all(effect.place == "workspace" and effect.known and effect.how != "git" for effect in writes)
    return bool(writes) and is_all and is_here


class Forecast:
    """An addition to the approval card: a diff, or a note if there is none."""

    def __init__(self, diff: str = "", note: str = "", refusal: str = "") -> None:
        self.diff, self.note, self.refusal = diff[:_MAX_DIFF], note, refusal

    def end(self, approved: bool) -> Preview | None:
        """Note that the question is answered. Return the dry run that a yes applies, if there is one."""
        return None


def mixed_in(agent: Agent, effects: Effects) -> list[str]:
    """Name the files with changes of the user that a `git commit` of a block would mix with those of the session."""
    commands = [git_command(step.words) for step in effects.steps if step.words[:1] == ("git",)]
    if agent.computer.machine is not None or not any(verb == "commit" for verb, _ in commands):
        return []
    from interpreter.repo.commit import changed_by_user

    writes = any(effect.kind in ("write", "delete") and effect.how != "git" for effect in effects.all)
    with suppress(InterpreterError, OSError, ValueError):
        return changed_by_user(agent, commands, writes)
    return []


def git_command(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the verb of a git command, and what follows it."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-C", "-c") else 1
    return "".join(words[at : at + 1]), words[at + 1 :]


def git_notes(effects: Effects) -> Iterator[str]:
    """Name what git commands do that their names don't say: where a push goes, and what is lost."""
    for words in (step.words for step in effects.steps if step.words[:1] == ("git",)):
        verb, rest = git_command(words)
        if verb == "push":
            forced = {"-f", "--force", "--force-with-lease"} & set(rest) or any(each.startswith("+") for each in rest)
            host = remote_host(effects.cwd or effects.workspace, [word for word in rest if word[:1] != "-"])
            yield f"{'Force-pushes' if forced else 'Pushes'} to {host}"
        if "--no-verify" in rest or (verb == "commit" and "-n" in rest):
            yield "Skips the hooks of the repository"
        if verb == "reset" and "--hard" in rest:
            yield "Discards changes that are not committed (git reset --hard)"


def remote_host(folder: str, operands: Sequence[str]) -> str:
    """Return the host of the remote that a push names, or of `origin`."""
    address, config = operands[0] if operands else "origin", ""
    with suppress(InterpreterError, OSError):
        place = Repository(folder)
        with Folder(place.common) as common:
            config = common.read_bytes("config", 100_000).decode("utf-8", "replace")
    section = re.search(rf'^\[remote "{re.escape(address)}"\]\n((?:[^\[\n].*\n?|\n)*)', config, re.MULTILINE)
    if section and (url := re.search(r"^\s*(?:pushurl|url)\s*=\s*(.+)$", section[1], re.MULTILINE)):
        address = url[1].strip()
    host = re.match(r"(?:\w+://)?(?:[^@/]*@)?([\w.-]+\.\w+|localhost)[:/]", address)
    return visible_line(host[1] if host else address)


# -- edits that are written out ------------------------------------------------------------------------------------


def _forecast_edits(code: str, effects: Effects) -> Forecast | None:
    """Carry out the edits of a block on copies of the files; None if they are not all written out at its top."""
    calls = list(_edits_in(code))
    contents: dict[str, bytes | None] = {}
    first: dict[str, bytes | None] = {}

    def read(folder: str, path: str) -> bytes:
        if path not in contents:
            place, name = beneath(folder, path)  # code may have made a link of it: the card follows none out
            with place:
                contents[path] = place.read_bytes(name)
        content = contents[path]
        if content is None:
            raise FileNotFoundError(f"There is no file {path!r}.")
        return content

    folder = effects.cwd or effects.workspace
    try:
        for name, arguments in calls:
            plan: Any = plan_patch if name.endswith(".patch") else plan_replace
            edits: list[Edit] = plan(folder, *arguments[0], **arguments[1], read=read)
            for edit in edits:
                first.setdefault(edit.path, edit.before)
                contents[edit.path] = edit.after
    except (ValueError, TypeError) as refusal:
        return Forecast(note=f"The edit will be refused: {str(refusal).splitlines()[0]}")
    except OSError:
        return None
    written = {effect.what.removeprefix("./") for effect in effects.all if effect.kind in ("write", "delete")}
    if not calls or not written <= {path.removeprefix("./") for path in first}:
        return None
    diffs = (file_diff(path, before, contents[path]) for path, before in first.items())
    return Forecast("".join(diffs))


def _edits_in(code: str) -> Iterator[tuple[str, tuple[list[Any], dict[str, Any]]]]:
    """Yield the edits at the top of a block whose arguments are all written out."""
    with suppress(SyntaxError, ValueError, RecursionError):
        for statement in ast.parse(code).body:
            call = getattr(statement, "value", None)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "print" and len(call.args) == 1:
                call = call.args[0]
            if isinstance(call, ast.Call) and (name := ast.unparse(call.func)) in _EDITS:
                with suppress(ValueError):
                    named = {each.arg or "": ast.literal_eval(each.value) for each in call.keywords}
                    yield name, ([ast.literal_eval(each) for each in call.args], named)


# -- a dry run -----------------------------------------------------------------------------------------------------


class DryRunForecast(Forecast):
    """A dry run of the block, in a separate thread, so that a block that takes long does not hold up the question."""

    def __init__(self, interpreter: Any, language: str, code: str, applies: bool) -> None:
        super().__init__()
        self._interpreter, self._language, self._code, self._applies = interpreter, language, code, applies
        self._preview: Preview | None = None
        self._shown, self._is_late, self._is_over = threading.Event(), False, False
        work = copy_context().run
        self._thread = threading.Thread(target=work, args=[self._work], name="dry run for the card", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the dry run; after `seconds`, the card is shown without it."""
        if not self._shown.wait(seconds):
            self._is_late = True
            if not self._applies:
                self._stop()

    def _work(self) -> None:
        try:
            preview = self._preview = self._interpreter.dry_run(self._language, self._code, asks=False)
            if not self._is_over:
                preview.run()
            if not self._is_late:
                self.diff, self.note = _outcome(preview)
            if not self._applies or self._is_over:
                self._discard()
        except (InterpreterError, OSError):  # it is not possible here, now
            pass
        finally:
            self._shown.set()

    def _stop(self) -> None:
        self._is_over = True
        if self._preview is not None:
            self._preview.stop()

    def end(self, approved: bool) -> Preview | None:
        """Return the dry run if it finished while the user was reading; otherwise discard it, and the block runs."""
        preview = self._preview
        is_done = self._applies and self._shown.is_set() and preview is not None
        if approved and is_done and preview is not None and preview.is_complete:
            return preview
        if self._thread.is_alive():
            self._stop()
            self._thread.join()
        self._discard()
        return None

    def _discard(self) -> None:
        """Drop it in its turn: another dry run may have begun since."""
        preview, self._preview = self._preview, None
        if preview is not None:
            action = Do("preview", preview.discard, "a preview is being discarded", recorded=False)
            self._interpreter.session.perform(action, self._interpreter.user).result()


def _outcome(preview: Preview) -> tuple[str, str]:
    """Return the diffs of the workspace, and a note about everything else."""
    diffs = preview.data_diffs
    inside = [text for path, text in diffs.items() if not path.startswith("/") and repository_of(path) is None]
    note = ""
    if preview.has_asked:
        return "", ""
    if preview.denied:
        note = (
            f"In a dry run it also tried what a dry run denies: {', '.join(dict.fromkeys(map(str, preview.denied)))}."
        )
    elif any(map(has_failed, preview.chunks)):
        printed = "".join(chunk["content"] for chunk in preview.chunks if chunk.get("format") == "output")
        note = f"In a dry run it failed: {(printed.strip().splitlines() or ['it printed nothing'])[-1]}"
    elif not preview.is_complete:
        note = "In a dry run it did not come to its end."
    return "".join(text if text.endswith("\n") else f"{text}\n" for text in inside), note
