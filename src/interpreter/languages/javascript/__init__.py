"""JavaScript blocks, run by Node."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from interpreter.errors import RuntimeStartError
from interpreter.runtimes import built_in
from interpreter.runtimes.block import Channels
from interpreter.runtimes.launch import Launch, program_version
from interpreter.runtimes.live import LiveLanguage
from interpreter.runtimes.missing_packages import package_names
from interpreter.runtimes.protocol import Frame

__all__ = ["JavaScript"]

DRIVER = Path(__file__).with_name("driver") / "main.cjs"
NO_NODE = (
    "node is not installed. Install Node.js 18 or later (Debian and Ubuntu: apt-get install nodejs; "
    "macOS: brew install node; others: see nodejs.org) and make sure that `node` is on the PATH."
)
INSTALL = """
require('child_process').execFileSync('npm', %s, { stdio: 'inherit' });
process.env.NODE_PATH = [process.env.NODE_PATH, %s].filter(Boolean).join(':');
void require('module')._initPaths();
"""


class JavaScript(built_in.JavaScript, LiveLanguage):
    """Node with the variables of earlier blocks."""

    shared_form = "json"
    installer = "npm"

    _pipes = 0  # how many pairs were made

    def _node(self) -> str | None:
        return shutil.which("node", path=self.context.own_environment().get("PATH"))

    def version(self) -> str | None:
        node = self._node()
        number = node and program_version(node, self.context.containment)
        return f"Node.js {number}" if number else None

    def launch(self) -> Launch:
        node = self._node()
        if node is None:
            raise RuntimeStartError(self.name, NO_NODE)
        # V8's termination of an interrupted block upsets the bookkeeping that these checks would abort the process for.
        worker = ["exec", node, "--no-force-async-hooks-checks", str(DRIVER), "{data}"]
        env, folder = self.context.environment(), glob.escape(self.context.package_folder("node"))
        places = [*filter(None, [env.get("NODE_PATH")]), *sorted(glob.glob(os.path.join(folder, "*", "node_modules")))]
        env = {**env, "NODE_PATH": os.pathsep.join(places)} if places else env
        return Launch(worker, env=env, cwd=self.context.cwd, interrupt_frames=True)

    def installation(self, modules: Sequence[str]) -> tuple[list[str], str, str]:
        names = package_names("npm", modules)
        # Each set gets its own folder, because node remembers that a package was missing in a folder it has searched.
        folder = os.path.join(self.context.package_folder("node"), "+".join(names).replace("/", "+"))
        arguments = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder, "--", *names]
        code = INSTALL % (json.dumps(arguments), json.dumps(os.path.join(folder, "node_modules")))
        npm = shutil.which("npm", path=self.context.own_environment().get("PATH"))
        return names, f"npm install {' '.join(names)}", code if npm and names and not self.context.elsewhere else ""

    def channels(self) -> Channels:
        """Make two named pipes that the driver opens for child processes, because Node cannot be sent descriptors."""
        folder = self.start().folder
        self._pipes += 1
        channels = Channels()
        for name in ("stdout", "stderr"):
            path = folder / f"{name}-{self._pipes}"
            os.mkfifo(path, 0o600)
            channels.reads.append((os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), name))
            # Keep a writing end open here, or the pipe would be at its end before a child opens it.
            channels.held.append(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
            channels.fields[name] = str(path)
            with contextlib.suppress(FileNotFoundError):
                (folder / f"{name}-{self._pipes - 1}").unlink()
        return channels

    def fields(self) -> Frame:
        return {"active_lines": self.context.active_lines}
