"""Questions over the network: how a client sees them, and answers that are bound to what it was shown.

A yes to code names the digest of that code. It can also name the dry run whose changes it applies, or the rule that it
saves; both are what the client was shown last about this code.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from interpreter.frontends.server.gate import LOCAL, Refused, User
from interpreter.frontends.server.sessions import LiveSession
from interpreter.messages import fold
from interpreter.questions import APPROVE, EDIT, REFUSE, Answer, CallTool, Question, RunBlock
from interpreter.session.events import without_secrets

if TYPE_CHECKING:
    from interpreter.policy import Rule
    from interpreter.policy.rule_editor import RuleEditor

MAX_OUTPUT_LENGTH = 10_000_000  # characters
_MAX_DIFF_LENGTH = 400_000  # characters of the differences of one file
_SHOWN = ("effects", "undo", "reason", "findings", "widening", "diff")


def digest_of(content: Any) -> str:
    """Return the digest of what was shown, which an approval names."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr).encode("utf-8", "backslashreplace").decode()


def clean(live: LiveSession, value: Any) -> Any:
    """Return the value as JSON has it, without secrets."""
    return json.loads(dumped(without_secrets(value, live.interpreter.session.clean)))


def open_questions(live: LiveSession, user: User) -> list[dict[str, Any]]:
    """List the questions that wait. `offers` says what else a client can do with a block: `preview`, `always`."""
    found = []
    for question in live.interpreter.session.questions.open:
        chunk: dict[str, Any] = {**question.chunk}
        data: dict[str, Any] = {"id": question.id, "kind": question.kind, "choices": list(question.choices)}
        data |= {"content": chunk.get("content"), **{name: chunk[name] for name in _SHOWN if name in chunk}}
        offers, block = [], question.subject
        if isinstance(block, RunBlock) and not block.wants:
            offers += ["preview"] if live.interpreter.can_dry_run(block.language) else []
            offers += ["always"] if user.name == LOCAL else []
        offers += ["session"] if isinstance(block, CallTool) and block.for_session else []
        found.append({**clean(live, data), "offers": offers, "digest": digest_of(chunk.get("content"))})
    return found


def answer_to(live: LiveSession | None, name: str, body: dict[str, Any], user: User) -> None:
    """Answer a question. A yes to code or to a call names the digest of what was shown."""
    live, question = _waiting(live, name)
    if body["choice"] not in (*question.choices, REFUSE):
        raise Refused(400, "choice", f"This question takes {', '.join(question.choices)}.")
    trial = None
    if question.kind in ("block", "call") and body["choice"] not in (REFUSE, EDIT):
        _check_digest(question, body.get("digest"))
    if "preview" in body or "rule" in body:
        _block_of(question)
        if body["choice"] != APPROVE:
            raise Refused(400, "choice", "Only an approval can apply a dry run or save a rule.")
        if "preview" in body:
            trial = next((each for each in question.dry_runs if each.id == body["preview"] and each.can_apply), None)
            if trial is None:
                raise Refused(409, "preview", "This dry run can't be applied any more. Do it again.")
        if "rule" in body:
            editor, rules = _rules_for(live, question, user)
            named = [rule for rule, text in rules if body["rule"] == digest_of(text)]
            if not named:
                raise Refused(409, "digest", "The digest is not that of the rule for this code. Read the rule again.")
    by, scope = f"client:{user.name}", body.get("scope", "")
    answer = Answer(body["choice"], body.get("text"), by, scope, preview=trial)
    if not live.interpreter.session.answer(name, answer, by=live.actor(user)):
        raise Refused(409, "question", "This question was answered before.")
    if "rule" in body:
        editor.save(named[0])


def _waiting(live: LiveSession | None, name: str) -> tuple[LiveSession, Question]:
    question = live.interpreter.session.questions.find(name) if live is not None else None
    if live is None or question is None:
        raise Refused(404, "question", "This question is not open. It was answered, or withdrawn.")
    return live, question


def _check_digest(question: Question, digest: str | None) -> None:
    if digest != digest_of(question.chunk.get("content")):
        raise Refused(409, "digest", "The digest is not that of what waits for approval. Read the question again.")


def _block_of(question: Question) -> RunBlock:
    if not isinstance(question.subject, RunBlock) or question.subject.wants:
        raise Refused(400, "question", "This is only for code that waits for approval.")
    return question.subject


# -- dry runs ------------------------------------------------------------------------------------------------------


def preview(live: LiveSession | None, name: str, digest: str, user: User) -> dict[str, Any]:
    """Do a dry run of the block that waits; what it printed and what it would change."""
    live, question = _waiting(live, name)
    _check_digest(question, digest)
    block = _block_of(question)
    made = live.interpreter.dry_run(block.language, block.code, live.actor(user))
    try:
        made.run()
        diffs = made.data_diffs
        changes = [{**change.fields, "diff": cut_diff(diffs.get(change.path, ""))} for change in made.changes]
        fields = {
            "id": made.id,
            "ended": made.ended,
            "output": fold([{**chunk, "role": "computer"} for chunk in made.chunks], MAX_OUTPUT_LENGTH),
            "changes": changes,
            "denied": [str(each) for each in made.denied],
            "read_only": made.read_only,
            "lost": made.lost,
            "can_apply": made.can_apply,
            "only_failed": made.only_failed,
        }
        shown: dict[str, Any] = clean(live, fields)
    except BaseException:
        made.discard()
        raise
    _discard_all(question)
    question.dry_runs.append(made)
    if not question.is_open:
        made.discard()
        raise Refused(409, "question", "This question was answered meanwhile.")
    return shown


def discard(live: LiveSession | None, name: str) -> None:
    """Discard the dry run of a block. The question about the block stays open."""
    question = _waiting(live, name)[1]
    _block_of(question)
    _discard_all(question)


def _discard_all(question: Question) -> None:
    while question.dry_runs:
        question.dry_runs.pop().discard()


def cut_diff(diff: str) -> str:
    return (
        diff
        if len(diff) <= _MAX_DIFF_LENGTH
        else f"{diff[:_MAX_DIFF_LENGTH]}\n[… {len(diff) - _MAX_DIFF_LENGTH} characters more …]\n"
    )


# -- rules ---------------------------------------------------------------------------------------------------------


def proposed_rule(live: LiveSession | None, name: str, user: User) -> dict[str, Any]:
    """Return the rule that would always allow the waiting block, as a sentence and as YAML; `wider`: a wider one."""
    live, question = _waiting(live, name)
    _, rules = _rules_for(live, question, user)
    first, *wider = [{"sentence": rule.sentence, "rule": text, "digest": digest_of(text)} for rule, text in rules]
    return clean(live, {**first, "wider": wider[0] if wider else None})  # type: ignore[no-any-return]


def _rules_for(live: LiveSession, question: Question, user: User) -> tuple[RuleEditor, list[tuple[Rule, str]]]:
    from interpreter.policy.policy_file import rule_text

    if user.name != LOCAL:  # the rules are those of the account that runs the server, and count for all its users
        raise Refused(403, "rule", "Only the user who started the server can save rules.")
    rules = live.interpreter.approver.rules
    return rules, [(rule, rule_text(rule)) for rule in rules.proposed(_block_of(question).details)]
