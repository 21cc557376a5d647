"""HTML and React blocks: a page for the user, and a picture of it for the model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import glob
from pathlib import Path

from interpreter.host.browsers import installed_browsers
from interpreter.host.processes import which
from interpreter.languages.program import ProgramLanguage
from interpreter.messages import Chunk
from interpreter.runtimes import built_in
from interpreter.runtimes.block import notice
from interpreter.runtimes.launch import program_version
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.state import Restored

__all__ = ["HTML", "React"]

SHELLS = ("chromium-headless-shell", "chrome-headless-shell")  # smaller, without windows, for any sandbox
PLAYWRIGHT = "~/.cache/ms-playwright/chromium*/chrome-linux*/*"


class HTML(built_in.HTML, ProgramLanguage):
    """A page, shown by a headless browser if there is one. It leaves no state."""

    shared_form = "json"
    worker = Path(__file__).with_name("driver.py")

    def browser(self) -> str | None:
        named = self.context.browser
        if named:
            return os.path.expanduser(named)
        playwrights = [path for path in glob(os.path.expanduser(PLAYWRIGHT)) if path.endswith(("/chrome", "_shell"))]
        browsers = [*filter(None, map(which, SHELLS)), *installed_browsers(*sorted(playwrights, reverse=True))]
        return browsers[0] if browsers else None

    def installed(self) -> str | None:
        browser = self.browser()
        number = browser and program_version(browser, self.context.containment)
        return f"{Path(browser).name} {number or ''}".rstrip() if browser else "no browser"

    def config(self) -> Frame:
        # The browser's own sandbox needs rights that it does not have inside ours, or as root.
        contained = self.context.containment is not None or os.geteuid() == 0
        return {"browser": self.browser(), "contained": contained, "react": False}

    def fields(self) -> Frame:
        return {**super().fields(), "offline": self.context.offline, "workspace": self.context.workspace}

    def restore(self, state: int) -> Restored:
        return Restored()  # a page leaves nothing behind


class React(built_in.React, HTML):
    """JSX or TSX, made into a page with React and esbuild, which come from npm."""

    installer = "npm"

    def installed(self) -> str | None:
        return f"npm, {super().installed()}" if self.program() else None

    def config(self) -> Frame:
        return {**super().config(), "react": True}

    def advice(self, event: Frame) -> Iterator[Chunk]:
        if event.get("missing"):
            _, command, _ = self.installation(event["missing"].split())
            offline = self.context.offline
            self.missing = "" if offline else event["missing"]
            why = "Offline mode is on, so nothing can be installed now. When you are online again," if offline else ""
            yield notice(f"{why or 'To install what is missing,'} run this as a React block: {command}\n")

    def installation(self, modules: Sequence[str]) -> tuple[list[str], str, str]:
        command = f"npm install {' '.join(modules)}"
        return [*modules], command, command

    def part_before(self, code: str, line: int, module: str) -> str:
        return ""  # a page that can't be built doesn't run
