"""Whether a tool may be called, by a block's code or by the model: what rules, permissions and the user say."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import interpreter.policy as policies
from interpreter.questions import Question
from interpreter.session import ACTION, Actor, Block, Permissions, ToolCall
from interpreter.session.actions import MAX_SHOWN_LENGTH, ask_about, ask_before_sending, cut
from interpreter.tools.toolbox import shown_call

if TYPE_CHECKING:
    from interpreter.policy import Policy, Verdict
    from interpreter.policy.rule_editor import RuleEditor

PLANNING = "plan mode doesn't allow changes"
READ_ONLY = "the read-only sandbox doesn't allow changes"
# What reaches nothing but the model, to which everything that code prints goes anyway; and what works inside the
# sandbox itself, or only gives the user's skills to run there.
FREE_IN_SANDBOX = frozenset({"vision", "ai", "help", "files", "docs", "skills"})
# A yes to one program does not cover another.
ASKED_ANEW = frozenset({"computer.os.launch"})


def approve_call(call: ToolCall, rules: RuleEditor, language: str, actor: Actor) -> Generator[Question, None, str]:
    """Return who allows a call; PermissionError if it is not allowed."""
    tool, origin, action, permissions = call.tool, call.origin, ACTION.get(), actor.permissions
    assert tool is not None
    blocks = [each for each in action.ancestors() if isinstance(each, Block)] if action is not None else []
    why = _only_looks(actor) or (READ_ONLY if origin is not None and origin.sandbox_is_read_only else "")
    if why and tool.policy != "reads":
        raise PermissionError(f"{call.name} was not called: {why}.")
    if permissions.tools is not None and call.name not in permissions.tools:
        raise PermissionError(
            f"{call.name} was not called: it is not one of the tools that {_decider(actor, call.name).id} may use."
        )
    how = "looks" if tool.policy == "reads" else tool.policy
    text = origin.text if origin is not None else shown_call(call.name, call.arguments)
    with blocks[0].asking if blocks and origin is not None else nullcontext():  # of several threads, one asks
        rules.reload()
        verdict = _judge_call(rules.policy, language, call.name, cut(text, len(call.name) + 200), how)
        if verdict.decision == "deny":
            raise PermissionError(f"The rules don't allow {call.name}: {verdict.reason}")
        if tool.policy == "sends" and origin is not None:
            return (yield from ask_before_sending(call))
        if verdict.decision == "allow" and tool.policy != "sends":
            return "policy"
        if origin is not None and origin.in_block:
            return (yield from _permit_in_block(call, verdict, blocks, permissions))
        asks = verdict.decision == "ask" if verdict.by_rule else tool.policy == "acts"
        if asks and not verdict.by_rule and call.name in rules.allowed_tools:
            return "user"
        if tool.policy != "sends" and not (asks and (verdict.by_rule or permissions.mode != "auto")):
            return "mode"
        reason = f"{verdict.reason}\n" if verdict.by_rule else ""
        caller = "The model" if origin is None else "The code"
        effects = "".join(f"{effect}\n" for effect in call.effects)
        shown = effects or f"{caller} wants to call {cut(text, MAX_SHOWN_LENGTH)}. "
        note = f"{tool.note} " if tool.note else ""
        allowed = yield from ask_about(
            call,
            f"{reason}{shown}{note}{tool.question or ('Allow it?' if not effects else f'Allow {call.name}?')}",
            None if tool.policy == "sends" or verdict.by_rule else rules.allowed_tools,
        )
        if not allowed:
            raise PermissionError(_not_called(call.name, allowed))
    return "user"


def _permit_in_block(
    call: ToolCall, verdict: Verdict, blocks: list[Block], permissions: Permissions
) -> Generator[Question, None, str]:
    """Permit a call of a part of the computer, which a yes to its block covers unless something speaks against it."""
    origin = call.origin
    assert origin is not None
    reason = _reason_to_ask(call, verdict, blocks, permissions)
    if not reason:
        return "block"  # who let the block run
    same, hint = call.name, " A yes covers all such calls in this block."
    if call.name in ASKED_ANEW:
        same, hint = origin.text, ""
    if not any(same in block.allowed_calls for block in blocks):
        allowed = yield from ask_about(call, f"{reason}\nLet the code use {cut(origin.text, MAX_SHOWN_LENGTH)}?{hint}")
        if not allowed:
            raise PermissionError(_not_called(call.name, allowed))
        for block in blocks:
            block.allowed_calls.add(same)
    return "user"


def _only_looks(actor: Actor) -> str:
    """Return the reason that the actor may not change anything, naming whose permissions; empty if it may."""
    for each in actor.chain():
        permissions = each.own_permissions
        sandbox: Any = permissions.sandbox
        why = PLANNING if permissions.mode == "plan" else ""
        if not why and sandbox is not None and not (sandbox.writes_workspace or sandbox.writable):
            why = READ_ONLY
        if why:
            return why if each.has_permissions_of(actor) else f"{why} (permissions of {each.id})"
    return ""


def _decider(actor: Actor, tool: str) -> Actor:
    """Find the actor whose permissions exclude a tool."""
    lists = ((each, each.own_permissions.tools) for each in actor.chain())
    return next((each for each, tools in lists if tools is not None and tool not in tools), actor)


def _reason_to_ask(call: ToolCall, verdict: Verdict, blocks: list[Block], permissions: Permissions) -> str:
    """Return the reason that the user's yes to the block does not cover this call; empty if it does."""
    origin, tool = call.origin, call.tool
    assert origin is not None and tool is not None
    # Approved, if it was seen in the text of the block that makes the call.
    is_approved = any(call.name in block.approved_calls for block in blocks)
    if verdict.by_rule and verdict.decision == "ask" and not is_approved:
        return verdict.reason
    is_free = call.name.split(".")[1] in FREE_IN_SANDBOX | permissions.given_tools
    if origin.machine:
        return f"The code runs on {origin.machine}, and this call acts on this machine."
    if origin.in_sandbox and (tool.policy == "acts" or not is_free):
        return "The code runs in a sandbox, and this call acts outside it."
    return ""


def _not_called(name: str, allowed: bool | None) -> str:
    """Explain to the code or the model why a tool was not called; `allowed` is None if there was no one to ask."""
    why = "it needs approval, and there was no one to ask" if allowed is None else "the user said no"
    return f"{name} was not called: {why}."


def _judge_call(policy: Policy, language: str, name: str, words: str, how: str) -> Verdict:
    effect = policies.Effect("computer", name, 1, how=how)
    step = policies.EffectStep(language, words, 1, (name,), (effect,), fixed=False)
    return policy.judge(language, words, policies.Effects(language, policy.workspace, (step,)))
