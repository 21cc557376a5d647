"""What the model reads besides the conversation: the system message, its sandbox, and what a block did to files."""

from __future__ import annotations

import getpass
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interpreter.config.setting import sources
from interpreter.config.settings import read_prompt
from interpreter.leaves import leaves, load
from interpreter.llm.file_preview import beginning
from interpreter.messages import Message

if TYPE_CHECKING:
    from interpreter.agent.agent import Agent

SITUATION = "You are on {system} as {user}, in {cwd}. Languages: {languages}."
SPAN = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
IN_SANDBOX = (
    "Code runs in a sandbox: it can write only to {places}, the home folder is empty, and there is no network{but}."
)
ASK_FOR_MORE = (
    "If a block needs more, begin it with a comment: `needs: host pypi.org`, `needs: read PATH` or "
    "`needs: write PATH`; the user is asked."
)
NO_SANDBOX = "The sandbox is off: code can access everything the user can."
TEMPORARY = "/tmp" if sys.platform == "linux" else "$TMPDIR"
_SANDBOX, _FIRST_SANDBOX = "sandbox", "sandbox at first"  # the description that the model has now, and had first


class SystemPrompt:
    """The system message of an agent.

    Each part is rendered once and stays the same, because a change would invalidate the server's prompt
    cache. Later changes are sent as messages.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        # The parts that were rendered, by their template. The journal keeps them for a resume.
        self.rendered: dict[str, str] = {}

    def system_message(self) -> Message:
        """The message that comes before all others."""
        agent = self._agent
        parts = [agent.settings.system_message]
        if sources(agent.settings)["system_message"] == "default":
            parts = [read_prompt(agent.llm.profile.prompt), self._situation()]
        if any(language.system_message for language in agent.computer.languages):
            parts += [language.system_message or "" for language in agent.computer.runtimes.available()]
        if _FIRST_SANDBOX not in self.rendered:
            self.rendered[_FIRST_SANDBOX] = self.rendered[_SANDBOX] = self._sandbox()
        parts += [self.rendered[_FIRST_SANDBOX], agent.settings.custom_instructions, self._computer(), *self._leaves()]
        text = "\n\n".join(part.strip() for part in parts if part.strip())
        if "{{" in text:
            if text not in self.rendered:
                self.rendered[text] = self.fill(text)
            text = self.rendered[text]
        return {"role": "system", "type": "message", "content": text}

    def fill(self, text: str) -> str:
        """Replace the `{{ code }}` spans of a text with their output."""
        return SPAN.sub(self._output_of, text)

    def sandbox_news(self) -> str:
        """How the sandbox differs from what the model knows; empty if it does not."""
        now = self._sandbox()
        if self.rendered.get(_SANDBOX, now) == now:
            return ""
        self.rendered[_SANDBOX] = now
        return f"From now on: {now or NO_SANDBOX}"

    def forget_situation(self) -> None:
        """The workspace is another one now: describe it again."""
        self.rendered.pop(SITUATION, None)

    def _sandbox(self) -> str:
        sandbox: Any = self._agent.actor.permissions.sandbox
        # A small model copies the example into every block. What the sandbox denied is in the output anyway.
        if sandbox is None or self._agent.llm.profile.name in ("minimal", "tiny"):
            return ""
        places = [*([sandbox.workspace] if sandbox.writes_workspace else []), *map(str, sandbox.writable), TEMPORARY]
        but = f" but to {', '.join(sandbox.hosts)}" if sandbox.hosts else ""
        described = IN_SANDBOX.format(places=" and ".join(places), but=but)
        return described if sandbox.fixed else f"{described} {ASK_FOR_MORE}"

    def _computer(self) -> str:
        """About the `computer` object: the user's own text, or ours where the model can use it."""
        agent, computer = self._agent, self._agent.computer
        if computer.system_message is not None:
            return computer.system_message
        profile = agent.llm.profile.name
        is_chosen = sources(computer)["computer.import_computer_api"] != "default"
        # A longer prompt costs a small model more than tools that it cannot handle are worth.
        is_fit = profile == "full" or (profile == "short" and is_chosen) or agent.settings.os
        is_in_terminal = agent.settings.in_terminal_interface and not is_chosen
        is_on = computer.import_computer_api or agent.settings.os or is_in_terminal
        return read_prompt("computer") if is_on and is_fit else ""

    def _leaves(self) -> Iterator[str]:
        """Yield what the leaves in use say."""
        for part in (part for leaf in leaves() for part in leaf.prompt):
            if self._agent.uses(part):
                if part.make not in self.rendered:
                    self.rendered[part.make] = load(part.make)(self._agent)
                yield self.rendered[part.make]

    def _situation(self) -> str:
        if SITUATION not in self.rendered:
            try:
                user = getpass.getuser()
            except (KeyError, OSError, ImportError):  # a number without a name, as in containers
                user = "an unnamed user"
            languages = self._agent.computer.runtimes.describe_languages(
                only_common=self._agent.llm.profile.name != "full"
            )
            system, machine = f"{platform.system()} {platform.release()}", self._agent.computer.machine
            if machine is not None and machine.about is not None:
                system, user = (
                    f"{machine.about.system} ({machine.name}, not the user's own machine)",
                    machine.about.user,
                )
            self.rendered[SITUATION] = SITUATION.format(
                system=system,
                user=user,
                cwd=self._agent.computer.context.cwd,
                languages=languages,
            )
        return self.rendered[SITUATION]

    def _output_of(self, span: re.Match[str]) -> str:
        """What the Python code of a `{{ code }}` span prints."""
        messages = self._agent.computer.run("python", span.group(1).strip())
        texts = [m["content"] for m in messages if m["type"] == "console" and m.get("recipient") != "user"]
        return "".join(texts).strip()


# -- what a block did to files, for small models, which do not check what they wrote -----------------------------------

NOTHING_CHANGED = (
    "No file was changed: the code printed the result and did not save it. Add the lines that save it to the file."
)
_COLUMNS = re.compile(r"\bwith (?:\w+ )?columns[,:]? (\w+(?:(?:,? and|,) \w+)+)", re.I)
# A request for a change of files: a verb that begins a clause, and what behind it says that it is about files.
_FILE, _TABLE = r"[\w*~/-]*\.[a-z]\w{0,4}\b", r"\.(csv|tsv|xlsx?|parquet|json|jsonl|db)\b"
_FOLDER = r"(folders?|director(y|ies)|archive|zip)\b"
_FORMAT = r"(a |an )?(new )?(csv|tsv|json|excel|xlsx|parquet|html|pdf|png|markdown|yaml|text|utf-?8|zip)\b"
_NEW = r".*\b(a|an|the|new|empty|\d+) (\w+ ){0,3}(file|script)s?\b"
_NO_VARIABLE = r"(?!.*\bvariable)"
_CHANGES_ASKED = (
    (r"save|export", _NO_VARIABLE),
    (r"write|store|output|dump|put|print", rf"{_NO_VARIABLE}.*\b(to|into|in|as)\b.*({_FILE}|\bfiles?\b|{_FORMAT})"),
    (r"write", rf"{_NEW}|.*\b{_FILE}"),
    (r"create|make|generate|produce|build|draw|plot|touch", rf"(?!.*\blist of)(.*\b{_FOLDER}|{_NEW}| (the )?{_FILE})"),
    (r"create|make|generate|produce|build|draw|plot", rf".*\b(called|named|as|to|into) {_FILE}"),
    (r"zip|unzip|compress|pack|unpack|archive", ""),
    (r"rename|move|copy|duplicate|delete", rf".*(\bfiles?\b|{_FILE}|{_FOLDER}|\b(them|those)\b)"),
    (r"convert|translate|turn", rf".*\b(to|into|as) ({_FORMAT}|{_FILE})"),
    (r"add|append|insert", rf"(?! up\b).*\b(to|into|in|at)\b.*({_FILE}|\bfile\b)"),
    (r"remove|change|replace|update|fix|set|edit|modify|sort|split|merge|combine", rf".*({_FILE}|\bfiles?\b)"),
)
_BEGINS = r"(?:^|[,:;]\s+|\b(?:and|then|please|also|you|(?<!how )to|just)\s+)"
_ASKS = [re.compile(rf"{_BEGINS}(?:{verbs})\b(?: it| them)?(?:{rest})", re.I) for verbs, rest in _CHANGES_ASKED]
_ANSWER = re.compile(
    r"\b(what|how (many|much)|which|print|show|tell|report|count|compute|calculate|find|answer)\b", re.I
)
_SHOWN = 3
_NAMED = 10
_VERBS = {"created": "Created", "changed": "Changed", "deleted": "Deleted", "renamed": "Renamed", "mode": "Changed"}


def file_change_note(changes: Sequence[Mapping[str, Any]], folder: str) -> str:
    """The files that a block changed, with the beginning of the first ones; empty if it changed none."""
    listed = _listed(changes)
    lines = []
    for number, change in enumerate(listed[:_NAMED]):
        name = str(change["path"])
        done = f"{_VERBS[change['what']]} {change.get('from') or name}"
        path = Path(folder, name)
        if change["what"] == "renamed":
            lines.append(f"{done} to {name}.")
        elif number >= _SHOWN or change["what"] in ("deleted", "mode") or not path.is_file():
            lines.append(f"{done}.")
        else:
            lines.append(f"{done}. {beginning(name, path)}".rstrip())
    if len(listed) > _NAMED:
        lines.append(f"And {len(listed) - _NAMED} more.")
    return "\n".join(lines)


def missing_columns(request: str, changes: Sequence[Mapping[str, Any]], folder: str) -> str:
    """Which of the columns that a request lists are missing in a table that was written; empty if none or all are."""
    found = _COLUMNS.search(request)
    asked = re.split(r",? and |, ", found[1]) if found else []
    for change in _listed(changes) if asked else ():
        if change["path"].lower().endswith((".csv", ".tsv")) and change["path"] in request:
            header = re.findall(
                r"\w+", beginning("", Path(folder, change["path"])).partition("\n")[2].partition("\n")[0]
            )
            missing = [name for name in asked if name.lower() not in map(str.lower, header)]
            if 0 < len(missing) < len(asked):  # if all are missing, the request may mean other things
                return f"{change['path']} has no column {' and no column '.join(missing)}."
    return ""


# What stands before the name of a file that is to be changed, and of one that is to be made.
_WRITES = r"\b(?:save|write|export|store|output|dump|put|append|add|insert|convert|turn|rename|copy"
_CHANGED_FILE = re.compile(rf"{_WRITES})\b.* (?:as|to|into) (?:the |file )*$", re.IGNORECASE)
_NEW_FILE = re.compile(
    rf"{_WRITES}|create|make|generate|produce|build|draw|plot|zip|merge|combine|split)\b"
    r".* (?:as|to|into|in|called|named) (?:an? |the |new |file )*$"
    r"|\b(?:write|create|make|generate|produce|build|touch|save)(?:(?! of| from| in| with) \w+){0,4} $",
    re.IGNORECASE,
)


def requested_files(request: str, folder: str) -> dict[str, tuple[int, int] | None]:
    """The files that a request wants written, with what shows later whether they were; None if there is none yet."""
    from interpreter.agent.grounding import FILE_NAME

    stamps = {}
    for found in FILE_NAME.finditer(request) if asks_for_change(request) else ():
        stamp, before = stamp_of(found[0], folder), re.split(r"[.!?]\s", request[: found.start()])[-1]
        if (_CHANGED_FILE if stamp else _NEW_FILE).search(before.rstrip("\"'`")):
            stamps[found[0]] = stamp
    return stamps


def stamp_of(name: str, folder: str) -> tuple[int, int] | None:
    """When a file was written, and its size; None if there is none."""
    try:
        status = Path(folder, name).expanduser().stat()
    except (OSError, ValueError, RuntimeError):
        return None
    return status.st_mtime_ns, status.st_size


def asks_for_answer(request: str) -> bool:
    return bool(_ANSWER.search(request) or "?" in request) and not asks_for_change(request)


def asks_for_change(request: str) -> bool:
    """Whether a request clearly asks for files to be written, changed or deleted; a question does not."""
    for sentence in re.split(r"(?<=[.!?])\s+|\n", request):
        is_question = sentence.rstrip().endswith("?") and not re.match(
            r"\s*(can|could|would|will) you\b", sentence, re.I
        )
        words = re.sub(r"^\s*in (\S+), (.*?)[.!]?\s*$", r"\2 in \1", sentence, flags=re.I)
        found = [] if is_question else [number for number, asks in enumerate(_ASKS) if asks.search(words.strip())]
        # "Remove the duplicates in a.csv and print the mean": the table stays as it is, the answer counts.
        computes = re.search(_TABLE, sentence, re.I) and _ANSWER.search(request)
        if any(number < len(_ASKS) - 1 or not computes for number in found):
            return True
    return False


# What llama.cpp and llamafile write where they were started: the block did not.
_OF_SERVERS = frozenset({"llama.log", "llama-server.log", "llamafile.log", "main.log"})


def _listed(changes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in changes if each["what"] in _VERBS and Path(each["path"]).name not in _OF_SERVERS]
