"""A session that runs, undoes and redoes random blocks until it is killed: `random_session.py FOLDER SEED`."""

from __future__ import annotations

import random
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from checkpoints.effects import NAMES, PREPARE, SHELL_STATE, code_of
from checkpoints.scripted_session import ScriptedSession
from interpreter.errors import UndoError

KINDS = ["write", "append", "truncate", "delete", "rename", "symlink", "mkdir", "rmdir"]


def block(chance: random.Random) -> tuple[str, str]:
    """Write a block with some effects."""
    language = chance.choice(["python", "shell"])
    effects = [(chance.choice(KINDS), chance.choice(NAMES), chance.choice(NAMES)) for _ in range(chance.randint(1, 6))]
    effects = [(kind, path, "1" if kind == "truncate" else other) for kind, path, other in effects]
    state = ("code", "x = [x]" if language == "python" else chance.choice(SHELL_STATE), "")
    return language, code_of(language, [*effects, state])


def act(session: ScriptedSession, chance: random.Random) -> None:
    """Take a turn with blocks, run a block, undo or redo."""
    choice = chance.random()
    try:
        if choice < 0.4:
            session.turn(f"words {choice}", *(block(chance) for _ in range(chance.randint(0, 2))))
        elif choice < 0.6:
            session.run_block(block(chance))
        elif choice < 0.85:
            session.interpreter.undo(chance.randint(1, 3), blocks=chance.random() < 0.3)
        else:
            session.interpreter.redo()
    except UndoError:
        pass  # there were not that many steps


def main() -> None:
    session, chance = ScriptedSession(Path(sys.argv[1])), random.Random(int(sys.argv[2]))
    session.turn("begin", *PREPARE.items())
    print("ready", flush=True)
    while True:
        act(session, chance)


if __name__ == "__main__":
    main()
