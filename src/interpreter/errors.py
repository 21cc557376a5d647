"""Every error that this package raises: what is wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence


class InterpreterError(Exception):
    """Base class of all errors that this package raises on purpose."""


class RuntimeStartError(InterpreterError):
    """A runtime could not be started."""

    def __init__(self, language: str, detail: str) -> None:
        super().__init__(
            f"The {language} session could not start: {detail.strip() or 'it exited without an error message'}"
        )


class SandboxUnavailableError(InterpreterError):
    """The requested sandbox is not available: why, and the command that would fix it."""


class LanguageNotFound(InterpreterError):
    """A block asks for a language that is not available."""


class BusyError(InterpreterError):
    """A turn or an action is still running."""


class NotRestorableError(InterpreterError):
    """A state of a runtime that cannot be restored, and why."""


class SettingError(InterpreterError):
    """A setting does not exist, or cannot take this value."""


class SettingTypeError(SettingError, TypeError):
    """A value of the wrong type for a setting."""


class SettingValueError(SettingError, ValueError):
    """A value of the right type that the setting does not allow."""


class UnknownSettingError(SettingError, AttributeError):
    """A name that is not a setting; the message suggests the closest one."""


class ProfileError(InterpreterError):
    """A profile cannot be found, read or used; the message names the file and, where it is known, the line."""


class LimitReachedError(InterpreterError):
    """The turn has reached one of its limits."""


class UsageError(InterpreterError):
    """A command line that cannot be understood."""


class MissingLeafError(InterpreterError):
    """A part that this installation lacks, or whose packages it lacks; the message says how to get it."""


class NotPermittedError(InterpreterError):
    """An actor may not do this; the message names the actor whose permissions decided."""


class UnknownMessageError(InterpreterError):
    """A message of a kind that can't be sent to a model."""


class ModelError(InterpreterError):
    """The model could not be reached, or its answer was unusable.

    `detail` is what the server itself said, `status` its HTTP status, `retry_after` the wait it asked for,
    `reason` a word or two for a line that has no room for more.
    """

    reason = "model error"
    retryable = False

    def __init__(
        self, message: str, *, detail: str = "", status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{message} The server says: {detail}" if detail else message)
        self.detail = detail
        self.status = status
        self.retry_after = retry_after


class ProviderNotFoundError(ModelError):
    """The model string names an unknown provider."""


class LiteLLMMissingError(ProviderNotFoundError):
    """The model needs LiteLLM, which is not installed."""


class MissingKeyError(ModelError):
    """The provider requires a key, and none is set."""


class NoModelError(ModelError):
    """No model is set, and none was found."""


class WrongKeyError(ModelError):
    """The provider refuses the key."""


class UnknownModelError(ModelError):
    """The server has no such model."""


class RequestRefusedError(ModelError):
    """The server rejects the request; `params` are the fields it objects to, if it named them."""

    params: frozenset[str] = frozenset()


class ReplyDeclinedError(ModelError):
    """The model, or the provider's content filter, declined to answer."""


class ContextTooLongError(ModelError):
    """The conversation does not fit into the model's context window: `window` tokens, if the server named a number."""

    window: int | None = None


class QuotaExceededError(ModelError):
    """The account has no credit left."""


class BudgetExceededError(ModelError):
    """The next request might cost more than the budget allows; `spent` is the usage so far."""

    def __init__(self, message: str, *, spent: object = None) -> None:
        super().__init__(message)
        self.spent = spent


class RateLimitedError(ModelError):
    """Too many requests for now."""

    reason = "rate limit"
    retryable = True


class ModelOverloadedError(ModelError):
    """The server returned an error."""

    reason = "server problem"
    retryable = True


class ModelUnreachableError(ModelError):
    """No connection to the server."""

    reason = "no connection"
    retryable = True


class ModelTimeoutError(ModelError):
    """The server accepted the request, but did not reply in time."""

    reason = "no answer"
    retryable = True


class BrokenStreamError(ModelError):
    """The reply ended in the middle; the part that arrived was yielded before."""

    reason = "connection lost"
    retryable = True


class ReplyCutError(ModelError):
    """The reply reached its limit in the middle of a block, so the block is incomplete."""


class ReplyTooLargeError(ModelError):
    """The reply, or a part of it, is larger than any model's, and was cut off."""


class RepeatingReplyError(ModelError):
    """The model repeated itself, and its reply was cut off."""


class StuckError(ModelError):
    """The same failure repeated, even after the model was asked to try something different."""


class NotAStreamError(ModelError):
    """The response did not come from a model server."""


class OfflineError(ModelError):
    """The model is on the internet, and `offline` allows only this machine and named servers."""


class EngineError(ModelError):
    """The built-in engine is missing, or cannot serve the model."""

    reason = "engine problem"


class WeightsMissingError(ModelError):
    """The built-in model has not been downloaded."""


class LocalServerError(ModelError):
    """A model server on this machine is missing, could not be started, or rejects the request."""


class DownloadError(InterpreterError):
    """A model could not be downloaded; `can_resume` if the part that arrived is kept."""

    can_resume = False


class ExportError(InterpreterError):
    """A conversation can't be exported in this format, or to this path."""


class ConversationNotFoundError(InterpreterError):
    """There is no saved conversation with that id."""


class ConversationInUseError(InterpreterError):
    """Another process has the conversation open."""


class ConversationFileError(InterpreterError):
    """A saved conversation can't be read."""


class NotPreviewableError(InterpreterError):
    """A block can't be previewed; the message says why."""

    named: Sequence[str] = ()
    """The findings of static analysis to show instead: paths, programs, hosts, and whether the block can be undone."""


class UndoError(InterpreterError):
    """There is nothing to undo, or the data that undo needs is missing."""


class ComputerError(InterpreterError):
    """A `computer` call failed: why, and what to do instead."""


class PolicyError(InterpreterError):
    """A policy file has a mistake: where, what, and what to do."""

    def __init__(self, file: str, line: int, what: str, advice: str) -> None:
        super().__init__(f"{file}{f':{line}' if line else ''}: {what}. {advice}")
        self.file, self.line = file, line


class RemoteError(InterpreterError):
    """Another machine can't be reached, or what ran there is gone."""


class RemoteInUseError(RemoteError):
    """Another process is connected to the runtimes that a session has on another machine."""
