"""Programs that work on files, with ways of their own."""

from __future__ import annotations

from interpreter.policy.analysis.arguments import Arguments
from interpreter.policy.analysis.handlers import Call, handles
from interpreter.policy.analysis.notes import Doing, Notes
from interpreter.policy.analysis.places import HOLE

_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")


@handles("cd", "pushd")
def change_folder(call: Call, doing: Doing, notes: Notes) -> None:
    operands = [word for word in call.arguments if word == "-" or not word.startswith("-")]
    notes.places.move(None if operands == ["-"] else operands[0] if operands else "~")


@handles("sed")
def sed(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-e -f --expression --file -l")
    scripts = arguments.value("-e", "--expression")
    has_script = bool(scripts) or arguments.has("-f", "--file")
    files = arguments.operands if has_script else arguments.operands[1:]
    for script in scripts or arguments.operands[:1]:
        if any(mark in script for mark in ("w /", "w ~", "/e", "\ne ", "1e")):
            doing.unknown("a sed script that may write files or run commands")
    doing.read(*files)
    if any(option == "--in-place" or option.startswith("-i") for option in arguments.options):
        doing.write(*files)


@handles("awk", "gawk", "mawk", "nawk")
def awk(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-F -v -f")
    script = "" if arguments.has("-f") else "".join(arguments.operands[:1])
    doing.read(*arguments.value("-f"), *arguments.operands[bool(script) :])
    if arguments.has("-f") or HOLE in script or any(mark in script for mark in ("system(", "|", '>"', "> ", "getline")):
        doing.unknown("an awk program that may write files or run commands")


@handles("dd")
def dd(call: Call, doing: Doing, notes: Notes) -> None:
    for word in call.arguments:
        name, _, value = word.partition("=")
        if name == "if":
            doing.read(value)
        elif name == "of":
            doing.write(value)


@handles("find", "fd", "fdfind")
def find(call: Call, doing: Doing, notes: Notes) -> None:
    words = call.arguments
    start = next((at for at, word in enumerate(words) if word[:1] in ("-", "(", "!")), len(words))
    roots = words[:start] or ["."]
    for root in roots:
        doing.path("read", root, "names")
    found = [f"{root.rstrip('/')}/*" for root in roots]
    if "-delete" in words:
        doing.delete(*found, tree=True)
    for at, word in enumerate(words):
        if word in ("-fprint", "-fprintf", "-fls", "-fprint0"):
            doing.write(*words[at + 1 : at + 2])
        elif word in _FIND_RUNS or word in ("-x", "-X", "--exec", "--exec-batch"):
            _each(words[at + 1 :], found, call, notes)


def _each(words: list[str], found: list[str], call: Call, notes: Notes) -> None:
    from interpreter.policy.analysis.programs import look_at

    ends = [at for at, word in enumerate(words) if word in (";", "+")]
    command = words[: ends[0]] if ends else words
    inner = [path for word in command for path in (found if word == "{}" else [word.replace("{}", HOLE)])]
    look_at(Call(inner, call.line, " ".join(inner), None, call.functions), notes)


@handles("tar", "bsdtar", "gtar")
def tar(call: Call, doing: Doing, notes: Notes) -> None:
    words = call.arguments
    if words and not words[0].startswith("-"):
        words = [f"-{words[0]}", *words[1:]]
    arguments = Arguments(words, "-f --file -C --directory -T -X --exclude -I --to-command --checkpoint-action")
    archive, folder = arguments.value("-f", "--file"), arguments.value("-C", "--directory") or ["."]
    if arguments.has("-x", "--extract", "--get"):
        doing.read(*archive)
        doing.write(*(f"{each}/*" for each in folder))
    elif arguments.has("-t", "--list"):
        doing.read(*archive)
    else:
        doing.read(*arguments.operands)
        doing.write(*archive)
    if arguments.has("--to-command", "--checkpoint-action", "-I", "--use-compress-program"):
        doing.unknown("tar starts a program")


@handles("patch")
def patch(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-p -i -o -d -r --input --output --directory")
    doing.read(*arguments.value("-i", "--input"), *arguments.operands[1:])
    folder = next(iter(arguments.value("-d", "--directory")), ".")
    doing.write(*(arguments.operands[:1] or [f"{folder}/*"]), *arguments.value("-o", "--output"))


@handles("unzip", "7z", "7za", "unrar")
def unzip(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-d -x")
    doing.read(*arguments.operands[:1])
    if not arguments.has("-l", "-t", "-p", "-Z", "-v"):
        doing.write(*(f"{each}/*" for each in arguments.value("-d") or ["."]))


@handles("zip")
def zip_files(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-x -i -P")
    doing.write(*arguments.operands[:1])
    doing.read(*arguments.operands[1:])
    if arguments.has("-m", "--move"):
        doing.delete(*arguments.operands[1:], tree=True)
    if arguments.has("-T", "--unzip-command"):
        doing.unknown("zip starts a program")


@handles("fdisk", "sfdisk", "gdisk", "sgdisk", "parted")
def partitions(call: Call, doing: Doing, notes: Notes) -> None:
    if {"-l", "--list", "-d", "--dump", "print", "-p"} & set(call.arguments):
        doing.read(*filter(_is_device, call.arguments))
    else:
        doing.write(*filter(_is_device, call.arguments), how="system")


@handles("crontab")
def crontab(call: Call, doing: Doing, notes: Notes) -> None:
    if "-l" in call.arguments:
        doing.read("/var/spool/cron")
    else:
        doing.write("/var/spool/cron", how="system")


@handles("systemctl", "service", "rc-service")
def services(call: Call, doing: Doing, notes: Notes) -> None:
    asked = [word for word in call.arguments if not word.startswith("-")]
    if not {"status", "list-units", "is-active", "show", "cat", "list-timers", "is-enabled"} & set(asked):
        doing.note("kill", " ".join(["the service", *asked[1:]]) if asked[1:] else "services")


@handles("printenv")
def print_environment(call: Call, doing: Doing, notes: Notes) -> None:
    doing.note("secret", "the environment")


def _is_device(path: str) -> bool:
    return path.startswith("/dev/")


@handles(
    "mkfs.ext2", "mkfs.ext3", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "mkfs.vfat", "mkfs.fat", "mkfs.ntfs", "mkfs.exfat",
    "mke2fs", "mkdosfs", "newfs_apfs",
)  # fmt: skip
def make_file_system(call: Call, doing: Doing, notes: Notes) -> None:
    doing.write(*filter(_is_device, call.arguments), how="system")
