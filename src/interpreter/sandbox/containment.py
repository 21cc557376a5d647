"""A sandbox in use: it starts runtimes inside and reports what it blocked."""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from interpreter.config.homes import homes, our_folder
from interpreter.console_text import first_few
from interpreter.errors import SandboxUnavailableError
from interpreter.host import exposure
from interpreter.host.files import left_behind, remove
from interpreter.leaves import load
from interpreter.runtimes.block import outputs_folder
from interpreter.runtimes.launch import Start
from interpreter.sandbox import bubblewrap, seatbelt
from interpreter.sandbox.places import (
    APART,
    MAX_FOLDERS,
    SandboxPlaces,
    TrustedPaths,
    is_inside,
    make_mount_points,
    places,
    programs_in,
)
from interpreter.sandbox.proxy import Proxy, is_listed
from interpreter.sandbox.requests import (
    EndedBlock,
    SandboxRequest,
    blocked,
    is_given,
    obstacle,
    requested,
    says_why,
    to_host,
)
from interpreter.sandbox.sandbox import (
    ENTER,
    PORT,
    Access,
    Sandbox,
    for_first_process,
    let_through,
    through_proxy,
)
from interpreter.sandbox.system_calls import seccomp_filter

NAME = "interpreter-sandbox-"
STATE = (".config", ".cache", ".local/share")  # where our files are in a home other than $HOME
PACKAGES = ".local/share/sandbox-packages"  # in the sandbox's home, for what pip installs; shared by its runtimes
MAX_REPORTED_FILES = 5  # named in a block's output


class Containment:
    """A sandbox shared by all runtimes of one computer: its temporary folder, its home, its proxy."""

    def __init__(
        self,
        sandbox: Sandbox,
        proxy: Proxy | None = None,
        state: tuple[Path, ...] | None = None,
        refused_by_rules: Callable[[Access], str] = lambda access: "",
    ) -> None:
        self.sandbox = self._base = sandbox
        self._refused_by_rules = refused_by_rules
        self.granted: list[Access] = []  # by the user, on top of the base
        self.within: Containment | None = None  # the narrower one that this was made from
        self._layer: Path | None = None  # the session environment
        self._stack = Path()  # the data stack, if there is a layer
        self._may_install = False  # into the layer
        self.proxy = proxy or Proxy(sandbox.hosts)
        self._door: int | None = None
        self.state = own_state() if state is None else state  # our own files, hidden from all code
        check_available(sandbox.image)
        self.places([])  # raises if the workspace is not suitable
        exposure.distrust(sandbox.workspace, *sandbox.writable)
        for left in left_behind(Path(tempfile.gettempdir()), NAME):
            if left.lstat().st_uid == os.getuid():
                remove(left)
        self.trusted: dict[Path, TrustedPaths] = {}  # by writable folder
        try:
            self.scratch = Path(tempfile.mkdtemp(prefix=f"{NAME}{os.getpid()}-"))
            self.outputs = outputs_folder() / self.scratch.name
            for folder in (self.scratch / "tmp", self.scratch / "home" / PACKAGES, self.outputs):
                folder.mkdir(parents=True, mode=0o700)
            self._watch_trusted()
        except OSError as error:
            raise SandboxUnavailableError(
                f"The sandbox can't write to {error.filename}: {error.strerror}. Make that folder writable, or set "
                "TMPDIR (for temporary files) and XDG_CACHE_HOME (for long outputs) to folders that are."
            ) from error
        self.groups = (
            bubblewrap.ControlGroups(sandbox.limits) if sys.platform == "linux" and not sandbox.image else None
        )
        self.close = weakref.finalize(self, put_away, self.scratch, self.outputs, self.proxy, self.groups, self.trusted)

    def widen(self, *wanted: Access) -> Containment:
        """Grant more access. Returns itself if live runtimes get it at once, else a new one for new runtimes."""
        wider = self
        if not all(each.at_once for each in wanted):
            wider = copy.copy(self)  # with the same folders, groups and proxy
            wider.within = self
        wider.granted = [*self.granted, *wanted]
        wider.settle()
        return wider

    def with_workspace_kept(self, folder: str) -> Containment:
        """Return a copy for a program that works elsewhere; it can't write to the workspace, or doesn't see it."""
        other = copy.copy(self)
        is_image = bool(self.sandbox.image)
        other.sandbox = replace(self.sandbox, workspace=folder) if is_image else replace(self.sandbox, kind="read-only")
        return other

    def narrow(self, *wanted: Access) -> None:
        """Revoke what was granted; connections to hosts that are no longer listed are cut."""
        self.granted = [each for each in self.granted if each not in wanted]
        self.settle()

    def settle(self) -> None:
        """Apply what is granted now to the proxy, and to which folders are trusted for programs outside."""
        self.sandbox = self._base.with_access(self.granted)
        exposure.distrust(self.sandbox.workspace, *self.sandbox.writable)
        self.proxy.allow_only(self.sandbox.hosts)

    # -- what runtimes call -------------------------------------------------------------------------------------

    @property
    def only_reads(self) -> bool:
        return not self.sandbox.writes_workspace

    def environment(self, env: dict[str, str]) -> dict[str, str]:
        kept = {**let_through(env, self.sandbox.env), "TMPDIR": "/tmp", **through_proxy(PORT)}
        if self._installs_into_layer():
            return kept
        packages = os.path.join(os.path.realpath(os.path.expanduser("~")), PACKAGES)
        kept["PYTHONPATH"] = os.pathsep.join([packages, *filter(None, [kept.get("PYTHONPATH")])])
        active = os.path.realpath(os.environ.get("VIRTUAL_ENV") or sys.prefix)
        is_ours = active == os.path.realpath(sys.prefix)
        in_workspace = Path(active).is_relative_to(self.sandbox.workspace)
        if is_ours or not (self.sandbox.writes_workspace and in_workspace):
            kept["PIP_TARGET"] = packages
        return kept

    def admit(self, layer: str, stack: str, writable: bool = True) -> None:
        self._layer, self._stack, self._may_install = Path(layer), Path(stack), writable
        exposure.distrust(layer)

    def _installs_into_layer(self) -> bool:
        """Check whether code can write to the session environment, which is not mounted in a container."""
        return self._may_install and self.sandbox.writes_workspace and not self.sandbox.image

    @contextlib.contextmanager
    def wrap(self, start: Start, folder: Path | None = None) -> Iterator[Start]:
        with contextlib.ExitStack() as stack:
            try:
                wrapped = self._wrapped(start, folder, stack)
            except OSError as error:
                raise SandboxUnavailableError(f"Can't start the sandbox: {error}. Restart the interpreter.") from error
            yield wrapped

    def _wrapped(self, start: Start, folder: Path | None, stack: contextlib.ExitStack) -> Start:
        if folder is not None:
            start = replace(start, env=for_first_process(start.env))
            if self._layer is not None and is_inside(start.argv[0], [self._layer]):
                start = replace(start, argv=[sys.executable, *start.argv])  # so the first process loads nothing from it
        if not self.sandbox.image and sys.platform == "linux":
            return self._in_bubblewrap(start, folder, stack)
        protected = [each.root / name for each in self._watch_trusted() for name in each.protected()]
        if self.sandbox.image:
            protected += self.places([]).protected
            wrapped: Start = load("interpreter.sandbox.container:wrapped")(
                self.sandbox, self.proxy, self.scratch, self.outputs, protected, start, folder, stack
            )
            return wrapped
        seen, port = self.places(programs_in(start.argv)), self.proxy.listen()
        own = {self.scratch: True}
        if self._layer is not None:
            own |= {self._layer: self._installs_into_layer(), self._stack: False}
        return seatbelt.wrapped(self.sandbox.limits, seen, protected, own, port, start, folder)

    def denials(self, code: str, done: dict[str, Any]) -> list[str]:
        block = EndedBlock(
            code, done.get("exit_code"), list(done.get("errors") or ()), done.get("said") or "", done.get("cwd") or ""
        )
        verdicts = self.proxy.take_verdicts()
        reports = self._new_trusted()
        if not (
            block.errors
            or block.exit_code
            or says_why(block.output)
            or any(not verdict.allowed for verdict in verdicts)
        ):
            return reports  # the usual case costs nothing
        seen = self.places([])
        denials = blocked(self.sandbox, seen, block, verdicts)
        reports += [str(replace(each, remedy=None) if self._obstacle(seen, each.remedy) else each) for each in denials]
        return reports

    def _new_trusted(self) -> list[str]:
        """Report new trusted files, and folders that became too large to watch completely."""
        before = {each for each in self.trusted.values() if each.is_complete}
        names = [name for each in self.trusted.values() for name in each.new()]
        # Code chose the names, so keep control characters out of the report.
        new = "".join(letter if letter.isprintable() else "?" for letter in first_few(names, MAX_REPORTED_FILES))
        reports = [
            f"{each.root} has more than {MAX_FOLDERS:,} folders now. In the rest, new files such as .git aren't "
            f"noticed. Look for them before you use those folders outside the sandbox."
            for each in before
            if not each.is_complete
        ]
        if new:
            reports.insert(
                0,
                f"New in the workspace: {new}. Git, editors or other programs may run code from such files. Check them "
                f"before you use that folder outside the sandbox.",
            )
        return reports

    # -- requests for more -----------------------------------------------------------------------------------------

    def request_of(self, code: str) -> SandboxRequest | None:
        """Parse what the code asks for. None if it asks for nothing, or only for what every runtime has."""
        seen = self.places([])
        asked = requested(code, self.sandbox.workspace)
        missing = tuple(each for each in asked if not is_given(self.sandbox, seen, each))
        # A runtime that started before something was granted may not have it.
        may_be_older = any(each in self.granted and not each.at_once for each in asked)
        if not missing and not may_be_older:
            return None
        for each in missing:
            if why := self._obstacle(seen, each):
                return SandboxRequest(missing, f"the sandbox can't be granted {each}: {why.rstrip('.')}.")
        return SandboxRequest(missing)

    def _obstacle(self, seen: SandboxPlaces, wanted: Access | None) -> str:
        """Say why access cannot be given, in general or because of a rule; empty if the user can give it."""
        if wanted is None:
            return ""
        return obstacle(self.sandbox, seen, self.state, wanted) or self._refused_by_rules(wanted)

    # -- what programs outside call, which keep to the same rules ----------------------------------------------------

    def door(self) -> int:
        """Return a local port where the proxy also listens, and open it on first use."""
        if self._door is None:
            self._door = self.proxy.listen()
        return self._door

    def refusal(self, host: str, port: int) -> str:
        return "" if is_listed(host, port, self.proxy.hosts) else str(to_host(host, port))

    def may_read(self, path: Path) -> bool:
        seen = self.places([])
        return is_inside(path, (*seen.readable, *seen.writable)) and not seen.is_hidden(path)

    def may_write(self, path: Path) -> bool:
        return self.places([]).is_writable(path)

    # -- Linux -------------------------------------------------------------------------------------------------

    def _in_bubblewrap(self, start: Start, folder: Path | None, stack: contextlib.ExitStack) -> Start:
        argv, fds = start.argv, list(start.fds)
        own = {self.outputs: "--ro-bind"} | ({folder: "--bind"} if folder else {})
        if self._layer is not None:
            own[self._layer] = "--bind" if self._installs_into_layer() else "--ro-bind"
            own[self._stack] = "--ro-bind"
        seen = self.places(programs_in(argv))
        protected: dict[Path, int] = {}
        pinned: dict[Path, int] = {}
        for trusted in self._watch_trusted():
            ours = [path.relative_to(trusted.root) for path in seen.protected if is_inside(path, [trusted.root])]
            above = sorted(str(folder) for path in ours for folder in list(path.parents)[:-1])
            for names, kept in ((above, pinned), ([*trusted.protected(), *map(str, ours)], protected)):
                for name in names:
                    if (fd := trusted.open(name)) is not None:
                        stack.callback(os.close, fd)
                        kept[trusted.root / name] = fd
        fds += [*pinned.values(), *protected.values()]
        if folder is not None:
            line = stack.enter_context(self.proxy.expect())
            fds.append(line.fileno())
            outermost = [path for path in protected if not is_inside(path, protected.keys() - {path})]
            checked = sum(
                any(is_inside(path, [root]) and os.access(root, os.W_OK) for root in self.trusted) for path in outermost
            )
            limits, network = self.sandbox.limits.as_argument(), f"{line.fileno()}:{PORT}"
            argv = [argv[0], str(ENTER), str(checked), limits, network, "-", *argv[1:]]
        make_mount_points(self.scratch, seen, own)
        options = bubblewrap.arguments(seen, self.scratch, own, pinned, protected)
        options += ["--chdir", self._visible(start.cwd, seen), "--clearenv"]
        options += [option for name, value in start.env.items() for option in ("--setenv", name, value)]
        if (filters := seccomp_filter(self.sandbox.unix_sockets)) is not None:
            fds.append(stack.enter_context(readable(filters)))
            options += ["--seccomp", str(fds[-1])]
        fds.append(stack.enter_context(readable(b"".join(os.fsencode(option) + b"\0" for option in options))))
        doors = self.groups.doors if self.groups else []
        return Start(bubblewrap.command(doors, fds[-1], argv), {}, "/", fds)

    # -- places ------------------------------------------------------------------------------------------------

    def places(self, used: list[str]) -> SandboxPlaces:
        return places(self.sandbox, used, self.state)

    def _watch_trusted(self) -> list[TrustedPaths]:
        """Watch for trusted files in each writable folder, except device folders. Returns all watchers."""
        folders = [place for place in self.places([]).writable if place.is_dir() and not is_inside(place, APART[4:])]
        for place in folders:
            if place not in self.trusted:
                self.trusted[place] = TrustedPaths(place)
        return [self.trusted[place] for place in folders]

    def _visible(self, cwd: str | None, seen: SandboxPlaces) -> str:
        """Return the directory to start in: the workspace, if the one asked for is not visible."""
        real = os.path.realpath(cwd or self.sandbox.workspace)
        hidden = seen.is_hidden(real) or real.startswith(("/run/", "/proc/", "/dev/"))
        in_temporary = real.startswith(("/tmp/", "/var/tmp/")) and not seen.is_writable(real)
        return self.sandbox.workspace if hidden or in_temporary or not os.path.isdir(real) else real


def check_available(image: str = "") -> None:
    """Raise SandboxUnavailableError, with the reason and the remedy, if this system has no sandbox."""
    if sys.platform == "win32":
        raise SandboxUnavailableError(
            "The sandbox is not available on Windows. Run Open Interpreter inside WSL to use it."
        )
    if image:
        load("interpreter.sandbox.container:available")()
    elif sys.platform == "linux":
        bubblewrap.available()
    elif sys.platform == "darwin":
        seatbelt.available()
    else:
        raise SandboxUnavailableError(
            "The sandbox is not available on this system. If you have Docker or Podman: interpreter --sandbox "
            "container:IMAGE"
        )


def containment_for(
    sandbox: Sandbox,
    present: Containment | None = None,
    refused_by_rules: Callable[[Access], str] = lambda access: "",
) -> Containment | None:
    """Return the present containment if it fits these settings, else a new one with the same grants; None if off."""
    if sandbox.kind == "off":
        return None
    granted = present.granted if present is not None else []
    if present is not None and present.sandbox == sandbox.with_access(granted):
        return present
    made = Containment(sandbox, refused_by_rules=refused_by_rules)
    made.granted = list(granted)
    made.settle()
    return made


def put_away(
    scratch: Path,
    outputs: Path,
    proxy: Proxy,
    groups: bubblewrap.ControlGroups | None,
    trusted: dict[Path, TrustedPaths],
) -> None:
    proxy.close()
    for each in trusted.values():
        each.release()
    with contextlib.suppress(OSError):
        outputs.rmdir()  # fails if it has outputs, which stay: the user has seen their paths
    if groups is not None:
        groups.close()
    remove(scratch)


def own_state() -> tuple[Path, ...]:
    others = (Path(home, place, "open-interpreter") for home in homes()[1:] for place in STATE)
    return tuple(dict.fromkeys([our_folder("config"), our_folder("cache"), our_folder("data"), *others]))


@contextlib.contextmanager
def readable(content: bytes) -> Iterator[int]:
    """Yield a descriptor from which this content can be read."""
    fd = os.memfd_create("sandbox")
    try:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)
