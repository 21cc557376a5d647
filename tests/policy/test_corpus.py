"""Static analysis against the corpus: code judged harmless is harmless, and ordinary code can be analyzed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from interpreter.policy import Policy
from interpreter.policy.analysis import Effects, analyze, reversibility
from interpreter.policy.policy_file import read_file
from policy.analyzed_effects import WORKSPACE
from policy.commands_table import HERE
from policy.corpus import Measured, Snippet, effects, is_harmful, snippets
from policy.corpus.forecast import World, as_table, scores, shown_as_harmless
from policy.corpus.measure import make_world, measure

MAX_FALSE = 0
EVERY_R = [  # of R, one snippet in so many
    20,
    pytest.param(1, marks=[pytest.mark.full, pytest.mark.needs("Rscript"), pytest.mark.timeout(900)]),
]
MAX_UNKNOWN = 0.10
# Minimum precision and recall per kind of effect.
MINIMUM = {
    "writes": (0.96, 0.99),
    "overwrites": (0.70, 0.93),
    "renames": (0.80, 0.85),
    "deletes": (0.97, 0.95),
    "network": (0.86, 0.92),
    "installs": (1.0, 1.0),
}
# The reading rule of docs/policy.md, for every language.
RULES = tuple(replace(rule, language=()) for rule in read_file(HERE / "reading.yaml", WORKSPACE).rules)
IRREVERSIBLE = ("contacts", "kills", "other")


def is_unclear(found: Effects) -> bool:
    """Does the analysis leave something open?"""
    return found.unknown or any(effect.kind == "program" and not effect.known for effect in found.all)


def is_irreversible(measured: Measured) -> bool:
    """Does it do something that undo can't restore?"""
    changed = (path for kind in ("creates", "overwrites", "deletes") for path in measured.get(kind, ()))
    outside = any(not path.startswith(WORKSPACE) and path != "*" for path in changed)
    return outside or any(measured.get(kind) for kind in IRREVERSIBLE)


def misjudged(snippet: Snippet, measured: Measured) -> str:
    """The wrong promise of the analysis, if there is one."""
    found = analyze(snippet.language, snippet.code, WORKSPACE)
    decision = Policy(WORKSPACE, RULES).judge(snippet.language, snippet.code, found).decision
    if decision == "allow" and is_harmful(measured):
        return "allowed"
    if reversibility(found).kind == "reversible" and is_irreversible(measured):
        return "undone"
    return ""


def test_the_corpus_is_large_and_fully_measured() -> None:
    every = [*snippets(), *snippets("analyst")]
    assert len(snippets()) >= 1000
    assert len(snippets("analyst")) >= 120
    assert len({snippet.key for snippet in every}) == len(every)
    assert {snippet.key for snippet in every} == effects().keys(), "run `make corpus`"


@pytest.mark.parametrize("every_r", EVERY_R)
def test_code_judged_harmless_is_harmless(every_r: int, capsys: pytest.CaptureFixture[str]) -> None:
    known = effects()
    every = [*snippets(every_r=every_r), *snippets("analyst", every_r)]
    harmful = [snippet for snippet in every if is_harmful(known[snippet.key])]
    false = {snippet: why for snippet in every if (why := misjudged(snippet, known[snippet.key]))}
    with capsys.disabled():
        print(f"\n{len(every)} snippets, {len(harmful)} of them harmful; {len(false)} judged harmless that are not")
    assert len(false) <= MAX_FALSE * len(harmful), [(why, *snippet[:2]) for snippet, why in false.items()]


@pytest.mark.parametrize("language", ["python", "shell", "javascript", "sql", "r"])
@pytest.mark.parametrize("every_r", EVERY_R)
def test_ordinary_code_can_be_analyzed(every_r: int, language: str, capsys: pytest.CaptureFixture[str]) -> None:
    if language == "r" and shutil.which("Rscript") is None:
        pytest.skip("R's own parser is needed")
    blocks = [block for block in snippets("analyst", every_r) if block.language == language]
    unclear = {}
    for block in blocks:
        found = analyze(block.language, block.code, WORKSPACE)
        if is_unclear(found):
            unclear[block.code] = [str(effect) for effect in found.of("unknown", "program") if not effect.known]
    with capsys.disabled():
        print(f"\n{len(unclear)} of {len(blocks)} {language} blocks of an analyst can't be analyzed")
    assert len(unclear) <= MAX_UNKNOWN * len(blocks), unclear


@pytest.mark.needs("git")
@pytest.mark.parametrize("every_r", EVERY_R)
def test_the_forecast_matches_the_measured_effects(
    every_r: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path)
    table = scores(world, every_r)
    with capsys.disabled():
        print(f"\n{as_table(table)}")
    assert [snippet.code for snippet in shown_as_harmless(world, every_r)] == []
    for kind, score in table.items():
        precision, recall = MINIMUM[kind]
        assert score.precision >= precision, (kind, [snippet.code for snippet in score.wrong])
        assert score.recall >= recall, (kind, [snippet.code for snippet in score.missed])


@pytest.mark.parametrize("snippet", [each for each in snippets() if "OWNED" in each.code], ids=lambda each: each.key)
def test_the_documented_rules_allow_no_trick(snippet: Snippet) -> None:
    if is_harmful(effects()[snippet.key]):
        assert Policy(WORKSPACE, RULES).judge(snippet.language, snippet.code).decision != "allow", snippet.code


@pytest.mark.full
@pytest.mark.needs("bwrap", "strace", "node", "git", "sqlite3", "rg", "Rscript")
@pytest.mark.timeout(600)
def test_measuring_a_sample_again_gives_the_same_result(tmp_path: Path) -> None:
    sample = [snippet for snippet in snippets() if not snippet.label][::29]
    (tmp_path / "world").mkdir()
    (tmp_path / "cache").mkdir()
    make_world(tmp_path / "world")
    again = {each: is_harmful(measure(each, tmp_path / "world", tmp_path / "cache")) for each in sample}
    assert {each: is_harmful(effects()[each.key]) for each in sample} == again
