"""What a command would do, by its program. A program that is not known may do anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from interpreter.policy.analysis.notes import HOLE, Doing, Notes, changes, is_of_system


class Arguments:
    """`-rf --out=x a b` as options `{-r, -f, --out}`, values `{--out: [x]}` and operands `[a, b]`."""

    def __init__(self, words: Sequence[str], with_value: str = "", stop_early: bool = False) -> None:
        """`with_value`: the options that take the next word; `stop_early`: the first operand ends the options."""
        self.options: set[str] = set()
        self.values: dict[str, list[str]] = {}
        self.operands: list[str] = []
        self._taking = frozenset(with_value.split())
        left = list(reversed(words))
        while left:
            word = left.pop()
            if word == "--" or (stop_early and not _is_option(word)):
                self.operands += ([] if word == "--" else [word]) + left[::-1]
                return
            if not _is_option(word):
                self.operands.append(word)
            elif word.startswith("--") or word in self._taking:
                self._long(word, left)
            else:
                self._letters(word, left)

    def has(self, *names: str) -> bool:
        return not self.options.isdisjoint(names)

    def value(self, *names: str) -> list[str]:
        """What was given to any of these options."""
        return [value for name in names for value in self.values.get(name, ())]

    def _long(self, word: str, left: list[str]) -> None:
        name, equals, value = word.partition("=")
        self.options.add(name)
        if equals:
            self.values.setdefault(name, []).append(value)
        elif name in self._taking and left:
            self.values.setdefault(name, []).append(left.pop())

    def _letters(self, word: str, left: list[str]) -> None:
        for at, letter in enumerate(word[1:], 2):
            name = f"-{letter}"
            self.options.add(name)
            if name not in self._taking:
                continue
            value = word[at:] or (left.pop() if left else "")
            self.values.setdefault(name, []).append(value)
            return


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-")


class Call(NamedTuple):
    """A command as it is called."""

    words: list[str]
    line: int
    text: str
    stdin: str | None = None
    """What it reads, where the text tells."""
    functions: Iterable[str] = ()
    """Names that the code itself has defined; what they do was looked at there."""
    piped: str = ""
    """What another command seems to print for it to read."""

    @property
    def arguments(self) -> list[str]:
        return self.words[1:]


Handler = Callable[[Call, Doing, Notes], None]

HANDLERS: dict[str, Handler] = {}


def handles(*programs: str) -> Callable[[Handler], Handler]:
    """Enter a function into the table for these programs."""

    def enter(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(programs, handler))
        return handler

    return enter


class Row(NamedTuple):
    """What happens to the operands, and which options matter."""

    does: str
    """read, list (names only), write, delete, copy, move, kill, send, get, system; empty: nothing."""
    with_value: str = ""
    """Options that take the next word."""
    skip: int = 0
    """So many operands come first that are no files."""
    instead: str = ""
    """Options in whose presence nothing is skipped."""
    writing: str = ""
    """Options whose value is a file that is written."""
    reading: str = ""


BUILTINS = frozenset(
    ": . [ [[ alias bg bind break builtin caller cd command compgen complete continue declare dirs disown "
    "echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout "
    "mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times "
    "trap true type typeset ulimit umask unalias unset wait time print setopt unsetopt".split()
)

# They print, and touch nothing.
_QUIET = (
    ": [ [[ echo print printf pwd true false exit return break continue shift set shopt setopt unsetopt "
    "test type hash help jobs wait times umask ulimit unset unalias export declare local readonly typeset "
    "let read mapfile readarray getopts dirs popd bg fg disown trap logout history compgen complete date "
    "whoami id groups uname hostname arch nproc uptime free ps top htop pgrep pidof lsof vmstat iostat who "
    "w last basename dirname seq expr bc dc factor sleep yes which whereis tty stty clear tput reset locale "
    "getconf lscpu lsblk lsusb lspci sw_vers cal tr rev man info apropos whatis ss netstat findmnt "
    "mountpoint"
)
_READING = (
    "cat tac nl wc file cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum "
    "shasum md5 cmp diff diff3 sdiff comm join paste fold fmt pr expand unexpand column strings xxd od hexdump "
    "less more most bat zcat bzcat xzcat zless zgrep nm ldd objdump readelf size pdftotext exiftool "
    "identify ffprobe mediainfo shellcheck xmllint cloc tokei look"
)
_LISTING = "ls dir vdir stat du df tree exa eza lsattr getfacl namei readlink realpath ll"
_SYSTEM = (
    "mount umount swapon swapoff losetup cryptsetup pvcreate vgcreate lvcreate lvremove vgremove mdadm "
    "zpool zfs cfdisk mkfs mkswap fsck tune2fs resize2fs wipefs blkdiscard hdparm badblocks modprobe insmod "
    "rmmod sysctl iptables ip6tables nft ufw firewall-cmd useradd userdel usermod groupadd groupdel adduser "
    "deluser passwd chpasswd chsh visudo crontab at batch update-grub grub-install efibootmgr "
    "dpkg-reconfigure update-alternatives setenforce hostnamectl timedatectl localectl loginctl nvram "
    "csrutil diskutil launchctl defaults networksetup scutil spctl chattr setfacl setcap newfs format"
)
_KILLING = "kill pkill killall xkill skill slay shutdown reboot halt poweroff init telinit"
_ASKING = "ping ping6 traceroute tracepath mtr dig nslookup host whois"

PLAIN: dict[str, Row] = {
    **dict.fromkeys(_QUIET.split(), Row("")),
    **dict.fromkeys(_READING.split(), Row("read")),
    **dict.fromkeys(_LISTING.split(), Row("list")),
    **dict.fromkeys(_SYSTEM.split(), Row("system")),
    **dict.fromkeys(_KILLING.split(), Row("kill", "-s --signal -u")),
    **dict.fromkeys(_ASKING.split(), Row("get", "-c -i -W -t -p -s -m")),
    "head": Row("read", "-n -c --lines --bytes"),
    "tail": Row("read", "-n -c --lines --bytes --pid"),
    "cut": Row("read", "-d -f -c -b --delimiter --fields"),
    "uniq": Row("read", "-f -s -w"),
    "sort": Row("read", "-k -t -S -T -o --output", writing="-o --output"),
    "shuf": Row("read", "-n -o --output", writing="-o --output"),
    "jq": Row("read", "--arg --argjson --indent", 1, "-f --from-file"),
    "yq": Row("read", "", 1),
    "grep": Row(
        "read", "-e -f -m -A -B -C --include --exclude --exclude-dir", 1, "-e -f --regexp --file", reading="-f"
    ),
    "egrep": Row("read", "-e -f -m -A -B -C", 1, "-e -f"),
    "fgrep": Row("read", "-e -f -m -A -B -C", 1, "-e -f"),
    "rg": Row("read", "-e -f -g -t -T -m -A -B -C --glob --type", 1, "-e -f --files"),
    "ag": Row("read", "-A -B -C -G", 1),
    "touch": Row("write", "-d -r -t --date --reference"),
    "mkdir": Row("write", "-m --mode"),
    "mkfifo": Row("write", "-m"),
    "mknod": Row("write"),
    "mktemp": Row("write", "-p --tmpdir"),
    "tee": Row("write"),
    "truncate": Row("write", "-s -r --size"),
    "fallocate": Row("write", "-l -o"),
    "chmod": Row("write", "--reference", 1),
    "chown": Row("write", "--reference", 1),
    "chgrp": Row("write", "--reference", 1),
    "split": Row("read", "-l -b -n -a"),
    "iconv": Row("read", "-f -t -o", writing="-o --output"),
    "rm": Row("delete"),
    "rmdir": Row("delete"),
    "unlink": Row("delete"),
    "shred": Row("delete", "-n -s"),
    "trash": Row("delete"),
    "trash-put": Row("delete"),
    "srm": Row("delete"),
    "cp": Row("copy", "-t --target-directory -S"),
    "install": Row("copy", "-m -o -g -t --mode --owner --group"),
    "ln": Row("copy", "-t -S"),
    "mv": Row("move", "-t --target-directory -S"),
    "rename": Row("move", "", 1),
    "gzip": Row("write"),
    "gunzip": Row("write"),
    "bzip2": Row("write"),
    "bunzip2": Row("write"),
    "xz": Row("write"),
    "unxz": Row("write"),
    "zstd": Row("write", "-o", writing="-o"),
    "convert": Row("copy"),
    "magick": Row("copy"),
    "dos2unix": Row("write"),
    "unix2dos": Row("write"),
    "pandoc": Row("read", "-o -f -t --output", writing="-o --output"),
    "base64": Row("read", "-w -i -o", writing="-o"),
    "open": Row("read"),
    "xdg-open": Row("read"),
}

# With these options the operands are changed where they are.
IN_PLACE = {"yq": "-i --inplace", "uniq": "", "split": "--filter"}

KNOWN = frozenset(PLAIN) - frozenset("trash open xdg-open rename convert magick pandoc".split())


# They enter themselves into the table of handlers.


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
    known = program in KNOWN or program in HANDLERS
    local = "/" in name and not is_of_system(name)
    if program not in BUILTINS:
        doing.program(program if not local else name, known=known and not local)
    if local:
        return
    if program in HANDLERS:
        HANDLERS[program](call, doing, notes)
    else:
        _by_table(program, call, doing)


def _by_table(program: str, call: Call, doing: Doing) -> None:
    """The programs whose arguments say all there is to say."""
    row = PLAIN.get(program)
    if row is None:
        return
    arguments = Arguments(call.arguments, row.with_value)
    operands = arguments.operands[0 if arguments.has(*row.instead.split()) else row.skip :]
    doing.write(*arguments.value(*row.writing.split()))
    doing.read(*arguments.value(*row.reading.split()))
    if program in IN_PLACE and arguments.has(*IN_PLACE[program].split()):
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


# Options that take a value, for programs that only start another one.
_WRAPPERS = {
    "nohup": "", "time": "-f -o", "timeout": "-s -k --signal --kill-after", "nice": "-n", "ionice": "-c -n -p",
    "command": "", "builtin": "", "exec": "-a", "stdbuf": "-i -o -e", "setsid": "", "unbuffer": "",
    "caffeinate": "-t", "noglob": "", "chrt": "", "taskset": "-c", "coproc": "", "strace": "-e -o -p",
    "ltrace": "-e -o", "catchsegv": "", "numactl": "", "sudo": "-u -g -h -p -C -U -D", "doas": "-u -C",
    "env": "-u -C -S --unset --chdir --split-string", "chroot": "", "watch": "-n -d --interval", "entr": "",
    "flock": "-w -E", "script": "-c", "xvfb-run": "-s -a", "dbus-run-session": "", "busybox": "",
    "toybox": "", "unshare": "-S -G -R -w", "fakeroot": "", "systemd-run": "-p -u --unit --property", "prlimit": "",
}  # fmt: skip
_LEADING = {"timeout": 1, "chrt": 1, "chroot": 1, "flock": 1, "taskset": 1}
_ROOT = ("sudo", "doas", "chroot")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@handles(*_WRAPPERS)
def wrapper(call: Call, doing: Doing, notes: Notes) -> None:
    name = call.words[0].rsplit("/", 1)[-1]
    if name == "command" and {"-v", "-V"} & set(call.arguments[:1]):
        return
    arguments = Arguments(call.arguments, _WRAPPERS[name], stop_early=True)
    words = arguments.operands[_LEADING.get(name, 0) :]
    while words and _ASSIGNMENT.match(words[0]):
        doing.unknown(f"{words[0].partition('=')[0]} is set for a command") if _telling(words[0]) else None
        words = words[1:]
    if not words and call.stdin is not None:
        nested(call.stdin, call, notes)
    for text in arguments.value("-S", "--split-string", "-c"):
        nested(text, call, notes)
    if name == "env" and not words:
        doing.note("secret", "the environment")
    if name in _ROOT:
        doing.note("unknown", f"{name}: with other rights than yours")
    elif words and not doing.effects[1:]:
        doing.dropped = True
    if words:
        _inner(words, call, notes)


def _telling(word: str) -> bool:

    return bool(TELLING.fullmatch(word.partition("=")[0]))


@handles("xargs", "parallel")
def xargs(call: Call, doing: Doing, notes: Notes) -> None:
    taking = "-n -P -I -L -d -a -s -E -j --max-args --max-procs --replace --delimiter --arg-file --jobs"
    arguments = Arguments(call.arguments, taking, stop_early=True)
    doing.read(*arguments.value("-a", "--arg-file"))
    mark = next(iter(arguments.value("-I", "--replace")), "{}")
    words = [word.replace(mark, HOLE) for word in arguments.operands] or ["echo"]
    _inner([*words, HOLE], call, notes)


@handles("bash", "sh", "zsh", "dash", "ksh", "fish", "su")
def shell(call: Call, doing: Doing, notes: Notes) -> None:
    taking = "-c -o -O --rcfile --init-file" + (" -s -g" if call.words[0] == "su" else "")
    arguments = Arguments(call.arguments, taking, stop_early=True)
    if call.words[0] == "su":
        doing.unknown("su: with other rights than yours")
    if codes := arguments.value("-c", "--command"):
        for code in codes:
            nested(code, call, notes)
    elif arguments.operands and call.words[0] != "su":
        _script(arguments.operands[0], call, doing)
    elif call.stdin is not None:
        nested(call.stdin, call, notes)
    elif not arguments.has("--version", "--help"):
        doing.unknown(f"{call.words[0]} runs what it reads")
        nested(call.piped, call, notes)


@handles("eval")
def evaluate(call: Call, doing: Doing, notes: Notes) -> None:
    nested(" ".join(call.arguments), call, notes)


@handles("source", ".")
def source(call: Call, doing: Doing, notes: Notes) -> None:
    _script("".join(call.arguments[:1]), call, doing)


@handles("trap")
def trap(call: Call, doing: Doing, notes: Notes) -> None:
    if len(call.arguments) > 1 and call.arguments[0] not in ("-", "", "-p", "-l"):
        nested(call.arguments[0], call, notes)


@handles("python", "python3", "python2", "ipython", "pypy3", "python3.11", "python3.12", "python3.13", "python3.14")
def python(call: Call, doing: Doing, notes: Notes) -> None:
    from interpreter.policy.analysis.python import look_at_python

    arguments = Arguments(call.arguments, "-c -m -W -X", stop_early=True)
    if arguments.has("-c"):
        look_at_python(_code_and_rest(call.arguments, "-c")[0], call.line, notes)
    elif arguments.has("-m"):
        module, rest = _code_and_rest(call.arguments, "-m")
        _module(module, rest, call, doing, notes)
    elif arguments.operands and arguments.operands[0] != "-":
        _script(arguments.operands[0], call, doing)
    elif call.stdin is not None:
        look_at_python(call.stdin, call.line + 1, notes)
    elif not arguments.has("--version", "-V", "-h", "--help"):
        doing.unknown("python runs what it reads")
        look_at_python(call.piped, call.line, notes) if call.piped else None


def _code_and_rest(words: Sequence[str], option: str) -> tuple[str, list[str]]:
    """What follows `-c` or `-m`, and what is then left for the program."""
    for at, word in enumerate(words):
        if word == option:
            return "".join(words[at + 1 : at + 2]), list(words[at + 2 :])
        if word.startswith(option):
            return word[2:], list(words[at + 1 :])
    return "", []


def _module(module: str, rest: list[str], call: Call, doing: Doing, notes: Notes) -> None:
    if module in ("pip", "uv", "ipython", "black", "ruff", "mypy"):
        _inner([module, *rest], call, notes)
    elif module == "venv":
        doing.write(*(word for word in rest if not word.startswith("-")))
    elif module == "http.server":
        doing.network("", "send")
    elif module not in ("json.tool", "timeit", "this", "calendar", "site", "platform", "sysconfig", "compileall"):
        doing.program(f"python -m {module}", known=False)


@handles("node", "nodejs", "deno", "bun")
def node(call: Call, doing: Doing, notes: Notes) -> None:
    from interpreter.policy.analysis.javascript import look_at_javascript

    arguments = Arguments(call.arguments, "-e -p --eval --print -r --require", stop_early=True)
    if call.words[0] in ("bun", "deno") and arguments.operands[:1] in (["install"], ["add"], ["i"]):
        for package in arguments.operands[1:] or ["what package.json names"]:
            doing.note("install", package, how=call.words[0])
        doing.network("registry.npmjs.org", "get")
    elif codes := arguments.value("-e", "-p", "--eval", "--print"):
        look_at_javascript(codes[0], call.line, notes)
    elif arguments.operands:
        _script(arguments.operands[0], call, doing)
    elif call.stdin is not None:
        look_at_javascript(call.stdin, call.line + 1, notes)
    elif not arguments.has("--version", "-v", "-h", "--help"):
        doing.unknown("node runs what it reads")


@handles(
    "perl", "ruby", "php", "lua", "Rscript", "R", "osascript", "pwsh", "powershell", "tclsh", "expect", "julia", "java"
)
def other_language(call: Call, doing: Doing, notes: Notes) -> None:
    if call.arguments not in (["--version"], ["-v"], ["-V"], ["-version"]):
        doing.unknown(f"a program in {call.words[0]}, which is not looked into")


def _script(path: str, call: Call, doing: Doing) -> None:
    doing.read(path)
    doing.unknown(f"what is in {path or 'a script'}".replace(HOLE, "*"))


def look_into(code: str, line: int, notes: Notes) -> None:
    """Shell code that another program is given."""
    from interpreter.policy.analysis.shell import look_at_shell

    if HOLE in code:
        notes.not_known("shell", "shell code that is put together when it runs", line)
    look_at_shell(code.replace(HOLE, "${_}"), line, notes)


def nested(code: str, call: Call, notes: Notes) -> None:
    before = notes.places.cwd
    look_into(code, call.line, notes)
    if call.words[0] not in ("eval", "trap"):
        notes.places.cwd = before


def _inner(words: list[str], call: Call, notes: Notes) -> None:

    if notes.too_deep:
        return notes.not_known("shell", "a command inside a command inside a command", call.line)
    notes.depth += 1
    look_at(Call(words, call.line, " ".join(words), call.stdin, call.functions, call.piped), notes)
    notes.depth -= 1
    return None


# A change of these changes what other commands do.
TELLING = re.compile(
    r"PATH|IFS|ENV|SHELLOPTS|BASH\w*|LD_\w+|DYLD_\w+|PYTHON\w+|PERL\w+|RUBY\w+|NODE_\w+|GIT_\w+|PROMPT_COMMAND|PS[0-4]"
    r"|(VISUAL|EDITOR|PAGER|MANPAGER|BROWSER)"
)
# Where the shell expects a variable or a number, it runs the command in such an index, quoted or not.
_INDEX = re.compile(r"\w\[[^\]]{0,200}(\$\(|`)")


def runs_an_index(text: str) -> bool:
    """Does the text hold a command in an index, which runs when the text is taken for a variable?"""
    return bool(_INDEX.search(text))


def note_changed(name: str, doing: Doing) -> None:
    """A variable is set; some change what the commands after it do."""
    if TELLING.fullmatch(name):
        doing.unknown(f"{name} is changed, and with it what commands do")


@handles("read", "mapfile", "readarray", "getopts", "printf", "let", "test", "[", "wait")
def fills(call: Call, doing: Doing, notes: Notes) -> None:
    for name in _filled(call):
        note_changed(name, doing)
    if any(map(runs_an_index, call.arguments)):
        doing.unknown("a command in an index")
    for code in Arguments(call.arguments, "-C").value("-C") if call.words[0] in ("mapfile", "readarray") else ():
        nested(code, call, notes)


def _filled(call: Call) -> Iterator[str]:
    """The names that may be those of variables which it sets."""
    if call.words[0] == "printf":
        yield from Arguments(call.arguments, "-v").value("-v")
    elif call.words[0] not in ("let", "test", "["):
        yield from call.arguments


@handles("hash", "enable", "compgen", "complete", "jobs", "bind", "history", "fc")
def changes_names(call: Call, doing: Doing, notes: Notes) -> None:
    """Without these options they only tell something."""
    name, arguments = call.words[0], Arguments(call.arguments, "-p -f -C -F -W -x -w -a")
    for option in {"hash": "-p", "enable": "-f -n", "bind": "-x", "fc": "-s -e"}.get(name, "").split():
        if arguments.has(option):
            doing.unknown(f"{name} {option} changes what commands do")
    if name in ("compgen", "complete", "jobs"):
        for code in arguments.value("-C", "-F", "-W", "-x"):
            nested(code, call, notes)
    if name == "history":
        doing.write(*arguments.value("-w", "-a"))


@handles("alias")
def alias(call: Call, doing: Doing, notes: Notes) -> None:
    for word in call.arguments:
        _, equals, code = word.partition("=")
        if equals:
            doing.unknown("an alias changes what a command means")
            nested(code, call, notes)


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


_PIP_VALUES = (
    "-r -c -e -t -i --requirement --constraint --editable --target --index-url --extra-index-url -f --prefix "
    "--root --python -p --group --extra"
)
_PYTHON_INSTALLS = frozenset("install add sync update upgrade create lock download wheel i".split())
_PYTHON_READS = frozenset("list show freeze check search config info index tree help debug cache python".split())
_NODE_INSTALLS = frozenset("install i add ci update upgrade".split())
_NODE_SENDS = frozenset("publish deprecate unpublish owner dist-tag login adduser token".split())
_NODE_ASKS = frozenset("view info search outdated audit".split())
_NODE_READS = frozenset("list ls root bin help config prefix why explain pack".split())
_NODE_RUNS = {"npx": "https://registry.npmjs.org", "pnpx": "https://registry.npmjs.org", "uvx": "https://pypi.org"}
_PACKAGE_MANAGERS = (
    "apt apt-get aptitude dpkg dnf yum rpm apk pacman zypper brew port snap flatpak gem cargo go rustup choco winget "
    "nix-env nix cpan luarocks composer dotnet opam mas"
)
_READS = frozenset("list search show info policy outdated doctor env version tree query deps ls".split())
_INSTALLS = frozenset("install add upgrade dist-upgrade full-upgrade update get reinstall localinstall require".split())
_REMOVES = frozenset("remove uninstall purge autoremove erase del rm cleanup".split())
_ONLY_LISTS = frozenset("-l -L -s -S -q -qa -ql -Q -Qi -Ss -Qs --list --version".split())
_CONTAINERS_READ = frozenset("ps images logs inspect version info top stats history port diff ls df".split())
_CHECKERS = ("mypy", "flake8", "pylint", "pyright")
_FORMATTERS = "black isort autopep8 prettier gofmt rustfmt clang-format ruff eslint tsc"


@handles("pip", "pip3", "pip2", "pipx", "uv", "poetry", "pdm", "conda", "mamba", "micromamba", "pipenv", "hatch", "rye")
def python_packages(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, _PIP_VALUES)
    words = [word for word in arguments.operands if word not in ("pip", "tool", "env")]
    verb, named = (words[0], words[1:]) if words else ("", [])
    if verb in _PYTHON_INSTALLS:
        doing.network(next(iter(arguments.value("-i", "--index-url")), "https://pypi.org"), "get")
        files = arguments.value("-r", "--requirement")
        named += arguments.value("-e", "--editable") + [f"-r {file}" for file in files]
        _install(named, "what the project names", call.words[0], doing)
        doing.read(*files)
        doing.write(*arguments.value("-t", "--target"))
    elif verb in ("uninstall", "remove"):
        _install(named, "what the project names", "remove", doing)
    elif verb in ("venv", "init"):
        doing.write(*(named or [".venv"]))
    elif verb and verb not in _PYTHON_READS:
        doing.program(f"{call.words[0]} {verb}", known=False)


@handles("npm", "pnpm", "yarn")
def node_packages(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "--prefix --registry -C --workspace -w")
    verb, named = (arguments.operands[0], arguments.operands[1:]) if arguments.operands else ("", [])
    registry = next(iter(arguments.value("--registry")), "https://registry.npmjs.org")
    if verb in _NODE_INSTALLS or call.words == ["yarn"]:
        doing.network(registry, "get")
        _install(named, "what package.json names", call.words[0], doing)
        doing.write("/usr/local/lib/node_modules" if arguments.has("-g", "--global") else "node_modules")
    elif verb in ("uninstall", "remove", "rm", "un"):
        _install(named, "packages", "remove", doing)
        doing.delete("node_modules/*", tree=True)
    elif verb in _NODE_SENDS:
        doing.network(registry, "send")
    elif verb in _NODE_ASKS:
        doing.network(registry, "get")
    elif verb and verb not in _NODE_READS:
        doing.program(f"{call.words[0]} {verb}", known=False)


@handles(*_NODE_RUNS, "bunx")
def fetched_program(call: Call, doing: Doing, notes: Notes) -> None:
    doing.network(_NODE_RUNS.get(call.words[0], "https://registry.npmjs.org"), "get")
    named = [word for word in call.arguments if not word.startswith("-")]
    doing.program(" ".join([call.words[0], *named[:1]]), known=False)


@handles(*_PACKAGE_MANAGERS.split())
def packages(call: Call, doing: Doing, notes: Notes) -> None:
    operands = [word for word in call.arguments if not word.startswith("-")]
    verb = operands[0] if operands else ""
    flags = {word for word in call.arguments if word.startswith("-")}
    if verb in _READS:
        return
    if verb in _INSTALLS:
        doing.network("", "get")
        _install(operands[1:], f"what {call.words[0]} finds new", call.words[0], doing)
    elif verb in _REMOVES:
        _install(operands[1:], "packages", "remove", doing)
    elif call.words[0] in ("dpkg", "rpm", "pacman"):
        if not flags & _ONLY_LISTS:
            _install(operands, "packages", call.words[0], doing)
    elif flags - {"--version", "-V", "--help", "-h"} or verb:
        doing.program(f"{call.words[0]} {verb}".strip(), known=False)


@handles("docker", "podman", "docker-compose", "nerdctl", "buildah", "skopeo", "vagrant", "multipass", "lxc", "virsh")
def containers(call: Call, doing: Doing, notes: Notes) -> None:
    operands = [word for word in call.arguments if not word.startswith("-")]
    verb = next(iter(operands), "")
    if verb in ("compose", "image", "container", "volume", "network", "system"):
        verb = next(iter(operands[1:]), "")
    if not verb or verb in _CONTAINERS_READ:
        return
    if verb in ("pull", "push", "login", "search"):
        doing.network("", "send" if verb == "push" else "get")
    elif verb in ("stop", "kill", "rm", "down", "rmi", "prune", "restart", "pause", "destroy", "halt"):
        doing.note("kill", f"containers ({call.words[0]} {verb})")
    else:
        doing.program(f"{call.words[0]} {verb}", known=False)


@handles(*_FORMATTERS.split(), *_CHECKERS)
def code_tools(call: Call, doing: Doing, notes: Notes) -> None:
    """They read source files; some rewrite them where they are."""
    words = [word for word in call.arguments if not word.startswith("-")]
    words = words[1:] if words[:1] in (["check"], ["format"]) else words
    doing.read(*words)
    only_looks = {"--check", "--diff", "--noEmit"} & set(call.arguments)
    if call.words[0] not in _CHECKERS and not only_looks:
        doing.write(*words)


def _install(named: Iterable[str], otherwise: str, how: str, doing: Doing) -> None:
    for package in list(named) or [otherwise]:
        doing.note("install", package, how=how)


_GIT_READS = frozenset(
    "status log diff show rev-parse ls-files ls-tree blame grep describe shortlog reflog cat-file rev-list "
    "check-ignore help version count-objects name-rev for-each-ref show-ref merge-base whatchanged var "
    "annotate diff-tree range-diff fsck".split()
)
_GIT_WRITES = frozenset(
    "add commit merge rebase cherry-pick revert apply am mv init tag branch stash config remote worktree "
    "notes bisect gc reset checkout switch restore rm clean format-patch archive update-index update-ref "
    "symbolic-ref sparse-checkout prune".split()
)
_GIT_REMOTE = {
    "push": "send",
    "fetch": "get",
    "pull": "get",
    "clone": "get",
    "ls-remote": "get",
    "submodule": "get",
    "lfs": "get",
}
_GIT_LISTS = {
    "branch": "-a -r -v -vv --list --show-current --all --contains --merged --no-merged",
    "tag": "-l --list -n --contains",
    "stash": "list show",
    "config": "--get --list -l --get-all --get-regexp get list",
    "remote": "-v show get-url",
    "worktree": "list",
    "notes": "list show",
}
_GIT_LOSES = {"checkout", "restore", "reset", "clean", "rm", "switch"}


@handles("git")
def git(call: Call, doing: Doing, notes: Notes) -> None:
    top = Arguments(call.arguments, "-C -c --git-dir --work-tree --namespace --exec-path", stop_early=True)
    folder = next(iter(top.value("-C", "--work-tree")), ".")
    if top.has("-c", "--exec-path", "--config-env"):
        doing.unknown("git with a setting that may start programs")
    if not top.operands:
        return
    verb, rest = top.operands[0], top.operands[1:]
    arguments = Arguments(rest, "-m -F -b -B -o --output --message -n -u")
    doing.write(*arguments.value("--output", "-o"))
    if arguments.has("--exec", "-O", "--upload-pack", "--receive-pack", "-x", "--ext-diff"):
        doing.unknown("git may start programs")
    if verb in _GIT_REMOTE:
        _git_remote(verb, arguments.operands, folder, doing)
    elif verb in _GIT_WRITES and not _only_lists(verb, rest):
        doing.write(f"{folder}/.git".removeprefix("./"), how="git")
        if verb in _GIT_LOSES:
            _git_loses(verb, rest, folder, doing)
    elif verb not in _GIT_READS and verb not in _GIT_WRITES:
        doing.program(f"git {verb}", known=False)


def _only_lists(verb: str, rest: list[str]) -> bool:
    listing = set(_GIT_LISTS.get(verb, "").split())
    if verb in ("branch", "tag", "remote") and not rest:
        return True
    return bool(rest) and rest[0] in listing


def _git_remote(verb: str, operands: list[str], folder: str, doing: Doing) -> None:
    address = next((word for word in operands if re.search(r"://|^[\w.-]+@[\w.-]+:", word)), "")
    doing.network(address, _GIT_REMOTE[verb])
    if verb == "clone":
        target = operands[1] if len(operands) > 1 else address.rstrip("/").rsplit("/", 1)[-1].removesuffix(".git")
        doing.write(target)
    elif verb in ("pull", "submodule"):
        doing.write(folder)
    elif verb != "ls-remote":
        doing.write(f"{folder}/.git".removeprefix("./"), how="git")


def _git_loses(verb: str, rest: list[str], folder: str, doing: Doing) -> None:
    paths = [word for word in rest if not word.startswith("-")]
    if verb == "clean":
        doing.delete(*(paths or [folder]), tree=True)
    elif verb == "rm":
        doing.delete(*paths, tree=True)
    elif verb != "reset" or "--hard" in rest or "--merge" in rest:
        doing.write(folder)


_CURL_VALUES = (
    "-o --output -X --request -d --data --data-raw --data-binary --data-urlencode --json -F --form -H "
    "--header -u --user -A --user-agent -e -T --upload-file -b --cookie -c --cookie-jar -x --proxy -m "
    "--max-time --connect-timeout -w --write-out --retry --url -K --config --cacert --cert --key --resolve "
    "-r --range -D --dump-header --output-dir"
)
_CURL_SENDS = (
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--json",
    "-F",
    "--form",
    "-T",
    "--upload-file",
)
_REMOTE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//)(?!\\)")
_CLOUDS = (
    "aws gcloud az gsutil bq doctl heroku flyctl fly vercel netlify firebase wrangler s3cmd rclone mc terraform tofu "
    "pulumi kubectl helm ansible ansible-playbook gh glab hub stripe twilio"
)
_WGET_VALUES = (
    "-O -P -o -a -U -t -T -Q --output-document --directory-prefix --header --user --password --post-data --post-file -d"
)


@handles("curl", "curlie")
def curl(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, _CURL_VALUES)
    method = "".join(arguments.value("-X", "--request")).upper() or "GET"
    sends = arguments.has(*_CURL_SENDS) or method not in ("GET", "HEAD")
    for address in arguments.operands + arguments.value("--url") or [""]:
        doing.network(address, "send" if sends else "get")
        if arguments.has("-O", "--remote-name", "-J", "--remote-name-all"):
            doing.write(address.rstrip("/").rsplit("/", 1)[-1].partition("?")[0])
    doing.write(*arguments.value("-o", "--output", "-c", "--cookie-jar", "-D", "--dump-header"))
    doing.read(*arguments.value("-T", "--upload-file", "-K", "--config"))
    for data in arguments.value("-d", "--data", "--data-binary", "-F", "--form", "--json"):
        if "@" in data[:1] or "=@" in data:
            doing.read(data.partition("@")[2].partition(";")[0])


@handles("wget", "aria2c")
def wget(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, _WGET_VALUES)
    sends = arguments.has("--post-data", "--post-file", "--method", "--body-data", "--body-file")
    named = arguments.value("-O", "--output-document")
    folder = next(iter(arguments.value("-P", "--directory-prefix")), ".")
    for address in arguments.operands or [""]:
        doing.network(address, "send" if sends else "get")
        if not named and not arguments.has("--spider"):
            doing.write(f"{folder}/{address.rstrip('/').rsplit('/', 1)[-1].partition('?')[0]}".removeprefix("./"))
    doing.write(*named, *arguments.value("-o"))
    doing.read(*arguments.value("--post-file", "--body-file"))


@handles("http", "https", "xh")
def httpie(call: Call, doing: Doing, notes: Notes) -> None:
    operands = [word for word in call.arguments if not word.startswith("-")]
    method = operands.pop(0) if operands and re.fullmatch(r"[A-Z]+", operands[0]) else ""
    sends = method not in ("", "GET", "HEAD") or any("=" in word for word in operands[1:])
    doing.network("".join(operands[:1]), "send" if sends else "get")


@handles(
    "ssh", "sftp", "mosh", "telnet", "nc", "ncat", "netcat", "socat", "ftp", "lftp", "nmap", "openssl", "ssh-copy-id"
)
def connection(call: Call, doing: Doing, notes: Notes) -> None:
    if call.words[0] == "openssl" and call.arguments[:1] != ["s_client"]:
        if "".join(call.arguments[:1]) in ("version", "dgst", "rand", "base64", "md5", "sha256"):
            return doing.read(*(word for word in call.arguments[1:] if not word.startswith("-")))
        return doing.unknown("openssl")
    taking = "-p -i -l -o -L -R -D -F -J -b -c -w -q -connect"
    arguments = Arguments(call.arguments, taking, stop_early=True)
    address = next(iter(arguments.operands + arguments.value("-connect")), "")
    doing.network(address, "send")
    return None


@handles("scp", "rsync")
def remote_copy(call: Call, doing: Doing, notes: Notes) -> None:
    taking = "-e -P -i -o -F -l -S --exclude --include --rsh --filter --exclude-from"
    arguments = Arguments(call.arguments, taking)
    *sources, target = arguments.operands or [""]
    for path in sources:
        if _is_remote(path):
            doing.network(path, "get")
        else:
            doing.read(path)
    if _is_remote(target):
        doing.network(target, "send")
    else:
        doing.write(target)
        if arguments.has("--delete", "--delete-after", "--delete-excluded"):
            doing.delete(f"{target.rstrip('/')}/*", tree=True)
    if arguments.has("--remove-source-files"):
        doing.delete(*sources, tree=True)


def _is_remote(path: str) -> bool:
    return path.startswith("rsync://") or bool(_REMOTE.match(path))


@handles("mail", "mailx", "sendmail", "mutt", "msmtp", "swaks")
def mail(call: Call, doing: Doing, notes: Notes) -> None:
    doing.network("", "send")


@handles(*_CLOUDS.split())
def service(call: Call, doing: Doing, notes: Notes) -> None:
    asked = [word for word in call.arguments if not word.startswith("-")]
    reads = any(
        re.match(r"(list|ls|get|describe|show|status|view|version|help|plan|config|whoami|search|diff|logs)\b", word)
        for word in asked[:3]
    )
    doing.network("", "get" if reads else "send")


@handles(
    "psql",
    "mysql",
    "mariadb",
    "mongo",
    "mongosh",
    "redis-cli",
    "clickhouse-client",
    "sqlcmd",
    "cqlsh",
    "influx",
    "pgcli",
    "mycli",
)
def database(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-c -e -U -h -p -d -f -u -P --command --execute --eval --host --file")
    host = next(iter(arguments.value("-h", "--host")), "localhost")
    doing.network(host, "send")
    codes = arguments.value("-c", "--command", "-e", "--execute", "--eval") + ([call.stdin] if call.stdin else [])
    doing.read(*arguments.value("-f", "--file"))
    if not codes or any(changes(code) for code in codes):
        doing.note("database", call.words[0], how="server")


@handles(
    "dropdb",
    "createdb",
    "dropuser",
    "createuser",
    "pg_restore",
    "mysqladmin",
    "mongorestore",
    "mysqlimport",
    "flyway",
    "alembic",
)
def database_changes(call: Call, doing: Doing, notes: Notes) -> None:
    doing.note("database", call.words[0], how="server")


@handles("pg_dump", "mysqldump", "mongodump")
def database_dump(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-f -U -h -p -d -u -o --file --out")
    doing.network(next(iter(arguments.value("-h")), "localhost"), "get")
    doing.write(*arguments.value("-f", "--file", "-o", "--out"))


@handles("sqlite3", "duckdb")
def database_file(call: Call, doing: Doing, notes: Notes) -> None:
    arguments = Arguments(call.arguments, "-separator -cmd -init -nullvalue")
    files, codes = arguments.operands[:1], arguments.operands[1:] + ([call.stdin] if call.stdin else [])
    doing.read(*files)
    if arguments.has("-readonly", "--readonly", "-version", "--version") or (codes and not any(map(changes, codes))):
        return
    for file in files:
        doing.path("database", file, "file")
        doing.write(file)
