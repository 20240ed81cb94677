"""Which files are compiled together."""

from pathlib import Path

import pytest
from neuron_ref.compile_units import write_units


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "csrc"
    names = ["main.cpp", "bindings.cpp", "ops/autocast.cpp", "driver/only.cpp"]
    for name in [*names, *(f"ops/kernel{number:02}.cpp" for number in range(17))]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


def units(root: Path) -> list[Path]:
    return write_units(sorted(root.rglob("*.cpp")), root, root.parent / "units")


def test_every_source_is_compiled_exactly_once(root: Path) -> None:
    compiled: list[str] = []
    for unit in units(root):
        included = [line.split('"')[1] for line in unit.read_text().splitlines()]
        compiled += included or [str(unit)]
    assert sorted(compiled) == sorted(map(str, root.rglob("*.cpp")))


def test_small_files_of_a_folder_share_a_unit_and_slow_ones_start_first(root: Path) -> None:
    names = [unit.relative_to(root.parent).as_posix() for unit in units(root)]
    assert sorted(names) == [
        "csrc/driver/only.cpp",
        "csrc/main.cpp",
        "units/_autocast.cpp",
        "units/_bindings.cpp",
        "units/ops_1.cpp",
        "units/ops_2.cpp",
        "units/ops_3.cpp",
    ]


def test_a_unit_that_would_not_change_is_left_alone(root: Path) -> None:
    before = {unit: unit.stat().st_mtime_ns for unit in units(root)}
    assert {unit: unit.stat().st_mtime_ns for unit in units(root)} == before
