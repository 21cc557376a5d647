"""Which variables a sandboxed session gets: none that look like keys, none that lead out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from interpreter.llm.secrets import is_secret_name, redacted

# They name agents, buses, displays and proxies that are out of reach in there.
LEADING_OUT = re.compile(
    r"(?i)^(?:ssh_.*|gpg_agent_info|dbus_.*|display|wayland_display|xauthority|xdg_runtime_dir|docker_host|kubeconfig"
    r"|(?:https?|ftp|all|no)_proxy|wsl_interop|vscode_.*|npm_config_.*auth.*)$"
)
# More than what is taken out of outputs: a variable too few is told in one line, a key too many is not told at all.
SUSPICIOUS = re.compile(
    r"(?i)(?:^|_)(?:AUTH|PAT|DSN|COOKIE|PRIVATE|SIGNING)(?:_|$)|PASS$|_PWD$|PASSW|PASSPHRASE|SECRET|TOKEN(?!IZ)|APIKEY|CREDENTIAL"
)


def let_through(env: Mapping[str, str], listed: Iterable[str]) -> dict[str, str]:
    """The variables of `env` that go along; those that are listed go whatever they look like."""
    wanted = set(listed)
    return {name: value for name, value in env.items() if name in wanted or is_harmless(name, value)}


def is_harmless(name: str, value: str) -> bool:
    if LEADING_OUT.match(name) or is_secret_name(name) or SUSPICIOUS.search(name):
        return False
    return not redacted(value, {})[1]


def through_proxy(port: int) -> dict[str, str]:
    """What makes programs ask our proxy, and talk to servers inside the sandbox without it."""
    address, near = f"http://127.0.0.1:{port}", "localhost,127.0.0.1,::1"
    names = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), address)
    return {**names, "no_proxy": near, "NO_PROXY": near, "NODE_USE_ENV_PROXY": "1"}
