"""Exports of a session whose code attacks the user who exports it. A successful attack leaves the file `proof`.

Also a program, so that it can run as another user: `python export_attacks.py FOLDER`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from interpreter import OpenInterpreter
from interpreter.app import exports, result_of
from interpreter.errors import ExportError
from interpreter.script.verify import verify
from interpreter.session import APPROVE, Answer

LIBRARY = '#include <fcntl.h>\n__attribute__((constructor)) static void run(void) { open("PROOF", O_CREAT | O_WRONLY, 0600); }'
FAKE = """mkdir -p v/bin; printf '#!/bin/sh\\ntouch PROOF\\nexec /usr/bin/python3 "$@"\\n' > v/bin/python; chmod +x v/bin/python
ln -s python v/bin/python3; ln -s python v/bin/bwrap; ln -s python v/bin/sh; """
MODULE = 'echo \'open("PROOF", "w")\' > '
WRITES_OUTSIDE = "open('PROOF', 'w')"
# By name: what the session's code does before the export, and what the exported program does when verified.
ATTACKS = {
    "modules beside the files": (f"for n in json sitecustomize importlib; do {MODULE} $n.py; done", ""),
    "modules on the path": (f"mkdir m; {MODULE} m/json.py; export PYTHONPATH=$PWD/m", ""),
    "an environment": (f"{FAKE} export VIRTUAL_ENV=$PWD/v", ""),
    "programs on the path": (f"{FAKE} export PATH=$PWD/v/bin:$PATH", ""),
    "a preloaded library": ("export LD_PRELOAD=$PWD/planted.so", ""),
    "start-up files": (f"{MODULE} s; export PYTHONSTARTUP=$PWD/s BASH_ENV=$PWD/s ENV=$PWD/s PYTHONINSPECT=1", ""),
    "the program, verified": ("true", WRITES_OUTSIDE),
    "the program, verified, in the workspace": (
        "true",
        "import os\nopen(os.path.join('WORK'[:2] + 'WORK'[2:], 'proof'), 'w')",
    ),
    "the program, verified without an answer": ("true", WRITES_OUTSIDE),
}


def attack(name: str, folder: Path) -> str:
    """Prepare the attack in the sandbox, then export and verify as the user would. Returns the report."""
    workspace, proof = folder / "work", str(folder / "proof")
    os.chdir(workspace)
    prepared, writes = (words.replace("PROOF", proof).replace("WORK", str(workspace)) for words in ATTACKS[name])
    interpreter = OpenInterpreter(auto_run=True, sandbox="workspace", workspace=str(workspace))
    can_answer = [] if "without" in name else ["confirm"]
    try:
        for _ in interpreter.computer.run("shell", prepared):
            pass
        (workspace / "out.txt").write_text("1")
        interpreter.messages = [
            {"role": "user", "type": "message", "content": "Write it."},
            {
                "role": "assistant",
                "type": "code",
                "format": "python",
                "content": f"open('out.txt', 'w').write('1')\n{writes}\n",
            },
            {"role": "computer", "type": "console", "format": "output", "content": "1\n"},
        ]
        exported = result_of(exports.export(interpreter, "script"))
        assert exported is not None and exported.path.parent == workspace
        with interpreter.session.questions.answerable(can_answer, lambda question: Answer(APPROVE)):
            return str(result_of(verify(interpreter, exported)))
    except ExportError as error:
        return f"ExportError: {error}"
    finally:
        interpreter.computer.terminate()


if __name__ == "__main__":
    print(json.dumps({name: attack(name, Path(sys.argv[1], str(number))) for number, name in enumerate(ATTACKS)}))
