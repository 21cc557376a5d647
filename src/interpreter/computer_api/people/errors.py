"""What can be wrong with mail, messages, calendars and contacts, in words that say what to do."""

from __future__ import annotations

from interpreter.errors import ComputerError


class NotConfiguredError(ComputerError):
    """Nobody has said where the user's mail, calendars or contacts are."""


class AccountError(ComputerError):
    """The setting of an account has a mistake."""


class ServerUnreachableError(ComputerError):
    """No connection to the server."""


class ServerTimeoutError(ServerUnreachableError):
    """The server kept silent for too long."""


class CertificateError(ComputerError):
    """The server cannot show that it is the one that is meant."""


class LoginRefusedError(ComputerError):
    """The server does not take the name and the password."""


class ServerRefusedError(ComputerError):
    """The server does not do what it was asked."""


class NotPermittedError(ComputerError):
    """The system does not let us; the words say where to allow it."""


class NotFoundError(ComputerError):
    """There is no such contact, event or calendar; the words name those that are close."""
