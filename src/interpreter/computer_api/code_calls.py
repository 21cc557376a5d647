"""Calls that code makes to the tools of the computer: find the method, judge the call, make it, report the result."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

from interpreter.computer_api.computer import CALL, Computer
from interpreter.computer_api.tool import (
    TOOLS,
    ComputerTool,
    Picture,
    names,
    signature,
)
from interpreter.console_text import visible
from interpreter.messages import Chunk
from interpreter.questions import CallTool, Question, Step
from interpreter.runtimes.calls import ComputerCall
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.python.driver.parcels import packed, packed_error, unpacked
from interpreter.session import ACTION, Action, ActionContext

MAX_RECORDED_LENGTH = 200  # characters of arguments in the record
MAX_SHOWN_LENGTH = 4000  # and in a question, where the user has to see what is sent


@dataclass(frozen=True)
class ResolvedCall:
    """What a call would do: its method, how that is marked, and the arguments."""

    name: str  # as code spells it: `computer.mouse.click`
    how: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    language: str = ""
    acts: bool = False
    sends: bool = False
    in_sandbox: bool = False  # the code that calls
    sandbox_is_read_only: bool = False
    machine: str = ""  # where the code runs, if not on this machine, whose tools it calls

    @property
    def tool(self) -> str:
        return self.name.split(".")[1]

    @property
    def given(self) -> dict[str, Any]:
        """The arguments by the names of the parameters; TypeError if they are not those of the method."""
        try:
            return dict(inspect.signature(self.function).bind(*self.args, **self.kwargs).arguments)
        except TypeError as error:
            right = f"{self.name}({signature(self.function, whole=True)})"
            raise TypeError(f"{self.name}: {error}. Usage: {right}") from None

    @property
    def full_text(self) -> str:
        """The call as code would write it."""
        named = [
            f"{visible(name if name.isidentifier() else repr(name))}={shown(value)}"
            for name, value in self.kwargs.items()
        ]
        told = [*map(shown, self.args), *named]
        if self.how == "call":
            return f"{self.name}({', '.join(told)})"
        return f"{self.name} = {''.join(told)}" if self.how == "set" else self.name

    def __str__(self) -> str:
        return cut(self.full_text, len(self.name) + MAX_RECORDED_LENGTH)


class CodeCall(Action):
    """A call that a block's code makes: a child action of the block, inside its hold.

    The permissions of the actor that runs the code decide whether it may be made.
    """

    kind = "call"

    def __init__(self, use: ResolvedCall, call: ComputerCall) -> None:
        super().__init__()
        self._use, self._call = use, call
        self.forward_question = call.forward_question
        self.by = ""  # who allowed it
        self.refusal: PermissionError | None = None

    def describe(self) -> str:
        return f"{self._use.name} is running"

    @property
    def fields(self) -> dict[str, Any]:
        return {"call": self._use.name}

    def judge(self, context: ActionContext) -> Iterator[Step]:
        try:
            if context.approver is not None:
                self.by = yield from context.approver.permit_code_call(self._use, context)
            else:
                self.by = (yield from ask_before_sending(self._use)) if self._use.sends else "block"
        except PermissionError as error:
            self.refusal, self.refused = error, True

    def run(self, context: ActionContext) -> Generator[Chunk]:
        with self._call.interrupt.may_strike():  # only the tool's own code is cut off in the middle
            self.result = self._use.function(*self._use.args, **self._use.kwargs)
        self.outcome = "done"
        yield from ()


def handle_call(computer: Computer, call: ComputerCall) -> Frame:
    """Make a call; its reply, with the result or the error."""
    try:
        if call.how == "names":
            return {"value": names(_owner(computer, call.path.split(".") if call.path else []))}
        value = perform_call(computer, call, unpacked(call.args, Picture), unpacked(call.kwargs, Picture))
        return {"value": {"$part": call.path} if isinstance(value, ComputerTool) else packed(value)}
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is raised where it was called
        return {"error": packed_error(error)}


def perform_call(computer: Computer, call: ComputerCall, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Judge the call and make it; either way, the block's record has it."""
    use = _resolve(computer, call, args, kwargs)
    block = call.action or ACTION.get()
    actor = block.actor if block is not None and block.actor is not None else computer.user
    began = time.monotonic()
    told: dict[str, Any] = {"call": use.name, "told": str(use), "acts": use.acts, "sends": use.sends}
    call.about = dict(told)
    action = CodeCall(use, call)
    token, inside = CALL.set(call), ACTION.set(block)
    try:
        value = computer.session.perform(action, actor).result()
        if action.refusal is not None:
            raise action.refusal
        return value
    except Exception as error:
        told |= {"error": cut(str(error), MAX_RECORDED_LENGTH), "kind": type(error).__name__}
        raise
    finally:
        ACTION.reset(inside)
        CALL.reset(token)
        told |= {"by": action.by} if action.by else {}
        if isinstance(tool := getattr(use.function, "__self__", None), ComputerTool):
            told["told"] = tool.without_secrets(told["told"])
        told |= {
            "outcome": {"done": "ok", "refused": "refused", "": "refused"}.get(action.outcome, "failed"),
            "seconds": round(time.monotonic() - began, 3),
            "pictures": [action.result.base64] if isinstance(action.result, Picture) else [],
        }
        call.tell({"event": "called", "call": told})


def _owner(computer: Computer, path: list[str]) -> Any:
    owner: Any = computer
    for place, name in enumerate(path):
        if name not in names(owner):
            raise missing(path[: place + 1], owner)
        owner = getattr(owner, name)
    return owner


def _resolve(computer: Computer, call: ComputerCall, args: list[Any], kwargs: dict[str, Any]) -> ResolvedCall:
    *path, name = call.path.split(".")
    owner = _owner(computer, path)
    kind = names(owner).get(name)
    if kind is None:
        raise missing([*path, name], owner)
    if call.machine and path[:1] and path[0] in ("files", "docs", "vision", "skills"):
        raise PermissionError(
            f"computer.{path[0]} works with files of the user's own machine, and this code runs on {call.machine}. "
            f"Open the file with code there."
        )
    box = call.containment
    about: dict[str, Any] = {
        "in_sandbox": box is not None,
        "sandbox_is_read_only": box is not None and box.only_reads,
        "machine": call.machine,
    }
    function: Callable[..., Any]
    if call.how == "call" and kind == "method":
        function = getattr(owner, name)
        about |= {mark: bool(getattr(function, f"__{mark}__", False)) for mark in ("acts", "sends")}
    elif call.how == "set" and kind == "value" and len(args) == 1:
        function, kwargs = lambda value: setattr(owner, name, value), {}
    elif call.how == "get":
        function, args, kwargs = lambda: getattr(owner, name), [], {}
    else:
        raise TypeError(f"computer.{call.path} can't be used like that.")
    use = ResolvedCall(f"computer.{call.path}", call.how, function, tuple(args), kwargs, call.language, **about)
    if call.how == "call":
        _ = use.given  # a call with wrong arguments fails before anyone is asked
    return use


def missing(path: list[str], owner: Any) -> AttributeError:
    """The error for a name that does not exist, with the closest names, or all of them."""
    before, there = ".".join(["computer", *path[:-1]]), list(names(owner))
    close = get_close_matches(path[-1], there, 3, 0.8) or get_close_matches(path[-1], there, 3, 0.5)
    meant = " or ".join(f"{before}.{name}" for name in close)
    advice = f"Did you mean {meant}?" if close else f"Available: {', '.join(there)}."
    return AttributeError(f"There is no {before}.{path[-1]}. {advice}")


def ask_about(use: ResolvedCall, text: str) -> Generator[Question, None, bool | None]:
    """Ask whether code may make a call; None if no one could be asked."""
    if use.machine:
        text = f"Code on {use.machine} is calling a tool on this machine. {text}"
    question = Question(CallTool(use.name, text))
    yield question
    return None if question.unattended else question.approved


def ask_before_sending(use: ResolvedCall) -> Generator[Question, None, str]:
    """Show the user what would be sent; PermissionError unless they allow it.

    If nothing can be sent because no account is set, they are not asked.
    """
    sender = getattr(use.function, "__self__", None)
    if isinstance(sender, ComputerTool):
        sender.check_sending()
    parts = [f"  {name}: {cut(shown(value), MAX_SHOWN_LENGTH)}" for name, value in use.given.items()]
    text = "\n".join([f"The code wants to send something with {use.name}:", *parts, "Send it?"])
    allowed = yield from ask_about(use, text)
    if allowed is None:
        raise PermissionError(f"{use.name} sent nothing: sending needs approval, and there was no one to ask.")
    if not allowed:
        raise PermissionError(f"{use.name} sent nothing: the user said no.")
    return "user"


def shown(value: Any) -> str:
    """An argument as text, with nothing hidden in it and no control characters."""
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return f"<Picture {value.width} x {value.height}>" if isinstance(value, Picture) else visible(repr(value))


def cut(text: str, longest: int) -> str:
    """Its beginning, and how much more there is."""
    return text if len(text) <= longest else f"{text[:longest]}… and {len(text) - longest:,} more characters"


class ComputerProxy:
    """What code in this process finds as `computer`, or as one of its tools: calls of tools go through the session.

    All else is the computer's own.
    """

    def __init__(self, computer: Computer, call: Callable[[str, str], Any], path: str, target: Any) -> None:
        self.__dict__.update(_computer=computer, _call=call, _path=path, _target=target)

    def _used(self, name: str, how: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call, read or set an attribute of the tool, with the values as they are."""
        path = f"{self._path}.{name}" if self._path else name
        return perform_call(self._computer, self._call(path, how), list(args), kwargs)

    def __getattr__(self, name: str) -> Any:
        kind = names(self._target).get(name)
        if kind is None and not self._path:
            return getattr(self._target, name)
        if name.startswith("_"):
            raise AttributeError(name)
        if kind == "method":
            return partial(self._used, name, "call")
        value = self._used(name, "get") if self._path else getattr(self._target, name)
        path = f"{self._path}.{name}" if self._path else name
        return ComputerProxy(self._computer, self._call, path, value) if isinstance(value, ComputerTool) else value

    def __setattr__(self, name: str, value: Any) -> None:
        if self._path:
            self._used(name, "set", value)
        else:
            setattr(self._target, name, value)

    def __dir__(self) -> list[str]:
        return sorted(names(self._target) if self._path else {*dir(self._target), *TOOLS})

    def __repr__(self) -> str:
        return f"computer.{self._path}" if self._path else "computer"
