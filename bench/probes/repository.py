"""Median seconds, in a repository of 1,000 files: until the card is shown, to apply what ran dry, an edit, a commit."""

import os
import statistics
import subprocess
import tempfile
import time

from common import report

from interpreter import OpenInterpreter
from interpreter.questions import Answer
from interpreter.repo.commit import MakeCommit
from interpreter.session import Block

TIMES = 9
WRITES = "t = open('f1.py').read()\nopen('f1.py', 'w').write(t + 'x = 1\\n')"

os.chdir(tempfile.mkdtemp(prefix="bench-repository-"))
for number in range(1000):
    with open(f"f{number}.py", "w") as file:
        file.write(f"n = {number}\n" * 30)
os.environ |= {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
git = ["git", "-c", "init.defaultBranch=main"]
for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
    subprocess.run([*git, *arguments], check=True, stdout=subprocess.DEVNULL)


def cards(mode, choice):
    """Measure how long the question waits for its diff, and from the answer to the end."""
    interpreter = OpenInterpreter(workspace=os.getcwd(), card_diff=mode)
    interpreter.computer.run("python", "x = 1")
    shown, ended, with_diff = [], [], 0
    for _ in range(TIMES):
        began, answered = time.perf_counter(), []

        def answer(question, answered=answered):
            answered.append((time.perf_counter(), bool(question.subject.diff)))
            return Answer(choice)

        with interpreter.session.questions.answerable({"block"}, answer):
            for _ in interpreter.session.perform(Block("python", WRITES), interpreter.agent.actor):
                pass
        when, has_diff = answered[0]
        shown.append(when - began)
        ended.append(time.perf_counter() - when)
        with_diff += has_diff
    interpreter.computer.terminate()
    return statistics.median(shown), statistics.median(ended), with_diff


def edits():
    interpreter = OpenInterpreter(workspace=os.getcwd())
    seconds = []
    for number in range(TIMES):
        with open(f"f{number}.py", "a") as file:
            file.write("unique = 0\n")
        began = time.perf_counter()
        interpreter.computer.files.replace(f"f{number}.py", "unique = 0", "unique = 1")
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def commits():
    interpreter = OpenInterpreter(workspace=os.getcwd())
    exact, bare = [], []
    for number in range(TIMES):
        interpreter.computer.run("python", f"open('f{number}.py', 'a').write('y = {number}\\n')")
        began = time.perf_counter()
        interpreter.session.perform(MakeCommit(interpreter.agent, "exact", own=True), interpreter.user).result()
        exact.append(time.perf_counter() - began)
        with open("f500.py", "a") as file:
            file.write("z = 1\n")
        began = time.perf_counter()
        subprocess.run([*git, "commit", "-qam", "all"], check=True)
        bare.append(time.perf_counter() - began)
    interpreter.computer.terminate()
    return statistics.median(exact), statistics.median(bare)


words, run, _ = cards("off", "approve")
card, _, with_diff = cards("show", "refuse")
_, applied, _ = cards("apply", "approve")
commit, git_commit = commits()
report(
    words=words, run=run, card=card, with_diff=with_diff, applied=applied, edit=edits(), commit=commit, git=git_commit
)
