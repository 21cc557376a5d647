"""What sandboxed code may reach, as data: the kind of sandbox, its workspace, hosts, variables, paths and limits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from interpreter.errors import SettingValueError
from interpreter.llm.secrets import is_secret_name, replace_secrets

KINDS = ("off", "read-only", "workspace")
CONTAINER = "container:"
WRITABLE = ":rw"
MEGABYTE = 1024 * 1024
ENTER = Path(__file__).with_name("enter.py")
PORT = 41080  # of the proxy, inside the sandbox's network


@dataclass(frozen=True)
class ResourceLimits:
    """Resource limits of a sandboxed runtime; None means no limit."""

    memory: int | None = 8192  # megabytes, per process, and in total if there are control groups
    cpu: int | None = 3600  # seconds per process
    processes: int | None = 1024  # including threads
    file_size: int | None = 4096  # megabytes

    def as_argument(self) -> str:
        """Format the limits for enter.py, which sets them before anything else runs."""
        memory = None if self.memory is None else self.memory * MEGABYTE
        size = None if self.file_size is None else self.file_size * MEGABYTE
        # Only memory that can be written counts: programs like node reserve far more addresses than they use.
        values = {"DATA": memory, "CPU": self.cpu, "NPROC": self.processes, "FSIZE": size, "CORE": 0}
        return ",".join(f"{name}={value}" for name, value in values.items() if value is not None)


@dataclass(frozen=True)
class Access:
    """Something that a sandbox can grant: a path to read or to write to, a host, or a variable."""

    kind: str  # read, write, host or env
    value: str

    def __str__(self) -> str:
        return f"{self.kind} {self.value}"

    @property
    def words(self) -> str:
        before = {"read": "to read ", "write": "to write to ", "host": "to reach ", "env": "to read the variable "}
        return before[self.kind] + self.value

    @property
    def setting(self) -> str:
        return {"host": "sandbox_hosts", "env": "sandbox_env"}.get(self.kind, "sandbox_paths")

    @property
    def at_once(self) -> bool:
        """Check whether a live runtime can get it at once: nothing can be mounted into one."""
        return self.kind in ("host", "env")


@dataclass(frozen=True)
class Sandbox:
    """What code inside can reach and use. Whether a block may run at all is up to the policy."""

    kind: str = "off"
    workspace: str = field(default_factory=os.getcwd)
    hosts: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    limits: ResourceLimits = ResourceLimits()
    unix_sockets: bool = False
    fixed: bool = False  # code can't ask for more

    def __post_init__(self) -> None:
        if self.kind not in KINDS and not self.image:
            raise SettingValueError(
                f"sandbox takes 'off', 'read-only', 'workspace' or 'container:IMAGE', not {self.kind!r}."
            )
        object.__setattr__(self, "workspace", os.path.realpath(self.workspace))
        for name in ("hosts", "env", "paths"):  # sorted, so that sandboxes compare equal
            object.__setattr__(self, name, tuple(sorted(set(getattr(self, name)))))

    @property
    def image(self) -> str:
        return self.kind.removeprefix(CONTAINER) if self.kind.startswith(CONTAINER) else ""

    @property
    def writes_workspace(self) -> bool:
        return self.kind != "read-only"

    @property
    def readable(self) -> tuple[Path, ...]:
        return tuple(full(path) for path in self.paths if not path.endswith(WRITABLE))

    @property
    def writable(self) -> tuple[Path, ...]:
        return tuple(full(path.removesuffix(WRITABLE)) for path in self.paths if path.endswith(WRITABLE))

    def with_access(self, granted: Iterable[Access]) -> Sandbox:
        lists = {"sandbox_hosts": [*self.hosts], "sandbox_env": [*self.env], "sandbox_paths": [*self.paths]}
        for access in granted:
            lists[access.setting].append(access.value + (WRITABLE if access.kind == "write" else ""))
        hosts, env, paths = map(tuple, lists.values())
        return replace(self, hosts=hosts, env=env, paths=paths)

    def is_within(self, other: Sandbox) -> bool:
        """Check that nothing can be reached or used in this sandbox that the other one doesn't allow."""
        limits = zip(astuple(self.limits), astuple(other.limits), strict=True)
        return (
            (self.kind == other.kind or (self.kind, other.kind) == ("read-only", "workspace"))
            and self.workspace == other.workspace
            and {*self.hosts} <= {*other.hosts}
            and {*self.env} <= {*other.env}
            and {*self.writable} <= {*other.writable}
            and {*self.readable} <= {*other.readable, *other.writable}
            and self.unix_sockets <= other.unix_sockets
            and all(theirs is None or (mine is not None and mine <= theirs) for mine, theirs in limits)
        )

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Sandbox:
        """Rebuild a sandbox from its fields as read from JSON."""
        return cls(**{**data, "limits": ResourceLimits(**data["limits"])})

    @classmethod
    def from_settings(cls, settings: Any, **changed: Any) -> Sandbox:
        """Build the sandbox of these settings, apart from what is `changed`."""
        limits = {name: getattr(settings, f"sandbox_{name}") for name in ("memory", "cpu", "processes", "file_size")}
        fields = {
            "kind": settings.sandbox,
            "workspace": settings.workspace,
            "hosts": tuple(settings.sandbox_hosts),
            "env": tuple(settings.sandbox_env),
            "paths": tuple(settings.sandbox_paths),
            "limits": ResourceLimits(**limits),
            "unix_sockets": settings.sandbox_unix_sockets,
        }
        return cls(**{**fields, **changed})

    @classmethod
    def for_plan_mode(cls, settings: Any) -> Sandbox:
        """Build the same sandbox, but read-only and without hosts."""
        paths = tuple(path for path in settings.sandbox_paths if not path.endswith(WRITABLE))
        return cls.from_settings(settings, kind="read-only", hosts=(), paths=paths, fixed=True)


def full(path: str | Path) -> Path:
    """Expand `~` and resolve links, so that the right path is mounted."""
    return Path(os.path.realpath(os.path.expanduser(path)))


# -- variables -----------------------------------------------------------------------------------------------------

# Variables that name agents, buses, displays and proxies, which code inside can't reach.
LEADING_OUT = re.compile(
    r"(?i)^(?:ssh_.*|gpg_agent_info|dbus_.*|display|wayland_display|xauthority|xdg_runtime_dir|docker_host|kubeconfig"
    r"|(?:https?|ftp|all|no)_proxy|wsl_interop|vscode_.*|npm_config_.*auth.*)$"
)
# Stricter than the redaction of outputs: a missing variable is easy to notice, a leaked key is not.
SUSPICIOUS = re.compile(
    r"(?i)(?:^|_)(?:AUTH|PAT|DSN|COOKIE|PRIVATE|SIGNING)(?:_|$)|PASS$|_PWD$|PASSW|PASSPHRASE|SECRET|TOKEN(?!IZ)|APIKEY|CREDENTIAL"
)


def let_through(env: Mapping[str, str], listed: Iterable[str]) -> dict[str, str]:
    """Select the variables of `env` that sandboxed code gets: harmless ones, and all that are listed."""
    wanted = set(listed)
    return {name: value for name, value in env.items() if name in wanted or is_harmless(name, value)}


def is_harmless(name: str, value: str) -> bool:
    if LEADING_OUT.match(name) or is_secret_name(name) or SUSPICIOUS.search(name):
        return False
    return not replace_secrets(value, {})[1]


# Variables that decide which code a process loads when it starts.
CHOOSING = re.compile(
    r"LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|LOCPATH|PYTHON(?:PATH|HOME|USERBASE|PYCACHEPREFIX|PLATLIBDIR)"
)
LATER = "SANDBOX_LATER_"  # as in supervisor.py and enter.py


def for_first_process(env: Mapping[str, str]) -> dict[str, str]:
    """Build the environment for a process that sets up the sandbox from inside and must load nothing that code wrote.

    Variables that code may have set are passed under other names, for the processes that this one starts.
    """
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONUSERBASE")}
    later = {name for name, value in env.items() if CHOOSING.fullmatch(name) and own.get(name) != value}
    kept = {LATER + name if name in later else name: value for name, value in env.items()}
    kept |= {name: own[name] for name in later & own.keys()}
    return kept | {"PYTHONUSERBASE": os.devnull}  # user packages are in the home folder, which code can write to


def through_proxy(port: int) -> dict[str, str]:
    """Return variables that make programs use our proxy, except for servers inside the sandbox."""
    address, near = f"http://127.0.0.1:{port}", "localhost,127.0.0.1,::1"
    names = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), address)
    return {**names, "no_proxy": near, "NO_PROXY": near, "NODE_USE_ENV_PROXY": "1"}
