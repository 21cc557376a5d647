"""A real desktop for tests: an X server in memory, a window manager, a session bus with accessibility, applications."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

NEEDED = {
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "dbus-daemon": "dbus",
    "/usr/libexec/at-spi-bus-launcher": "at-spi2-core",
}
PROGRAMS = Path(__file__).parent / "programs"
SYSTEM_PYTHON = "/usr/bin/python3"
LIMIT = 60.0

_MARK = "TEST_DESKTOP_MARK"
_WHOLE = 1 << 14  # reads a property in one request, since it may change between two
_BUS = """<busconfig>
  <type>session</type>
  <listen>unix:dir={folder}</listen>
  <servicedir>{folder}</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
_ACCESSIBILITY = """[D-BUS Service]
Name=org.a11y.Bus
Exec=/usr/libexec/at-spi-bus-launcher --launch-immediately --a11y=1
"""
# No animations, so that two screenshots of the same state are equal.
_GTK = "[Settings]\ngtk-enable-animations=0\ngtk-cursor-blink=0\n"


def missing() -> list[str]:
    """List the packages that a desktop needs and this machine lacks."""
    return [package for program, package in NEEDED.items() if shutil.which(program) is None]


def _needs(path: Path, package: str) -> None:
    if not path.exists():
        pytest.skip(f"{package} is not installed: apt-get install {package}")


@dataclass(frozen=True)
class Application:
    """A running application and its window."""

    process: subprocess.Popen[bytes]
    window: int
    title: str

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Desktop:
    """A separate X display, with methods to start applications and wait for their windows."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 800) -> None:
        self.folder = folder
        self.width, self.height = width, height
        self.applications: list[Application] = []
        self._mark = uuid.uuid4().hex
        self._services: list[subprocess.Popen[bytes]] = []
        self.env = self._environment()
        try:
            self._start_x()
            self._start_bus()
            self._start_window_manager()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End everything, including what applications and the bus started."""
        for application in self.applications:
            application.close()
        if hasattr(self, "x"):
            self.x.close()
        for service in reversed(self._services):
            service.terminate()
        for service in self._services:
            service.wait(20)
        _, alive = psutil.wait_procs(self._marked(), timeout=10)
        for process in alive:
            process.kill()
        psutil.wait_procs(alive, timeout=10)

    # Applications

    def start(self, *argv: str, title: str, env: dict[str, str] | None = None) -> Application:
        """Start a program and wait until its window has the focus; `title` is a part of the window's title."""
        before = set(self.windows())
        log = (self.folder / f"{Path(argv[0]).name}.log").open("ab")
        with log:
            process = subprocess.Popen(
                argv, env=self.env | (env or {}), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder
            )
        window = 0

        def there() -> bool:
            nonlocal window
            assert process.poll() is None, f"{argv[0]} ended with {process.returncode}: see {log.name}"
            window = next((w for w, name in self.windows().items() if w not in before and title in name), 0)
            return window != 0 and self.active_window() == window

        try:
            self.until(there, f"a window of {argv[0]} titled {title!r} with the focus")
        except BaseException:
            process.kill()
            process.wait()
            raise
        application = Application(process, window, self.windows()[window])
        self.applications.append(application)
        return application

    def editor(self, *files: Path) -> Application:
        """Mousepad, a GTK editor."""
        names = [str(file) for file in files]
        return self.start("mousepad", "--disable-server", *names, title=files[-1].name if files else "Untitled")

    def terminal(self, *command: str) -> Application:
        return self.start("xterm", "-u8", "-T", "terminal", *(("-e", *command) if command else ()), title="terminal")

    def qt_dialog(self, result: Path) -> Application:
        """Open a Qt form that writes its values to a JSON file when saved."""
        _needs(Path("/usr/lib/python3/dist-packages/PyQt5"), "python3-pyqt5")
        return self.start(SYSTEM_PYTHON, str(PROGRAMS / "qt_dialog.py"), str(result), title="Order")

    def tk_form(self, result: Path) -> Application:
        """Open a Tk form that writes its values to a JSON file when saved."""
        _needs(Path("/usr/share/doc/python3-tk"), "python3-tk")
        return self.start(SYSTEM_PYTHON, str(PROGRAMS / "tk_form.py"), str(result), title="Guest book")

    def browser(self, address: str, title: str) -> Application:
        """Chromium in a new window, with a fresh profile."""
        flags = "--no-first-run --no-default-browser-check --disable-gpu --disable-background-networking"
        flags += " --disable-component-update --password-store=basic --force-renderer-accessibility"
        flags += " --allow-pre-commit-input"  # otherwise it ignores clicks before it has painted the page
        if os.geteuid() == 0:
            flags += " --no-sandbox --test-type"  # without the warning bar, which slides in while tests click
        profile = self.folder / f"chromium-{uuid.uuid4().hex[:8]}"
        return self.start(
            "chromium", *flags.split(), f"--user-data-dir={profile}", "--window-size=900,600", address, title=title
        )

    def folder_with(self, *names: str) -> Path:
        """Make a folder with these files, for file managers."""
        folder = self.folder / f"files-{uuid.uuid4().hex[:6]}"
        folder.mkdir()
        for name in names:
            (folder / name).write_text(f"{name}\n")
        return folder

    def close_applications(self) -> None:
        while self.applications:
            self.applications.pop().close()

    # The display

    def windows(self) -> dict[int, str]:
        """Return the titles of the window manager's windows by id, oldest first."""
        return {window: self._title(window) for window in self._property(self._root, "_NET_CLIENT_LIST")}

    def processes(self, window: int) -> list[int]:
        """Return the process that a window belongs to, if known."""
        from Xlib.error import BadWindow

        try:
            return self._property(self.x.create_resource_object("window", window), "_NET_WM_PID")
        except BadWindow:
            return []

    def active_window(self) -> int:
        return next(iter(self._property(self._root, "_NET_ACTIVE_WINDOW")), 0)

    def pointer(self) -> tuple[int, int]:
        where = self._root.query_pointer()
        return where.root_x, where.root_y

    def two_monitors(self) -> None:
        """Two monitors side by side, left and right half of the screen; `one_monitor` undoes it."""
        half = self.width // 2
        size = f"{half}/{half // 4}x{self.height}/{self.height // 4}"
        self._xrandr("--setmonitor", "LEFT", f"{size}+0+0", "screen")
        self._xrandr("--setmonitor", "RIGHT", f"{size}+{half}+0", "none")

    def one_monitor(self) -> None:
        self._xrandr("--delmonitor", "RIGHT")
        self._xrandr("--delmonitor", "LEFT")

    def picture(self, file: Path) -> Path:
        """Save the screen as a PNG file, for debugging."""
        from PIL import Image

        raw = self._root.get_image(0, 0, self.width, self.height, 2, 0xFFFFFFFF)
        Image.frombytes("RGB", (self.width, self.height), raw.data, "raw", "BGRX").save(file)
        return file

    def until(self, condition: Callable[[], Any], what: str, limit: float = LIMIT) -> None:
        """Wait until a condition holds, checking again at each event of the display."""
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, f"waited {limit:g} s for {what}; windows: {self.windows()}"
            select.select([self.x.fileno()], [], [], 0.05)
            while self.x.pending_events():
                self.x.next_event()

    # Inside

    def _environment(self) -> dict[str, str]:
        home, runtime = self.folder / "home", self.folder / "run"
        for folder in (home / ".config/gtk-3.0", runtime):
            folder.mkdir(parents=True)
        runtime.chmod(0o700)
        (home / ".config/gtk-3.0/settings.ini").write_text(_GTK)
        kept = {name: os.environ[name] for name in ("PATH", "TEST_RUN_MARK_ALL") if name in os.environ}
        return kept | {
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(runtime),
            "LANG": "C.UTF-8",
            "GSETTINGS_BACKEND": "memory",
            "QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1",
            _MARK: self._mark,
        }

    def _service(self, *argv: str, fd: int | None = None) -> None:
        with (self.folder / "services.log").open("ab") as log:
            fds = () if fd is None else (fd,)
            service = subprocess.Popen(
                argv, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=fds, cwd=self.folder
            )
        self._services.append(service)

    def _start_and_read(self, *argv: str) -> str:
        """Start a service that writes a line to the descriptor in its last argument, and return the line."""
        reading, writing = os.pipe()
        with os.fdopen(reading) as told:
            self._service(*argv[:-1], argv[-1].format(fd=writing), fd=writing)
            os.close(writing)
            word = told.readline().strip() if select.select([told], [], [], LIMIT)[0] else ""
        assert word, f"{argv[0]} did not start: see {self.folder / 'services.log'}"
        return word

    def _xrandr(self, *options: str) -> None:
        subprocess.run(["xrandr", *options], env=self.env, check=True, timeout=LIMIT)

    def _start_x(self) -> None:
        from Xlib import X
        from Xlib.display import Display

        size = f"{self.width}x{self.height}x24"
        options = "-screen", "0", size, "-nolisten", "tcp", "-noreset", "-dpi", "96"
        self.env["DISPLAY"] = ":" + self._start_and_read("Xvfb", *options, "-displayfd", "{fd}")
        self.x = Display(self.env["DISPLAY"])
        self._root = self.x.screen().root
        self._root.change_attributes(event_mask=X.PropertyChangeMask | X.SubstructureNotifyMask)

    def _start_bus(self) -> None:
        folder = self.folder / "bus"
        folder.mkdir()
        (folder / "org.a11y.Bus.service").write_text(_ACCESSIBILITY)
        (folder / "bus.conf").write_text(_BUS.format(folder=folder))
        options = "--nofork", "--nopidfile", f"--config-file={folder / 'bus.conf'}"
        self.env["DBUS_SESSION_BUS_ADDRESS"] = self._start_and_read("dbus-daemon", *options, "--print-address={fd}")

    def _start_window_manager(self) -> None:
        self._service("openbox", "--sm-disable")
        self.until(lambda: self._property(self._root, "_NET_SUPPORTING_WM_CHECK"), "the window manager")

    def _property(self, window: Any, name: str) -> list[int]:
        value = window.get_full_property(self.x.intern_atom(name), 0, _WHOLE)
        return [] if value is None else list(value.value)

    def _title(self, window: int) -> str:
        from Xlib.error import BadWindow

        resource = self.x.create_resource_object("window", window)
        try:
            title = resource.get_full_property(self.x.intern_atom("_NET_WM_NAME"), 0, _WHOLE)
            return bytes(title.value).decode() if title else resource.get_wm_name() or ""
        except BadWindow:
            return ""

    def _marked(self) -> list[psutil.Process]:
        processes = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_MARK) == self._mark:
                    processes.append(process)
            except psutil.Error:
                continue
        return processes


if __name__ == "__main__":
    # A desktop for manual tests: prints its variables, and ends with Enter.
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        desktop = Desktop(Path(temporary))
        try:
            print("\n".join(f"export {name}='{value}'" for name, value in desktop.env.items()), flush=True)
            sys.stdin.readline()
        finally:
            desktop.close()
