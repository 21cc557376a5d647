"""Names that only annotations use: importing `typing` would take longer than all the rest of the driver."""

__all__ = [  # besides those defined here
    "Any",
    "Callable",
    "Collection",
    "ContextManager",
    "Coroutine",
    "Iterable",
    "Iterator",
    "Match",
    "Protocol",
    "Sequence",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import (
        Any,
        Callable,
        Collection,
        ContextManager,
        Coroutine,
        Iterable,
        Iterator,
        Match,
        Protocol,
        Sequence,
        TypeVar,
    )

    Function = TypeVar("Function", bound=Callable[..., Any])

    Frame = dict[str, Any]
    CallHost = Callable[[Frame], Any]  # `Report.call`
    AskUser = Callable[..., str | None]
    # the supervisor's Python, its file, its first environment and folder, and the kind of worker
    Origin = tuple[str, str, dict[str, str], str, list[str]]
    Woken = tuple[list[int], list[str], int]  # what `SnapshotTaker.take` returns in a snapshot that resumes
else:
    Any = Callable = Collection = ContextManager = Coroutine = Iterable = Iterator = Match = Sequence = None
    Frame = CallHost = AskUser = Function = Origin = Woken = None
    Protocol = object
