"""A session that runs blocks, takes them back and does them again until it is killed: `restless.py FOLDER SEED`."""

from __future__ import annotations

import random
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

from checkpoints.effects import NAMES, PREPARE, SHELL_STATE, code_of
from checkpoints.traveller import Traveller
from interpreter.errors import UndoError

KINDS = ["write", "append", "truncate", "delete", "rename", "symlink", "mkdir", "rmdir"]


def block(chance: random.Random) -> tuple[str, str]:
    """A block with some effects."""
    language = chance.choice(["python", "shell"])
    effects = [(chance.choice(KINDS), chance.choice(NAMES), chance.choice(NAMES)) for _ in range(chance.randint(1, 6))]
    effects = [(kind, path, "1" if kind == "truncate" else other) for kind, path, other in effects]
    state = ("code", "x = [x]" if language == "python" else chance.choice(SHELL_STATE), "")
    return language, code_of(language, [*effects, state])


def act(traveller: Traveller, chance: random.Random) -> None:
    """Say something and have blocks run, run one, or go back or forth."""
    choice = chance.random()
    try:
        if choice < 0.4:
            traveller.turn(f"words {choice}", *(block(chance) for _ in range(chance.randint(0, 2))))
        elif choice < 0.6:
            traveller.own(block(chance))
        elif choice < 0.85:
            traveller.interpreter.undo(chance.randint(1, 3), blocks=chance.random() < 0.3)
        else:
            traveller.interpreter.redo()
    except UndoError:
        pass  # there was nothing, or not so much


def main() -> None:
    traveller, chance = Traveller(Path(sys.argv[1])), random.Random(int(sys.argv[2]))
    traveller.turn("begin", *PREPARE.items())
    print("ready", flush=True)
    while True:
        act(traveller, chance)


if __name__ == "__main__":
    main()
