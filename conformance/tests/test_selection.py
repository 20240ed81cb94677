"""Globs, selection, shards, and the plan's cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch_conformance import codec, digest
from torch_conformance.backend import BackendSpec
from torch_conformance.case import Case, CaseId, matches
from torch_conformance.errors import UsageError
from torch_conformance.plan import load_plan, plan_key
from torch_conformance.selection import Selection, nearest_id, parse_shard, select, why_nothing

CASES = [
    Case(CaseId("op", "add", "forward", "float32"), "smoke", 1.0, sampled=True),
    Case(CaseId("op", "add", "forward", "int64"), "core", 3.0, sampled=True),
    Case(CaseId("op", "nn.functional.relu", "forward", "float32"), "core", 2.0, ("streams",), sampled=True),
    Case(CaseId("op", "add", "backward", "float32"), "full", 9.0, requires=("op/add/forward/float32/-",)),
    Case(CaseId("stream", "event", "orders", variant="two"), "smoke", 0.5),
]


def ids(cases: list[Case]) -> list[str]:
    return [str(case.id) for case in cases]


@pytest.mark.parametrize(
    ("glob", "name", "fits"),
    [
        ("op/add/*/float32/-", "op/add/forward/float32/-", True),
        ("op/*", "op/add/forward/float32/-", False),
        ("op/**", "op/add/forward/float32/-", True),
        ("**/float32/-", "op/add/forward/float32/-", True),
        ("op/a?d/**", "op/add/forward/float32/-", True),
        ("op/a?d/**", "op/a/d/float32/-", False),
        ("op/add.*/**", "op/addmm/forward/float32/-", False),
        ("op/add/forward/float32", "op/add/forward/float32/-", False),
        ("OP/**", "op/add/forward/float32/-", False),
    ],
)
def test_a_star_stays_within_a_part_and_two_cross_parts(glob: str, name: str, fits: bool) -> None:
    assert matches(glob, name) is fits


def test_options_of_one_kind_add_and_options_of_different_kinds_restrict() -> None:
    chosen = select(CASES, Selection(families=("op",), ops=("add", "relu"), dtypes=("float32",), profile="full"))
    assert ids(chosen) == [
        "op/add/forward/float32/-",
        "op/nn.functional.relu/forward/float32/-",
        "op/add/backward/float32/-",
    ]
    assert len(select(CASES, Selection(cases=("stream/**", "op/add/backward/**"), profile="full"))) == 2


def test_an_operator_is_found_by_its_full_name() -> None:
    assert ids(select(CASES, Selection(ops=("nn.functional.relu",)))) == ["op/nn.functional.relu/forward/float32/-"]


def test_a_profile_holds_the_smaller_ones() -> None:
    assert [len(select(CASES, Selection(profile=name))) for name in ("smoke", "core", "full")] == [2, 4, 5]


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (Selection(families=("ops",)), r"got the family 'ops', wanted one of op, stream; did you mean 'op'\?"),
        (Selection(ops=("ad",)), r"got the operator 'ad', .*did you mean 'add'\?"),
        (Selection(dtypes=("float23",)), r"did you mean 'float32'\?"),
        (Selection(cases=("op/ad/forward/float32/-",)), "the nearest id is 'op/add/forward/float32/-'"),
        (Selection(cases=("op",)), r"an id has five parts, and only '\*\*' crosses '/'"),
    ],
)
def test_a_word_that_matches_nothing_is_an_error_that_names_the_nearest(selection: Selection, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        select(CASES, selection)


def test_an_empty_selection_says_which_profile_has_the_cases() -> None:
    selection = Selection(cases=("op/add/backward/**",), profile="core")
    assert select(CASES, selection) == []
    assert why_nothing(CASES, selection) == "the profile 'core' holds none of them; 1 are in --profile full"


def test_shards_hold_each_case_once_and_balance_cost() -> None:
    parts = [select(CASES, Selection(profile="full", shard=(index, 2))) for index in (1, 2)]
    assert sorted(ids(parts[0]) + ids(parts[1])) == sorted(ids(CASES))
    assert sum(case.cost for case in parts[0]) == 9.0


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="wanted I/N"):
        parse_shard(text)


def test_the_nearest_of_thousands_is_found_among_those_that_share_parts() -> None:
    names = [f"op/op{number}/forward/float32/-" for number in range(5000)] + ["op/scatter_add/forward/float32/-"]
    assert nearest_id("op/scater_add/forward/float32/-", names) == "op/scatter_add/forward/float32/-"


def test_cases_survive_the_way_to_disk_and_back() -> None:
    assert codec.cases_from_rows(codec.cases_to_rows(CASES)) == CASES


def test_rows_of_another_form_are_refused() -> None:
    with pytest.raises(codec.CodecError, match="columns"):
        codec.cases_from_rows('{"columns": ["id"], "rows": []}')


def test_a_plan_is_listed_once_and_then_read(
    fake_processes: Path, fake_spec: BackendSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_plan(fake_spec)
    monkeypatch.setenv("FAKE_START", "fails")
    assert load_plan(fake_spec).cases == first.cases


def test_a_torn_plan_file_is_listed_again(fake_processes: Path, fake_spec: BackendSpec, tmp_path: Path) -> None:
    first = load_plan(fake_spec)
    (file,) = (tmp_path / "cache" / "torch_conformance" / "plans").glob("*.json")
    file.write_text(file.read_text()[:100])
    assert load_plan(fake_spec).cases == first.cases


def test_a_changed_spec_suite_or_overlay_has_another_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = BackendSpec(name="cpu", device="cpu", path=(str(tmp_path),))
    keys = {plan_key(spec), plan_key(BackendSpec(name="cpu", device="cpu"))}
    (tmp_path / "overlay.json").write_text('{"series": "a"}')
    keys.add(plan_key(spec))
    (tmp_path / "overlay.json").write_text('{"series": "b"}')
    keys.add(plan_key(spec))
    monkeypatch.setattr(digest, "of_suite", lambda: "another")
    keys.add(plan_key(spec))
    assert len(keys) == 5
