"""What is compiled together.

A file that includes torch's headers costs about ten seconds before its own first line. So small files of one folder are
compiled as one: a generated file includes them one after the other. The files stay apart for the reader, and names that
are private to one of them must be unique in its folder, or the compiler says so.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

_FILES_PER_UNIT = 8
# Folders with fewer files are compiled as they are.
_FEWEST_TOGETHER = 4

# These take longest: one includes every operator of torch, the other pybind11. Setuptools sorts what it compiles by
# path, so a generated file whose name sorts first starts first; with few processors the longest must not be last.
_SLOW = ("autocast.cpp", "bindings.cpp")


def write_units(sources: Sequence[Path], root: Path, folder: Path) -> list[Path]:
    """Make the files that the compiler gets.

    Args:
        sources: every C++ file, sorted.
        root: where the sources lie; files in itself are compiled as they are.
        folder: where generated files go; one that would not change is left alone, so that nothing is recompiled.

    Returns:
        The files to compile.
    """
    units: list[Path] = []
    for parent, group in groupby(sources, key=lambda file: file.parent):
        members = list(group)
        units += [_write(folder / f"_{file.name}", [file]) for file in members if file.name in _SLOW]
        others = [file for file in members if file.name not in _SLOW]
        apart = parent == root or len(others) < _FEWEST_TOGETHER
        count = len(others) if apart else -(-len(others) // _FILES_PER_UNIT)
        for number in range(count):
            part = others[number::count]
            name = "_".join(parent.relative_to(root).parts)
            units.append(part[0] if len(part) == 1 else _write(folder / f"{name}_{number + 1}.cpp", part))
    return units


def _write(unit: Path, files: Sequence[Path]) -> Path:
    text = "".join(f'#include "{file}"\n' for file in files)
    if not unit.exists() or unit.read_text() != text:
        unit.parent.mkdir(parents=True, exist_ok=True)
        unit.write_text(text)
    return unit
