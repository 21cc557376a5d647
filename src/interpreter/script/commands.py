"""`%script`."""

from __future__ import annotations

from interpreter.api import OpenInterpreter
from interpreter.frontends.terminal import sessions
from interpreter.frontends.terminal.approval import yes_or_no
from interpreter.frontends.terminal.chat import follow
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.script.verify import VerifyReport, verify

_VERIFIED_NAMES = 10


def export_script(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    exported, flags = sessions.export("script", terminal, interpreter, argument, ("--all", "--verify"))
    if exported is None or "--verify" not in flags:
        return
    report = follow(
        interpreter,
        verify(interpreter, exported),
        lambda asked: yes_or_no(terminal, asked.chunk["content"]["content"]),
    )
    if report is None:
        terminal.display.line("Not verified.")
    else:
        terminal.display.line("\n".join(_report_lines(report)), "" if report.reproduced else "error")


def _report_lines(report: VerifyReport) -> list[str]:
    if not report.ran:
        ending = "did not finish in time" if report.exit_code is None else f"ended with exit code {report.exit_code}"
        return [f"Not verified: a fresh run {ending}.", report.output.strip()]
    if report.reproduced:
        lines = ["Verified: a fresh run produced identical results."]
    elif report.different or any(report.pictures):
        lines = ["Not verified: a fresh run produced different results."]
    else:
        lines = ["Partly verified: a fresh run worked, but not everything could be checked."]
    checked = {"the same": report.same, "different": report.different, "not checked": report.unknown}
    for what, names in checked.items():
        lines += [f"- {what}: {name}" for name in names[:_VERIFIED_NAMES]]
        if len(names) > _VERIFIED_NAMES:
            lines.append(f"- {what}: {len(names) - _VERIFIED_NAMES} more")
    lines += [f"- figure {number}: {problem or 'the same'}" for number, problem in enumerate(report.pictures, 1)]
    if report.needed_results:
        lines.append("- It needs files that the session created or changed.")
    if not (report.pictures or any(checked.values())):
        lines.append("- It produces no files or figures to compare.")
    return lines
