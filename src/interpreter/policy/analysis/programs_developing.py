"""Package managers, containers, and tools for source files."""

from __future__ import annotations

from collections.abc import Iterable

from interpreter.policy.analysis.arguments import Arguments
from interpreter.policy.analysis.handlers import Call, handles
from interpreter.policy.analysis.notes import Doing, Notes

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
_SYSTEM = (
    "apt apt-get aptitude dpkg dnf yum rpm apk pacman zypper brew port snap flatpak gem cargo go rustup choco winget "
    "nix-env nix cpan luarocks composer dotnet opam mas"
)
_READS = frozenset("list search show info policy outdated doctor env version tree query deps ls".split())
_INSTALLS = frozenset("install add upgrade dist-upgrade full-upgrade update get reinstall localinstall require".split())
_REMOVES = frozenset("remove uninstall purge autoremove erase del rm cleanup".split())
_LISTING = frozenset("-l -L -s -S -q -qa -ql -Q -Qi -Ss -Qs --list --version".split())
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


@handles(*_SYSTEM.split())
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
        if not flags & _LISTING:
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
