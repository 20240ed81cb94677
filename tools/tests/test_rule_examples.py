"""The examples of a rule are its tests."""

from __future__ import annotations

import pytest
from uncuda.finding import Verdict
from uncuda.project import Project
from uncuda.rewriting import rewrite_all
from uncuda.rule import Rule, all_rules
from uncuda.scanner import scan_file


def found(rule: Rule, code: str) -> list[Verdict]:
    project = Project({"sample.py": code.encode()})
    return [finding.verdict for finding in scan_file(project, "sample.py") if finding.code == rule.code]


def cases(name: str) -> list[object]:
    return [
        pytest.param(rule, example, id=f"{rule.code}-{number}")
        for rule in all_rules()
        for number, example in enumerate(getattr(rule, name))
    ]


@pytest.mark.parametrize(("rule", "example"), cases("bad"))
def test_a_bad_example_is_found_with_the_strongest_verdict(rule: Rule, example: str) -> None:
    assert rule.strongest in found(rule, example)


@pytest.mark.parametrize(("rule", "example"), cases("good"))
def test_a_good_example_is_not_found(rule: Rule, example: str) -> None:
    assert found(rule, example) == []


@pytest.mark.parametrize(("rule", "example"), cases("leave_alone"))
def test_an_example_to_leave_alone_is_no_defect(rule: Rule, example: str) -> None:
    assert Verdict.DEFECT not in found(rule, example)


@pytest.mark.parametrize(("rule", "example"), cases("fixed"))
def test_a_rewrite_gives_the_text_that_the_rule_shows_and_is_idempotent(rule: Rule, example: object) -> None:
    before = example.before.encode()
    result = rewrite_all(Project({"sample.py": before}), "sample.py", example.unsafe)
    assert result is not None
    assert result.after.decode() == example.after
    again = rewrite_all(Project({"sample.py": result.after}), "sample.py", example.unsafe)
    assert again is None


@pytest.mark.parametrize(("rule", "example"), [case for case in cases("fixed") if case.values[1].unsafe])
def test_an_unsafe_rewrite_needs_the_option(rule: Rule, example: object) -> None:
    assert rewrite_all(Project({"sample.py": example.before.encode()}), "sample.py", unsafe=False) is None
