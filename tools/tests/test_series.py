"""The series on disk: order file, topic folders, digests, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_series import diff, make_series, write_topic
from uncuda.patch import PatchError, load_patch
from uncuda.series import SeriesError, load_series


def test_topics_come_in_the_order_of_the_order_file(tmp_path: Path) -> None:
    make_series(tmp_path / "patches")
    (tmp_path / "patches" / "order").write_text("numbers\ngate  # a remark\n")
    assert load_series(tmp_path / "patches").topics == ("numbers", "gate")


def test_a_selection_keeps_the_order_of_the_series(tmp_path: Path) -> None:
    series = make_series(tmp_path / "patches")
    assert series.select(["numbers", "gate"]).topics == ("gate", "numbers")
    assert series.select(["numbers"]).topics == ("numbers",)


def test_a_patch_names_the_files_it_touches(tmp_path: Path) -> None:
    series = make_series(tmp_path / "patches")
    assert [patch.touched for patch in series.patches] == [("torch/nn/gate.py",), ("torch/numbers.py",)]


def test_the_digest_changes_with_a_patch_a_case_and_the_order(tmp_path: Path) -> None:
    root = tmp_path / "patches"
    digests = [make_series(root).digest]
    (root / "order").write_text("numbers\ngate\n")
    digests.append(load_series(root).digest)
    patch = root / "gate" / "0001-cure.patch"
    patch.write_text(patch.read_text().replace("meta", "mtia"))
    digests.append(load_series(root).digest)
    topic = root / "gate" / "topic.toml"
    topic.write_text(topic.read_text().replace("a/b/c/-/-", "a/b/d/-/-"))
    digests.append(load_series(root).digest)
    assert len(set(digests)) == len(digests)


def test_the_digest_does_not_change_with_the_status(tmp_path: Path) -> None:
    root = tmp_path / "patches"
    before = make_series(root).digest
    topic = root / "gate" / "topic.toml"
    topic.write_text(topic.read_text().replace("prepared", "reviewed"))
    assert load_series(root).digest == before


def test_a_folder_that_is_not_listed_is_refused(tmp_path: Path) -> None:
    make_series(tmp_path / "patches")
    (tmp_path / "patches" / "order").write_text("gate\n")
    with pytest.raises(SeriesError, match="the folder 'numbers' is not listed"):
        load_series(tmp_path / "patches")


def test_a_line_without_a_folder_is_refused(tmp_path: Path) -> None:
    make_series(tmp_path / "patches")
    (tmp_path / "patches" / "order").write_text("gate\nnumbers\nghost\n")
    with pytest.raises(SeriesError, match="'ghost' has no folder"):
        load_series(tmp_path / "patches")


def test_a_topic_listed_twice_is_refused(tmp_path: Path) -> None:
    make_series(tmp_path / "patches")
    (tmp_path / "patches" / "order").write_text("gate\nnumbers\ngate\n")
    with pytest.raises(SeriesError, match="'gate' is there twice"):
        load_series(tmp_path / "patches")


def test_an_unknown_topic_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(SeriesError, match="got the topic 'ghost', wanted one of gate, numbers"):
        make_series(tmp_path / "patches").select(["ghost"])


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"title": ""}, "title: got None, wanted a text"),
        ({"cases": "[]"}, r"cases: got \[\], wanted a list"),
        ({"taxonomy": '["Z9"]'}, "taxonomy: got 'Z9'"),
        ({"findings": '["A1"]'}, "findings: got 'A1'"),
        ({"status": '"done"'}, "status: got 'done', wanted one of prepared"),
        ({"schema": "2"}, "got schema = 2, wanted 1"),
        ({"colour": '"red"'}, "got the unknown key 'colour'"),
        ({"upstream": "[{number = 1, relation = 'cousin', note = 'x'}]"}, "relation: got 'cousin'"),
        ({"upstream": "[{relation = 'tracks', note = 'x'}]"}, "wanted a table with number"),
    ],
)
def test_a_topic_file_that_is_not_well_formed_is_refused(tmp_path: Path, values: dict[str, str], says: str) -> None:
    folder = write_topic(tmp_path, "gate", diff("torch/a.py", "a\n", "b\n", tmp_path), **values)
    with pytest.raises(PatchError, match=says):
        load_patch(folder)


def test_a_topic_without_a_cover_is_refused(tmp_path: Path) -> None:
    folder = write_topic(tmp_path, "gate", diff("torch/a.py", "a\n", "b\n", tmp_path))
    (folder / "cover.md").unlink()
    with pytest.raises(PatchError, match=r"cover\.md: missing or empty"):
        load_patch(folder)


def test_a_patch_outside_of_torch_is_refused(tmp_path: Path) -> None:
    folder = write_topic(tmp_path, "gate", diff("setup.py", "a\n", "b\n", tmp_path))
    with pytest.raises(PatchError, match=r"touches \['setup.py'\], wanted paths under torch/"):
        load_patch(folder)
