"""Which addresses the browser may go to: what `offline`, the sandbox and the workspace say."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from interpreter.computer_api.browser.errors import NotReachableError
from interpreter.computer_api.browser.frame import shown

if TYPE_CHECKING:
    from interpreter.runtimes.containment import Containment

NOWHERE = "http://127.0.0.1:9"  # the port where everything is thrown away, and where nobody listens
LOOPBACK = ("<-loopback>", "localhost", "*.localhost", "127.0.0.0/8", "[::1]")
PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


@dataclass(frozen=True)
class Reach:
    """What the settings allow at the moment; a browser that was started under another one is started again."""

    workspace: str
    offline: bool = False
    door: int = 0  # the port of the sandbox's proxy, if there is a sandbox
    containment: Containment | None = field(default=None, compare=False)

    @property
    def is_open(self) -> bool:
        return not self.offline and self.containment is None

    def check(self, url: str) -> None:
        """NotReachableError if the browser may not go there."""
        parts = urlsplit(url)
        if parts.scheme == "file":
            self._check_file(url)
        elif parts.scheme in ("http", "https"):
            if why := self.refusal(url):
                raise NotReachableError(why)
        elif url != "about:blank" and parts.scheme not in ("data", "blob"):
            raise NotReachableError(f"The browser goes to http, https and file addresses, not to {shown(url)}.")

    def refusal(self, url: str) -> str:
        """Why a host cannot be reached, or nothing."""
        host, port = host_and_port(url)
        if self.offline and not is_loopback(host):
            return f"{host} is not on this machine, and `offline` is on: only localhost can be reached."
        if self.containment is not None:
            return self.containment.refusal(host, port)
        return ""

    def check_attach(self, address: str) -> None:
        """NotReachableError if a browser that somebody else started may not be used."""
        host, _ = host_and_port(address)
        if not is_loopback(host):
            raise NotReachableError(f"{host} is not this machine; only a browser on it can be attached to.")
        if not self.is_open:
            raise NotReachableError(
                "A browser that was started by somebody else is held neither by `offline` nor by the sandbox, so it "
                "cannot be attached to. Without attaching, a browser of ours is used."
            )

    def _check_file(self, url: str) -> None:
        path = file_of(url)
        if not path.is_relative_to(os.path.realpath(self.workspace)):
            raise NotReachableError(
                f"{path} is not in the workspace ({self.workspace}), and the browser shows only files that are. "
                "Copy it there, or read it with code."
            )

    def arguments(self) -> list[str]:
        """What Chromium is started with, so that redirects and what pages load are held too."""
        if self.is_open:
            return []
        server = f"http://127.0.0.1:{self.door}" if self.door else NOWHERE
        # The sandbox has a network apart, so this machine's own servers are out of reach as well.
        past = LOOPBACK[:1] if self.door else LOOPBACK
        return [
            f"--proxy-server={server}",
            f"--proxy-bypass-list={';'.join(past)}",
            "--webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        ]


def host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError as error:
        raise NotReachableError(f"{shown(url)} is no address: {error}.") from error
    if not parts.hostname:
        raise NotReachableError(f"{shown(url)} names no host.")
    return parts.hostname, port or PORTS.get(parts.scheme, 443)


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def file_of(url: str) -> Path:
    """The file behind a file address, without links."""
    parts = urlsplit(url)
    path = url2pathname(parts.path) if os.name == "nt" else unquote(parts.path)
    if parts.netloc not in ("", "localhost") or "\0" in path:
        raise NotReachableError(f"{shown(url)} is no file of this machine.")
    return Path(os.path.realpath(path))


def completed(url: str) -> str:
    """An address as people type it: `example.com`, `localhost:8000/page`."""
    url = url.strip()
    head = url.split("/", 1)[0]
    if "://" in url or url.startswith(("about:", "data:", "blob:", "javascript:", "file:", "chrome:", "view-source:")):
        return url
    near = is_loopback(head.rsplit(":", 1)[0].strip("[]")) or is_loopback(head.strip("[]"))
    return f"{'http' if near else 'https'}://{url}"
