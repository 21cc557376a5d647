"""Calls that code makes to the tools of the computer: find the method, judge the call, make it, report the result."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

from interpreter.computer_api.computer import CALL, Computer
from interpreter.computer_api.tool import ComputerTool, Picture, names, present, signature
from interpreter.console_text import visible
from interpreter.errors import ComputerError
from interpreter.leaves import code_names, code_of
from interpreter.runtimes.calls import HARMLESS, ComputerCall
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.python.driver.computer import NAME, REGISTERED, HostName, Part
from interpreter.runtimes.python.driver.parcels import packed_error, packed_result, unpacked
from interpreter.session import ACTION, Actor, Block, ToolCall
from interpreter.session.actions import CallOrigin, cut, shown, shown_name
from interpreter.tools import Tool, Toolbox
from interpreter.tools.tool import Policy, kind_in
from interpreter.tools.toolbox import value_of

MAX_RECORDED_LENGTH = 200  # characters of arguments in the record


def handle_call(computer: Computer, call: ComputerCall) -> Frame:
    """Make a call and return its reply, with the result or the error."""
    try:
        if call.how in HARMLESS:
            return {"value": look_up(computer, call)}
        value = perform_call(computer, call, unpacked(call.args, Picture), unpacked(call.kwargs, Picture))
        return {"value": {"$part": call.path} if isinstance(value, ComputerTool) else packed_result(value)}
    except Exception as error:  # noqa: BLE001 - any exception of a tool is raised where it was called
        return {"error": packed_error(error)}


def look_up(computer: Computer, call: ComputerCall) -> Any:
    """Return the names below a path, what describes a registered tool, or code of ours."""
    first, *below = call.path.split(".") if call.path else [""]
    if call.how == "code":
        return code_of(call.path)
    if call.how == "describe":
        return _describe(_toolbox(computer, call).find_in_code(".".join(below)))
    if first == REGISTERED:
        return _toolbox(computer, call).names_in_code("".join(f"{name}." for name in below))
    return names(_owner(computer, [first, *below] if first else []))


def perform_call(computer: Computer, call: ComputerCall, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Judge the call and make it; either way, the block's record has it."""
    action = _resolve(computer, call, args, kwargs)
    tool, origin = action.tool, action.origin
    assert tool is not None and origin is not None
    block, actor = call.action or ACTION.get(), _actor(computer, call)
    action.forward_question = origin.forward_question
    began = time.monotonic()
    text = cut(origin.text, len(action.name) + MAX_RECORDED_LENGTH)
    marks = {"acts": tool.policy == "acts", "sends": tool.policy == "sends"}
    record: dict[str, Any] = {"call": action.name, "told": text, **marks}
    call.about = dict(record)
    token, inside = CALL.set(call), ACTION.set(block)
    is_alone = isinstance(block, Block) and call.path.startswith(f"{REGISTERED}.") and not tool.is_parallel
    turn = block.calling if is_alone and isinstance(block, Block) else nullcontext()
    try:
        with turn:
            value = computer.session.perform(action, actor).result()
        if action.refused:
            raise PermissionError(action.problem)
        return value_of(value)
    except Exception as error:
        record |= {"error": cut(str(error), MAX_RECORDED_LENGTH), "kind": type(error).__name__}
        raise
    finally:
        ACTION.reset(inside)
        CALL.reset(token)
        record |= {"by": action.by} if action.by else {}
        if isinstance(part := getattr(tool.handler, "part", None), ComputerTool):
            record["told"] = part.without_secrets(record["told"])
        record |= {
            "outcome": {"done": "ok", "refused": "refused", "": "refused"}.get(action.outcome, "failed"),
            "seconds": round(time.monotonic() - began, 3),
            "pictures": [action.result.base64] if isinstance(action.result, Picture) else [],
        }
        call.tell({"event": "called", "call": record})


def _actor(computer: Computer, call: ComputerCall) -> Actor:
    """Find the actor whose code makes a call."""
    block = call.action or ACTION.get()
    return block.actor if block is not None and block.actor is not None else computer.user


def _owner(computer: Computer, path: list[str]) -> Any:
    owner: Any = computer
    for index, name in enumerate(path):
        if name not in names(owner):
            raise missing(path[: index + 1], owner)
        owner = getattr(owner, name)
    return owner


def _toolbox(computer: Computer, call: ComputerCall) -> Toolbox:
    """Return what code finds as `tools`."""
    participant = computer.participant(_actor(computer, call))
    return participant.tools() if participant is not None else Toolbox()


def _describe(tool: Tool | None) -> dict[str, Any]:
    """Describe a registered tool for `help` and for completions: its parameters as (name, is required, kind)."""
    if tool is None:
        return {"parameters": [], "doc": ""}
    properties, required = tool.schema.get("properties") or {}, tool.schema.get("required") or ()
    lines = [f"{name}: {rule['description']}" for name, rule in properties.items() if rule.get("description")]
    doc = "\n".join([tool.description, *(["", "Parameters:"] if lines else []), *(f"  {line}" for line in lines)])
    parameters = [[name, name in required, kind_in(rule)] for name, rule in properties.items()]
    return {"parameters": sorted(parameters, key=lambda each: not each[1]), "doc": visible(doc)}


@dataclass(frozen=True)
class _MethodCall:
    """The handler of a part of the computer, bound to the values that code gave."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def part(self) -> Any:
        return getattr(self.function, "__self__", None)

    def __call__(self, arguments: dict[str, Any]) -> Any:
        return self.function(*self.args, **self.kwargs)


def _resolve(computer: Computer, call: ComputerCall, args: list[Any], kwargs: dict[str, Any]) -> ToolCall:
    *path, name = call.path.split(".")
    if [*path, name][0] == REGISTERED:
        tool, arguments = _registered(_toolbox(computer, call), call.path, args, kwargs)
        return ToolCall(tool, arguments, _origin(call, _text(call, f"{REGISTERED}.{tool.code_name}", args, kwargs)))
    if path[:1] and path[0] in code_names():
        participant = computer.participant(_actor(computer, call))
        code_tool = participant.code_tools().get(call.path) if participant is not None else None
        if code_tool is None:
            raise ComputerError(f"{call.path} needs an interpreter, and this computer has none.")
        scalars = {key: value for key, value in kwargs.items() if isinstance(value, str | int | float)}  # not the data
        return ToolCall(code_tool, kwargs, _origin(call, _text(call, call.path, args, scalars)))
    owner = _owner(computer, path)
    kind = names(owner).get(name)
    if kind is None:
        raise missing([*path, name], owner)
    if call.machine and path[:1] and path[0] in ("files", "docs", "vision", "skills"):
        raise PermissionError(
            f"computer.{path[0]} works with files of the user's own machine, and this code runs on {call.machine}. "
            f"Open the file with code there."
        )
    policy: Policy = "reads"
    function: Callable[..., Any]
    if call.how == "call" and kind == "method":
        function = getattr(owner, name)
        policy = (
            "sends"
            if getattr(function, "__sends__", False)
            else "acts"
            if getattr(function, "__acts__", False)
            else policy
        )
    elif call.how == "set" and kind == "value" and len(args) == 1:
        function, kwargs = lambda value: setattr(owner, name, value), {}
    elif call.how == "get":
        function, args, kwargs = lambda: getattr(owner, name), [], {}
    else:
        raise TypeError(f"computer.{call.path} can't be used like that.")
    full_name = f"computer.{call.path}"
    arguments = dict[str, Any]()
    if call.how == "call":
        try:
            form = inspect.signature(function)
            arguments = dict(form.bind(*args, **kwargs).arguments)
            for parameter in form.parameters.values():
                if parameter.kind is parameter.VAR_KEYWORD:
                    arguments |= arguments.pop(parameter.name, {})
        except TypeError as error:  # before anyone is asked
            raise TypeError(f"{full_name}: {error}. Usage: {full_name}({signature(function, whole=True)})") from None
    handler = _MethodCall(function, tuple(args), kwargs)
    check = handler.part.check_sending if isinstance(handler.part, ComputerTool) else lambda: None
    origin = _origin(call, _text(call, full_name, args, kwargs), in_block=True, check_sending=check)
    return ToolCall(Tool(full_name, "", {}, handler, policy), arguments, origin)


def _registered(toolbox: Toolbox, path: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[Tool, dict[str, Any]]:
    """Find a registered tool, and name the arguments that code gave by position."""
    tool = toolbox.find_in_code(path.partition(".")[2])
    if tool is None:
        above, _, name = path.rpartition(".")
        there = list(toolbox.names_in_code(f"{above}.".partition(".")[2]))
        close = get_close_matches(name, there, 3, 0.5) or there
        hint = f"Did you mean {' or '.join(f'{above}.{each}' for each in close)}?" if close else ""
        raise AttributeError(f"There is no {path}. {hint or 'No tools are registered.'}")
    parameters = list(tool.schema.get("properties") or {})
    if len(args) > len(parameters):
        raise TypeError(f"{path} takes at most {len(parameters)} arguments. Its form is {tool.signature()}.")
    return tool, {**dict(zip(parameters, args, strict=False)), **kwargs}


def _origin(call: ComputerCall, text: str, **more: Any) -> CallOrigin:
    box = call.containment
    return CallOrigin(
        call.language,
        text,
        call.forward_question,
        call.interrupt.may_strike,
        lambda line: call.tell({"event": "display", "data": {"text/plain": line}}),
        lambda end: setattr(call, "on_end", end),
        in_sandbox=box is not None,
        sandbox_is_read_only=box is not None and box.only_reads,
        machine=call.machine,
        **more,
    )


def _text(call: ComputerCall, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """Write the call as code would."""
    named = [f"{shown_name(each)}={shown(value)}" for each, value in kwargs.items()]
    values = [*map(shown, args), *named]
    if call.how == "call":
        return f"{name}({', '.join(values)})"
    return f"{name} = {''.join(values)}" if call.how == "set" else name


def missing(path: list[str], owner: Any) -> AttributeError:
    """Build the error for a name that does not exist, with the closest names, or all of them."""
    before, there = ".".join(["computer", *path[:-1]]), list(names(owner))
    close = get_close_matches(path[-1], there, 3, 0.8) or get_close_matches(path[-1], there, 3, 0.5)
    meant = " or ".join(f"{before}.{name}" for name in close)
    advice = f"Did you mean {meant}?" if close else f"Available: {', '.join(there)}."
    return AttributeError(f"There is no {before}.{path[-1]}. {advice}")


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
        return sorted(names(self._target) if self._path else {*dir(self._target), *present()})

    def __repr__(self) -> str:
        return f"computer.{self._path}" if self._path else "computer"


def in_this_process(computer: Computer, call: Callable[[str, str], Any], name: str) -> Any:
    """Return what code in this process finds as `computer`, as `tools`, or under a name that a leaf defines.

    `call(path, how)` makes each call. Values stay as they are.
    """

    def ask(frame: Frame) -> Any:
        made = call(frame["path"], frame["how"])
        if made.how in HARMLESS:
            return look_up(computer, made)
        return perform_call(computer, made, frame["args"], frame["kwargs"])

    if name == NAME:
        return ComputerProxy(computer, call, "", computer)
    return Part(ask, REGISTERED) if name == REGISTERED else HostName(ask, name)
