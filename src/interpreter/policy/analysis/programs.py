"""What a command would do, by its program; one that is not known may do anything."""

from __future__ import annotations

from interpreter.policy.analysis import program_table as table

# They enter themselves into the table of handlers.
from interpreter.policy.analysis import (
    programs_builtins,
    programs_developing,
    programs_files,
    programs_git,
    programs_network,
    programs_starting,
)
from interpreter.policy.analysis.arguments import Arguments
from interpreter.policy.analysis.handlers import HANDLERS, Call
from interpreter.policy.analysis.notes import Doing, Notes
from interpreter.policy.analysis.places import HOLE, is_of_system

__all__ = [
    "look_at",
    "programs_builtins",
    "programs_developing",
    "programs_files",
    "programs_git",
    "programs_network",
    "programs_starting",
]


def look_at(call: Call, notes: Notes) -> None:
    """Write down what a command would do."""
    doing = notes.step("shell", call.text, call.line, call.words)
    if not call.words:
        return
    name = call.words[0]
    if name in call.functions:
        return
    program = name.rsplit("/", 1)[-1]
    if HOLE in name:
        doing.unknown("a command whose name is only known when it runs")
        return
    known = program in table.KNOWN or program in HANDLERS
    local = "/" in name and not is_of_system(name)
    if program not in table.BUILTINS:
        doing.program(program if not local else name, known=known and not local)
    if local:
        return
    if program in HANDLERS:
        HANDLERS[program](call, doing, notes)
    else:
        _by_table(program, call, doing)


def _by_table(program: str, call: Call, doing: Doing) -> None:
    """The programs whose arguments say all there is to say."""
    row = table.PLAIN.get(program)
    if row is None:
        return
    arguments = Arguments(call.arguments, row.with_value)
    operands = arguments.operands[0 if arguments.has(*row.instead.split()) else row.skip :]
    doing.write(*arguments.value(*row.writing.split()))
    doing.read(*arguments.value(*row.reading.split()))
    if program in table.IN_PLACE and arguments.has(*table.IN_PLACE[program].split()):
        doing.write(*operands)
    match row.does:
        case "read":
            doing.read(*operands)
        case "list":
            for path in operands:
                doing.path("read", path, "names")
        case "write":
            doing.write(*operands)
        case "delete":
            doing.delete(*operands, tree=arguments.has("-r", "-R", "--recursive"))
        case "copy" | "move":
            _copy(arguments, operands, doing, row.does)
        case "kill":
            doing.note("kill", f"processes ({' '.join([program, *operands])})".replace(HOLE, "*"))
        case "send" | "get":
            doing.network(next(iter(operands), ""), row.does)
        case "system":
            doing.write(*(word for word in operands[-1:] if word.startswith("/")), how="system")
            doing.note("unknown", f"{program} changes the system")


def _copy(arguments: Arguments, operands: list[str], doing: Doing, does: str) -> None:
    folder = arguments.value("-t", "--target-directory")
    sources, targets = (operands, folder) if folder else (operands[:-1], operands[-1:])
    doing.read(*sources)
    if does == "move":
        doing.delete(*sources, tree=True)
    doing.write(*targets)
