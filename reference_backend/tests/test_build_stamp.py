"""The stamp of a build: written, read back, compared."""

import dataclasses
from pathlib import Path

import neuron_ref
import pytest
from neuron_ref import BuildError, stamp

GIVEN = stamp.Stamp(torch="2.13.0", git="abcdef", abi="cpython-311", source="0123", flavour="release")


def test_a_stamp_is_read_back_from_the_end_of_a_library(tmp_path: Path) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(b"\x7fELF" + bytes(range(256)) * 100)
    stamp.append(library, GIVEN)
    assert stamp.read(library) == GIVEN


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF without", b"x\nneuron_ref-stamp:{", b'x\nneuron_ref-stamp:{"a": 1}']
)
def test_a_library_without_a_readable_stamp_has_none(tmp_path: Path, content: bytes) -> None:
    library = tmp_path / "lib.so"
    library.write_bytes(content)
    assert stamp.read(library) is None


def test_the_package_says_what_its_build_was_made_for() -> None:
    assert neuron_ref.build_stamp() == stamp.wanted().describe()


def test_a_library_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert stamp.read(tmp_path / "lib.so") is None


@pytest.mark.parametrize("field", ["torch", "git", "abi", "source"])
def test_each_field_but_the_flavour_makes_a_build_stale(field: str) -> None:
    assert stamp.differences(dataclasses.replace(GIVEN, **{field: "other"}), GIVEN) == [field]
    assert stamp.differences(dataclasses.replace(GIVEN, flavour="debug"), GIVEN) == []


def test_the_torch_that_is_found_is_the_torch_that_is_imported() -> None:
    import torch

    found = stamp.find_torch()
    assert (found.version, found.git) == (torch.__version__, torch.version.git_version)
    assert found.folder == Path(torch.__file__).parent


def test_a_torch_without_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "torch"
    broken.mkdir()
    (broken / "version.py").write_text("cuda = None\n")

    class Spec:
        submodule_search_locations = (str(broken),)

    monkeypatch.setattr(stamp.importlib.util, "find_spec", lambda name: Spec)
    with pytest.raises(BuildError, match="has no __version__"):
        stamp.find_torch()


def test_headers_sources_and_flags_all_change_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "csrc").mkdir()
    files = [tmp_path / "csrc" / "a.cpp", tmp_path / "csrc" / "a.h", tmp_path / "compile_step.py"]
    for file in files:
        file.write_text("one")
    monkeypatch.setattr(stamp, "PACKAGE", tmp_path)
    monkeypatch.setattr(stamp, "SOURCES", tmp_path / "csrc")
    seen = {stamp.source_digest()}
    for file in files:
        file.write_text("two")
        seen.add(stamp.source_digest())
    assert len(seen) == 4
