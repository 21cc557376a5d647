"""Installs packages that a block imports and that are missing.

They are detected before the block runs. A package that turns out to be missing while the block runs ends it, and the
block runs again from its checkpoint if undo covers all that it had done. Packages that are installed without a question
are well-known ones, for an agent, in a session environment. The model reads one result: neither the first error nor the
installer's output.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from interpreter.errors import NotRestorableError
from interpreter.questions import Confirm, Question, Step
from interpreter.runtimes.block import closing_chunk, console, notice

if TYPE_CHECKING:
    from interpreter.messages import Chunk
    from interpreter.runtimes.live import LiveLanguage

TABLE = Path(__file__).with_name("known_packages.txt")  # made by scripts/make_known_packages.py
NAMES = {  # of modules: nothing that an installer reads as an option, an address or a version
    "pip": re.compile(r"[A-Za-z_]\w{0,99}", re.ASCII),
    "npm": re.compile(r"(@[a-z\d][\w.-]{0,99}/)?[a-z\d][\w.-]{0,99}", re.ASCII),
    "r": re.compile(r"[A-Za-z][A-Za-z\d.]{0,99}", re.ASCII),
}
NO_CONNECTION = re.compile(
    r"(?i)NewConnectionError|ConnectionError|connection error|ConnectTimeout|name resolution|Network is unreachable|"
    r"Name or service not known|dns error|error sending request|Connection refused|"
    r"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|unable to access index"
)
# By installer: the variables that name another index, and the hosts without them.
_INDEXES = {
    "pip": (("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"), ("pypi.org", "files.pythonhosted.org")),
    "npm": (("NPM_CONFIG_REGISTRY", "npm_config_registry"), ("registry.npmjs.org",)),
    "r": ((), ("cloud.r-project.org",)),
}
_HOST = re.compile(r"https?://(?:[^/@\s]*@)?([\w.-]+(?::\d+)?)")
COMPLAINT = re.compile(
    r"Traceback|ImportError|No module named|Cannot find (module|package)|there is no package|Error in (library|loadN)"
)
IMPORT = re.compile(
    r"\s*(#.*|//.*|import\b[^;]*;?|from\s+[\w.]+\s+import\b[^;(]*|(const|let|var)\b[^;]*\brequire\(['\"][^'\"]*['\"]\);?"
    r"|(suppress\w+\(\s*)?library\([\w.\"']+\)+)?"
)
INSTALLS = re.compile(
    r"\s*[%!]?\s*(?:sudo\s+)?(?:[\w./-]*python[\d.]*\s+-m\s+|uv\s+)?"
    r"(?P<tool>pip[\d.]*|uv|conda|mamba|npm|yarn|pnpm|apt|apt-get|dnf|brew)\s+(?:-[\w-]+\s+)*"
    r"(?:(?:install|i|add)\s+(?P<arguments>[^;&|<>\n]+)|update\s*)|\s*install\.packages\([^\n]*\)\s*"
)
INSTALLS_IN_PYTHON = re.compile(
    r"\s*(import (sys|os|subprocess|pip)\b.*|[^&;|]*\([^&;|]*\bpip\b[^&;|]*\binstall\b[^&;|]*)"
)
STOPPED = (
    "Now installed: {names}. The block stopped at the import; what it did before that still counts, so it was not "
    "run again. Continue from there.\n"
)

Verdict = Literal["run", "ask", "rule", "deny"]  # `rule`: a rule asks, so only a person can allow it


class Host(NamedTuple):
    """The session and permissions that a block's packages are installed with."""

    setting: Literal["ask", "known", "never"]
    by_agent: bool  # whether an agent wrote the block, not the user
    can_ask: bool  # whether a front end can answer an offer
    judge: Callable[[str], tuple[Verdict, str]]  # judges an install command by rules and mode; with the reason
    # Installs packages with a block in the same runtime, as an action. Returns how that ended, and the installer's
    # output.
    perform: Callable[[Sequence[str], str], tuple[str, str]]
    only_reads: Callable[[str, str], bool]  # whether code that lacked a module has only read files


@functools.cache
def known_packages(installer: str) -> Mapping[str, str]:
    """Map well-known modules to their packages; anyone can publish a package under any other name."""
    rows = (line.split() for line in TABLE.read_text("utf-8").splitlines())
    return {row[1]: row[-1] for row in rows if row[0] == installer}


def package_names(installer: str, modules: Iterable[str]) -> list[str]:
    known, pattern = known_packages(installer), NAMES[installer]
    return list(dict.fromkeys(known.get(each, each) for each in modules if pattern.fullmatch(each)))


# -- running a block ---------------------------------------------------------------------------------------------------


def run_with_packages(runtime: LiveLanguage, code: str, host: Host) -> Generator[Step]:
    """Run a block. If allowed, install the packages that it lacks, before or during the run."""
    if host.by_agent and (names := _present_packages(runtime, code)):
        yield console(f"Already installed: {', '.join(names)}.\n")
        yield closing_chunk(0, "done")
        return
    if not runtime.installer:
        yield from runtime.run(code)
        return
    provider = _Provider(runtime, host)
    if host.setting != "never" and (modules := runtime.missing_imports(code)):
        if not runtime.context.cancelled():  # as while it waited for the data packages
            yield from provider.provide(modules, " and run the block")
        if runtime.context.cancelled():
            yield closing_chunk(130, "interrupted")
            return
    shown = ""
    while True:
        attempt = _Attempt(shown)
        with closing(runtime.run(code)) as chunks:  # type: ignore[type-var]
            for step in chunks:
                yield from [step] if isinstance(step, Question) else attempt.passed_on(step)
        modules = [each for each in runtime.missing.split() if each not in provider.tried]
        if attempt.failed is None or not modules or host.setting == "never":
            break
        before, done = runtime.state_before, runtime.part_before(code, attempt.line, modules[0])
        only_imports = all(IMPORT.fullmatch(line) for line in done.splitlines())
        again = only_imports or host.only_reads(done, modules[0])
        if not (yield from provider.provide(modules, " and run the block again" if again else "")):
            break
        try:
            if again:
                runtime.restore(before)
        except NotRestorableError:
            again = only_imports
        if not again:
            provider.outcome = STOPPED.format(names=provider.names)
            break
        shown = attempt.shown
    replaced = provider.outcome if attempt.failed is not None else ""
    yield from (chunk for chunk in attempt.held if not (replaced and chunk.get("ours")))
    yield from [notice(replaced)] if replaced else ()
    yield from [attempt.failed] if attempt.failed is not None else ()


@dataclass
class _Attempt:
    """One run of a block: passes chunks on, and holds back those that may only be due to a missing package."""

    expected: str  # what an earlier attempt has shown already
    shown: str = ""
    held: list[Chunk] = field(default_factory=list)
    failed: Chunk | None = None
    line: int = 0  # the last one that was reached

    def passed_on(self, chunk: Chunk) -> Generator[Chunk]:
        content = chunk.get("content")
        if chunk.get("ended") == "error":
            self.failed = chunk
            return
        if chunk.get("format") == "active_line":
            self.line = content or self.line
        elif chunk.get("stream") == "stderr" and (self.held or chunk.get("ours") or COMPLAINT.search(str(content))):
            self.held.append(chunk)
            return
        elif chunk.get("format") == "output":
            text = str(content)
            self.shown += text
            if text.startswith(self.expected):
                chunk, self.expected = {**chunk, "content": text[len(self.expected) :]}, ""
            elif self.expected.startswith(text):
                self.expected = self.expected[len(text) :]
                return
            else:
                self.expected = ""  # its output differs this time
        held, self.held = self.held, []
        yield from held
        yield chunk


class _Provider:
    def __init__(self, runtime: LiveLanguage, host: Host) -> None:
        self._runtime, self._host = runtime, host
        self.tried: set[str] = set()
        self.names = ""  # the packages that were last asked for
        self.outcome = ""  # tells the model about the installation instead of advice, if the block failed

    def provide(self, modules: Sequence[str], then: str) -> Generator[Step, None, bool]:
        """Install packages with these modules, if settings, rules and user allow it. Returns whether that was done."""
        runtime, host = self._runtime, self._host
        self.tried |= set(modules)
        known = [each for each in modules if each in known_packages(runtime.installer)]
        packages, command, code = runtime.installation(modules)
        if not code or runtime.context.offline:
            return False
        verdict, reason = host.judge(command)
        if verdict == "deny":
            self.outcome = f"{_listed(packages)} can't be installed: {reason}\n"
            return False
        context = runtime.context
        containment: Any = context.containment if host.can_ask else None
        request = (
            containment.request_of(f"# needs: host {' '.join(_hosts(runtime.installer))}") if containment else None
        )
        if request is not None and request.refusal:
            self.outcome = f"{_listed(packages)} can't be installed: {request.refusal}\n"
            return False
        alone = request is None and (verdict == "run" or host.setting == "known" or not host.can_ask)
        is_ours = not context.elsewhere and (runtime.installer != "pip" or context.python_environment().is_layer)
        if known and alone and verdict != "rule" and host.by_agent and is_ours:
            packages, command, code = runtime.installation(known)
        elif host.can_ask and (verdict != "run" or request is not None):
            unknown = [each for each in modules if each not in known]
            check = f"Check the name, anyone can publish a package: {_listed(unknown)}.\n" if unknown else ""
            hosts = _listed([each.value for each in request.wanted]) if request is not None else ""
            reach = f"During the installation, the sandbox can reach {hosts}.\n" if hosts else ""
            question = Question(Confirm(f"{check}{reach}Install {_listed(packages)}{then}?", "offer"))
            yield question
            if not question.approved:
                if not question.unattended:
                    self.outcome = f"The user doesn't want to install {_listed(packages)}.\n"
                return False
        else:
            return False
        self.names = _listed(packages)
        yield {"type": "status", "format": "installing", "content": {"packages": packages}}
        if request is not None:
            containment.widen(*request.wanted)  # live runtimes reach the hosts at once
        try:
            ended, log = host.perform(packages, code)
        finally:
            if request is not None:
                containment.narrow(*request.wanted)
        if ended == "done":
            yield {"type": "status", "format": "notice", "content": {"text": f"Installed {self.names}."}}
            return True
        lines = log.splitlines()
        why = [line for line in lines if line.startswith("Blocked by the sandbox")]
        if not why and NO_CONNECTION.search(log):
            why = ["The package index can't be reached: there seems to be no network connection."]
        why = why or [line for line in lines if line.lower().startswith(("error", "npm err"))][:2]
        self.outcome = "\n".join([*why, f"Not installed: {self.names}.\n"])
        return False


def _hosts(installer: str) -> Sequence[str]:
    variables, usual = _INDEXES[installer]
    return _HOST.findall(" ".join(os.environ.get(name, "") for name in variables)) or usual


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


# -- reading code ------------------------------------------------------------------------------------------------------


def first_imports(code: str) -> list[str]:
    """List the modules that a Python block always imports: not in a function, a condition or a `try`.

    Empty if the block installs packages, or changes where modules are found.
    """
    if code.lstrip().startswith("%%") or re.search(r"\binstall\b|sys\.path|site\.addsitedir", code):
        return []
    try:
        tree = ast.parse(re.sub(r"(?m)^([ \t]*)[%!].*$", r"\1pass", code))
    except (SyntaxError, ValueError):
        return []
    names: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= dict.fromkeys(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            names[node.module.partition(".")[0]] = None
    return [name for name in names if f"{name}.py" not in code]


def only_installs(language: str, code: str) -> bool:
    """Check that a block does nothing but install packages."""
    lines = [line for line in re.split(r"\n|&&", code) if line.strip() and not line.lstrip().startswith(("#", "%%"))]
    in_python = INSTALLS_IN_PYTHON if language.lower() in ("python", "py") else INSTALLS
    names_it = lines and re.search(r"install|\b(?:i|add)\b", code)
    return bool(names_it) and all(INSTALLS.fullmatch(line) or in_python.fullmatch(line) for line in lines)


def named_packages(code: str) -> list[str]:
    """List the packages that a block installs with pip, in any version; empty if it does anything else."""
    matches = [INSTALLS.fullmatch(line) for line in code.splitlines() if line.strip()]
    if not all(match and match["arguments"] and match["tool"].startswith("pip") for match in matches):
        return []
    names = [name for match in matches if match for name in match["arguments"].split() if name not in ("-q", "--quiet")]
    return names if all(re.fullmatch(r"[A-Za-z][\w.-]*", name) for name in names) else []


def _present_packages(runtime: LiveLanguage, code: str) -> list[str]:
    """List the packages that a block installs, if all of them can be imported in this session already."""
    names = named_packages(code) if "install" in code and runtime.uses_environment else []
    if not names or runtime.context.elsewhere:
        return []
    installed = runtime.context.python_environment().installed(behind=True)
    present = {re.sub(r"[-_.]+", "-", name).lower() for name, _ in installed}
    return names if all(re.sub(r"[-_.]+", "-", name).lower() in present for name in names) else []
