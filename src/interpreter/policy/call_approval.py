"""Whether a tool may be called, by a block's code or by the model: what rules, mode and user say."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import interpreter.policy as policies
from interpreter.computer_api.code_calls import MAX_SHOWN_LENGTH, ResolvedCall, ask_about, ask_before_sending, cut
from interpreter.messages import Chunk
from interpreter.policy.approval import ApprovalContext, mode_of
from interpreter.questions import CallTool, Question, Step
from interpreter.session import ACTION, Action, Block
from interpreter.tools.toolbox import call_tool, read_arguments, shown_call

if TYPE_CHECKING:
    from interpreter.policy import Policy, Verdict
    from interpreter.tools import Toolbox

PLANNING = "plan mode doesn't allow changes"
READ_ONLY = "the read-only sandbox doesn't allow changes"
# What reaches nothing but the model, to which everything that code prints goes anyway; and what works inside the
# sandbox itself, or only gives the user's skills to run there.
FREE_IN_SANDBOX = frozenset({"vision", "ai", "help", "files", "docs", "skills"})
# A yes to one program does not cover another.
ASKED_ANEW = frozenset({"computer.os.launch"})


class CallContext(ApprovalContext, Protocol):
    """What the approval of calls uses of an interpreter besides."""

    os: bool
    tools: Toolbox


class CallApproval:
    """Approves the calls of one block."""

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._allowed: set[str] = set()  # by the user, for as long as the block runs
        self._asking = threading.Lock()

    def permit(self, use: ResolvedCall) -> Generator[Question, None, str]:
        """Who allows it; PermissionError if it is not allowed."""
        only_looks = PLANNING if mode_of(self._context) == "plan" else READ_ONLY if use.sandbox_is_read_only else ""
        if only_looks and (use.acts or use.sends):
            raise PermissionError(f"{use.name} was not called: {only_looks}.")
        how = "sends" if use.sends else "acts" if use.acts else "looks"
        language = self._context.runtimes.registry.canonical(use.language)
        verdict = _judge_call(self._policy, language, use.name, str(use), how)
        if verdict.decision == "deny":
            raise PermissionError(f"The rules don't allow {use.name}: {verdict.reason}")
        if use.sends:
            return (yield from ask_before_sending(use))
        if verdict.decision == "allow":
            return "policy"
        reason = self._reason_to_ask(use, verdict)
        if not reason:
            return "block"  # who let the block run
        same, hint = use.name, " A yes covers all such calls in this block."
        if use.name in ASKED_ANEW:
            same, hint = use.full_text, ""
        with self._asking:
            if same not in self._allowed:
                text = f"{reason}\nLet the code use {cut(use.full_text, MAX_SHOWN_LENGTH)}?{hint}"
                allowed = yield from ask_about(use, text)
                if not allowed:
                    raise PermissionError(_not_called(use.name, allowed))
                self._allowed.add(same)
        return "user"

    @cached_property
    def _policy(self) -> Policy:
        return policies.Policy.load(str(self._context.workspace), self._context.runtimes.registry)

    def _reason_to_ask(self, use: ResolvedCall, verdict: Verdict) -> str:
        """Why the user's yes to the block is not enough; empty if it is."""
        action = ACTION.get()
        blocks = [each for each in action.ancestors() if isinstance(each, Block)] if action is not None else []
        # Approved, if it was seen in the text of the block that makes the call.
        is_approved = any(use.name in block.approved_calls for block in blocks)
        if verdict.by_rule and verdict.decision == "ask" and not is_approved:
            return verdict.reason
        # The screen may show what a sandbox hides. In OS mode it is what the user has given.
        is_free = use.tool in FREE_IN_SANDBOX or (use.tool in {"display", "view", "screenshot"} and self._context.os)
        if use.machine:
            return f"The code runs on {use.machine}, and this call acts on this machine."
        if use.in_sandbox and (use.acts or not is_free):
            return "The code runs in a sandbox, and this call acts outside it."
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

    def __init__(self, context: CallContext, name: str, arguments: str) -> None:
        super().__init__()
        self._context, self.name, self.arguments = context, name, arguments
        self._tool = context.tools.get(name)
        self.covered = self._tool is not None and self._tool.policy != "reads"
        self._refusal = f"{name} was not called: it was added after this call. Call it again."  # until it is judged

    def describe(self) -> str:
        return f"tool {self.name} is running"

    @property
    def fields(self) -> dict[str, Any]:
        return {"tool": self.name}

    def judge(self) -> Iterator[Step]:
        tool, given = self._tool, read_arguments(self.arguments)
        if tool is None or given is None:
            return
        how, shown = "looks" if tool.policy == "reads" else tool.policy, shown_call(tool.name, self.arguments)
        verdict = _judge_call(policies.Policy.load(self._context.workspace), "tool", tool.name, shown, how)
        asks = verdict.decision == "ask" if verdict.by_rule else tool.policy == "acts"
        mode = mode_of(self._context)
        self._refusal = ""
        if verdict.decision == "deny":
            self._refusal = f"The rules don't allow {tool.name}: {verdict.reason}"
        elif mode == "plan" and tool.policy != "reads":
            self._refusal = f"{tool.name} was not called: {PLANNING}."
        elif tool.policy == "sends" or (asks and (verdict.by_rule or mode != "auto")):
            reason = f"{verdict.reason}\n" if verdict.by_rule else ""
            words = f"{reason}The model wants to call {cut(shown, MAX_SHOWN_LENGTH)}. Allow it?"
            question = Question(CallTool(tool.name, words))
            yield question
            if not question.approved:
                self._refusal = _not_called(tool.name, None if question.unattended else False)

    def run(self) -> Generator[Chunk]:
        self.outcome = "done"
        for chunk in call_tool(self._context.tools, self.name, self.arguments, self._refusal):
            self.outcome = chunk.get("ended", self.outcome)
            yield chunk
