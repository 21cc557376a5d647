"""Whether a tool may be called, by a block's code or by the model: what rules, permissions and the user say."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import interpreter.policy as policies
from interpreter.computer_api.code_calls import MAX_SHOWN_LENGTH, ResolvedCall, ask_about, ask_before_sending, cut
from interpreter.messages import Chunk
from interpreter.questions import CallTool, Question, Step
from interpreter.session import ACTION, Action, ActionContext, Block, Permissions
from interpreter.tools.toolbox import call_tool, read_arguments, shown_call

if TYPE_CHECKING:
    from interpreter.policy import Policy, Verdict
    from interpreter.policy.approval import RuleEditor
    from interpreter.tools import Tool, Toolbox

PLANNING = "plan mode doesn't allow changes"
READ_ONLY = "the read-only sandbox doesn't allow changes"
# What reaches nothing but the model, to which everything that code prints goes anyway; and what works inside the
# sandbox itself, or only gives the user's skills to run there.
FREE_IN_SANDBOX = frozenset({"vision", "ai", "help", "files", "docs", "skills"})
# A yes to one program does not cover another.
ASKED_ANEW = frozenset({"computer.os.launch"})


def only_looks(permissions: Permissions) -> str:
    """Why nothing may be changed; empty if it may."""
    sandbox: Any = permissions.sandbox
    if permissions.mode == "plan":
        return PLANNING
    return READ_ONLY if sandbox is not None and not (sandbox.writes_workspace or sandbox.writable) else ""


def permit_code_call(
    use: ResolvedCall, rules: RuleEditor, language: str, permissions: Permissions
) -> Generator[Question, None, str]:
    """Return who allows a call of a block's code; PermissionError if it is not allowed."""
    action = ACTION.get()
    blocks = [each for each in action.ancestors() if isinstance(each, Block)] if action is not None else []
    why = only_looks(permissions) or (READ_ONLY if use.sandbox_is_read_only else "")
    if why and (use.acts or use.sends):
        raise PermissionError(f"{use.name} was not called: {why}.")
    how = "sends" if use.sends else "acts" if use.acts else "looks"
    with blocks[0].asking if blocks else nullcontext():  # of several threads, one asks
        rules.reload()
        verdict = _judge_call(rules.policy, language, use.name, str(use), how)
        if verdict.decision == "deny":
            raise PermissionError(f"The rules don't allow {use.name}: {verdict.reason}")
        if use.sends:
            return (yield from ask_before_sending(use))
        if verdict.decision == "allow":
            return "policy"
        reason = _reason_to_ask(use, verdict, blocks, permissions)
        if not reason:
            return "block"  # who let the block run
        same, hint = use.name, " A yes covers all such calls in this block."
        if use.name in ASKED_ANEW:
            same, hint = use.full_text, ""
        if not any(same in block.allowed_calls for block in blocks):
            allowed = yield from ask_about(
                use, f"{reason}\nLet the code use {cut(use.full_text, MAX_SHOWN_LENGTH)}?{hint}"
            )
            if not allowed:
                raise PermissionError(_not_called(use.name, allowed))
            for block in blocks:
                block.allowed_calls.add(same)
    return "user"


def _reason_to_ask(use: ResolvedCall, verdict: Verdict, blocks: list[Block], permissions: Permissions) -> str:
    """Why the user's yes to the block is not enough; empty if it is."""
    # Approved, if it was seen in the text of the block that makes the call.
    is_approved = any(use.name in block.approved_calls for block in blocks)
    if verdict.by_rule and verdict.decision == "ask" and not is_approved:
        return verdict.reason
    is_free = use.tool in FREE_IN_SANDBOX | permissions.given_tools
    if use.machine:
        return f"The code runs on {use.machine}, and this call acts on this machine."
    if use.in_sandbox and (use.acts or not is_free):
        return "The code runs in a sandbox, and this call acts outside it."
    return ""


def permit_tool_call(
    tool: Tool, arguments: str, rules: RuleEditor, permissions: Permissions
) -> Generator[Question, None, str]:
    """Return why the model may not call a tool; empty if it may."""
    how, shown = "looks" if tool.policy == "reads" else tool.policy, shown_call(tool.name, arguments)
    rules.reload()
    verdict = _judge_call(rules.policy, "tool", tool.name, shown, how)
    asks = verdict.decision == "ask" if verdict.by_rule else tool.policy == "acts"
    if verdict.decision == "deny":
        return f"The rules don't allow {tool.name}: {verdict.reason}"
    if tool.policy != "reads" and (why := only_looks(permissions)):
        return f"{tool.name} was not called: {why}."
    if permissions.tools is not None and tool.name not in permissions.tools:
        return f"{tool.name} was not called: it is not one of the tools that this agent may use."
    if tool.policy == "sends" or (asks and (verdict.by_rule or permissions.mode != "auto")):
        reason = f"{verdict.reason}\n" if verdict.by_rule else ""
        text = f"{reason}The model wants to call {cut(shown, MAX_SHOWN_LENGTH)}. Allow it?"
        question = Question(CallTool(tool.name, text))
        yield question
        if not question.approved:
            return _not_called(tool.name, None if question.unattended else False)
    return ""


def _not_called(name: str, allowed: bool | None) -> str:
    """What the code or the model reads; `allowed` is None if there was no one to ask."""
    why = "it needs approval, and there was no one to ask" if allowed is None else "the user said no"
    return f"{name} was not called: {why}."


def _judge_call(policy: Policy, language: str, name: str, words: str, how: str) -> Verdict:
    effect = policies.Effect("computer", name, 1, how=how)
    step = policies.EffectStep(language, words, 1, (name,), (effect,), fixed=False)
    return policy.judge(language, words, policies.Effects(language, policy.workspace, (step,)))


class ToolCall(Action):
    """The model calls one of its tools by name. What speaks against it becomes the result, which the model reads."""

    kind = "tool"

    def __init__(self, tools: Toolbox, name: str, arguments: str) -> None:
        super().__init__()
        self._tools, self.name, self.arguments = tools, name, arguments
        self._tool = tools.get(name)
        self.covered = self._tool is not None and self._tool.policy != "reads"
        self._refusal = f"{name} was not called: it was added after this call. Call it again."  # until it is judged

    def describe(self) -> str:
        return f"tool {self.name} is running"

    @property
    def fields(self) -> dict[str, Any]:
        return {"tool": self.name}

    def judge(self, context: ActionContext) -> Iterator[Step]:
        tool = self._tool
        if tool is None or read_arguments(self.arguments) is None:
            return
        if context.approver is None:
            self._refusal = f"{self.name} was not called: nothing in this session can approve it."
        else:
            self._refusal = yield from context.approver.permit_tool_call(tool, self.arguments, context)

    def run(self, context: ActionContext) -> Generator[Chunk]:
        self.outcome = "done"
        for chunk in call_tool(self._tools, self.name, self.arguments, self._refusal):
            self.outcome = chunk.get("ended", self.outcome)
            yield chunk
