"""The user's accounts of mail, calendars and contacts: settings, passwords, TLS, and what can go wrong."""

from __future__ import annotations

import ipaddress
import os
import shlex
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interpreter.computer_api.computer import Computer
from interpreter.errors import ComputerError
from interpreter.host import processes

TIMEOUT = 30.0
PASSWORD_TIMEOUT = 120.0  # a command may ask the user to unlock something
COMMON = {
    "user": str,
    "password_variable": str,
    "password_command": (str, list),
    "certificate": str,
    "timeout": (int, float),
}
DAV_EXAMPLE = '{"url": "https://dav.example.org", "user": "me", "password_variable": "DAV_PASSWORD"}'
# By setting: its keys beside the common ones; for the error if it isn't set, a description and an example.
SETTINGS: dict[str, tuple[dict[str, Any], str, str]] = {
    "mail_account": (
        {"imap": str, "smtp": str, "from": str, "token_variable": str, "token_command": (str, list)},
        "the user's mail is",
        '{"imap": "imap.example.org", "smtp": "smtp.example.org", "user": "me@example.org", '
        '"password_variable": "MAIL_PASSWORD"}',
    ),
    "calendar_account": (
        {"url": str, "path": str, "calendar": str},
        "the user's calendars are",
        f'{DAV_EXAMPLE} or {{"path": "~/calendars"}}',
    ),
    "contacts_account": (
        {"url": str, "path": str},
        "the user's contacts are",
        f'{DAV_EXAMPLE} or {{"path": "~/contacts.vcf"}}',
    ),
}
NO_PASSWORD = (
    "{setting} must not contain a password. Put it in an environment variable and name that: "
    '"password_variable": "MAIL_PASSWORD", or name a command that prints it: "password_command": "pass show mail".'
)


class NotConfiguredError(ComputerError):
    """No setting says where the user's mail, calendars or contacts are."""


class AccountError(ComputerError):
    """The setting of an account has a mistake."""


class ServerUnreachableError(ComputerError):
    """No connection to the server."""


class ServerTimeoutError(ServerUnreachableError):
    """The server did not answer in time."""


class CertificateError(ComputerError):
    """The server's certificate cannot be trusted."""


class LoginRefusedError(ComputerError):
    """The server does not accept the name and the password."""


class ServerRefusedError(ComputerError):
    """The server refused the request, or its answer makes no sense."""


class NotPermittedError(ComputerError):
    """The system denies access; the message says where to allow it."""


class NotFoundError(ComputerError):
    """There is no such contact, event or calendar; the message names close ones."""


@dataclass(frozen=True)
class Account:
    setting: str
    values: Mapping[str, Any]
    offline: bool = False

    @classmethod
    def of(cls, computer: Computer, setting: str) -> Account | None:
        """Read the account in this setting; None for macOS's own program."""
        values, (keys, what, example) = getattr(computer, setting), SETTINGS[setting]
        if not values and processes.which("osascript"):
            return None
        if not values:
            raise NotConfiguredError(
                f"Not set up yet: where {what}. The user can set it in a profile or in Python: "
                f"interpreter.computer.{setting} = {example} (docs/mail-and-calendar.md)."
            )
        name, known = f"computer.{setting}", {**COMMON, **keys}
        if "password" in values:
            raise AccountError(NO_PASSWORD.format(setting=name))
        for key, value in values.items():
            if key not in known:
                raise AccountError(f'{name} has no "{key}"; it takes {", ".join(sorted(known))}.')
            if not isinstance(value, known[key]) or isinstance(value, bool):
                raise AccountError(f'"{key}" in {name} cannot be {value!r:.60}.')
        return cls(name, values, computer.is_offline)

    def get(self, key: str) -> str:
        """Return a required value; AccountError if it is missing."""
        value = self.values.get(key)
        if not value:
            raise AccountError(f'{self.setting} needs "{key}".')
        return str(value)

    @property
    def timeout(self) -> float:
        return float(self.values.get("timeout") or TIMEOUT)

    def path(self, key: str) -> Path:
        return Path(os.path.expanduser(self.get(key)))

    @property
    def secret(self) -> str:
        """Return what the account logs in with: a token of OAuth, or a password."""
        return "token" if self.values.get("token_variable") or self.values.get("token_command") else "password"

    def check_login(self) -> None:
        """Check that there is a name and a password or token, without running a command for it yet."""
        self.get("user")
        if self.values.get(f"{self.secret}_variable") or not self.values.get(f"{self.secret}_command"):
            self.password()

    def password(self) -> str:
        """Read the password or token from the variable or the command that the settings name."""
        what = self.secret
        if name := self.values.get(f"{what}_variable"):
            if not os.environ.get(name):
                raise AccountError(f"{self.setting} reads its {what} from the variable {name}, which is not set.")
            return os.environ[name]
        given = self.values.get(f"{what}_command")
        if not given:
            raise AccountError(f'{self.setting} needs "password_variable" or "password_command".')
        command = shlex.split(given) if isinstance(given, str) else list(given)
        about = f"The command for the {what} in {self.setting}, {command[0] if command else '(nothing)'},"
        try:
            done = processes.run(command, timeout=PASSWORD_TIMEOUT)
        except TimeoutError:
            raise AccountError(f"{about} did not finish within {PASSWORD_TIMEOUT:.0f} seconds.") from None
        except (OSError, IndexError, ValueError) as error:
            raise AccountError(f"{about} can't be run: {error}") from None
        password = done.text.split("\n", 1)[0].rstrip("\r")
        if done.returncode or not password:
            complaint = done.stderr.decode("utf-8", "replace").strip()[-300:] or "it printed nothing"
            raise AccountError(f"{about} exited with code {done.returncode}: {complaint}")
        return password

    def tls(self) -> ssl.SSLContext:
        """Return a context that always checks certificates; `certificate` names one to trust, not the system's."""
        if not self.values.get("certificate"):
            return ssl.create_default_context()
        file = self.path("certificate")
        try:
            return ssl.create_default_context(cafile=str(file))
        except OSError as error:
            raise AccountError(f'"certificate" in {self.setting} cannot be used: {file}: {error}') from None

    def allow(self, host: str) -> None:
        """Refuse a host beyond this machine while `offline` is set."""
        if self.offline and not is_loopback(host):
            raise ServerUnreachableError(f"Can't contact {host} while `offline` is set: it is not on this machine.")


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@contextmanager
def reaching(server: str, timeout: float) -> Iterator[None]:
    """Turn errors of the connection into ours; what the server itself refuses is not handled here."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise CertificateError(
            f"The certificate of {server} cannot be trusted: {error.verify_message or error.reason}. If it is your own "
            'server, give its certificate file: "certificate": "/path/to/it.pem".'
        ) from None
    except ssl.SSLError as error:
        raise ServerUnreachableError(
            f"{server} does not use TLS as expected ({error.reason or error}). Check the port."
        ) from None
    except TimeoutError:
        raise ServerTimeoutError(f"{server} did not answer within {timeout:g} seconds.") from None
    except OSError as error:
        raise ServerUnreachableError(
            f"Can't reach {server}: {error.strerror or error}. Check the host and port, and that it is running."
        ) from None
