"""Clauses: the decorator refuses what is not complete, and every chapter is."""

from __future__ import annotations

from typing import Any

import pytest
from torch_conformance.case import CaseId
from torch_conformance.device.clause import ClauseError, clause, load_clauses

GOOD: dict[str, Any] = {"words": "It works.", "source": "a page", "fault": "some_fault"}


@pytest.mark.parametrize(
    ("id", "change", "says"),
    [
        ("only/two", {}, "family/subject/behaviour"),
        ("a/b/c", {"words": "no full stop"}, "full stop"),
        ("a/b/c", {"source": " "}, "source is empty"),
        ("a/b/c", {"fault": ""}, "fault is empty"),
        ("a/b/c", {"profile": "huge"}, "huge"),
        ("a/b/c", {"needs": ("teleportation",)}, "teleportation"),
        ("registration/device/parses-its-name", {}, "twice"),
    ],
)
def test_an_incomplete_clause_is_refused_when_it_is_defined(id: str, change: dict[str, Any], says: str) -> None:
    load_clauses()
    with pytest.raises(ClauseError, match=says):
        clause(id, **{**GOOD, **change})


def test_every_clause_has_an_id_that_parses_and_is_no_operator_case() -> None:
    entries = load_clauses()
    assert len(entries) >= 100
    for identifier, entry in entries.items():
        assert str(CaseId.parse(identifier)) == identifier
        assert not entry.case.sampled


def test_two_devices_imply_the_capability() -> None:
    for entry in load_clauses().values():
        assert (entry.case.devices > 1) <= ("multi_device" in entry.case.needs)


def test_no_two_clauses_say_the_same() -> None:
    words = [entry.words for entry in load_clauses().values()]
    assert len(set(words)) == len(words)
