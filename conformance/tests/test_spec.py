"""Spec files are read strictly, and names are found without importing anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from torch_conformance.cli import main
from torch_conformance.discovery import BUILT_IN, find_backend, known_backends
from torch_conformance.errors import BackendStartError, UsageError
from torch_conformance.interpreter import environment
from torch_conformance.spec import read_spec

WHOLE = """
schema = 1
name = "mychip"
device = "mychip"
import = "torch_mychip"
activate = "torch_mychip:register"
env = { MYCHIP_VISIBLE = "0" }
devices = 2
claims = ["streams", "autocast"]
dtypes = ["float32"]
expectations = "known.toml"
faults = "torch_mychip.faults:switch"
timeout_s = 30
start = "spawn"
path = ["."]
"""


@pytest.fixture
def write(tmp_path: Path) -> object:
    def write(text: str) -> Path:
        file = tmp_path / "spec.toml"
        file.write_text(text)
        return file

    return write


def test_every_key_reaches_the_spec_and_paths_are_relative_to_the_file(write, tmp_path: Path) -> None:
    spec = read_spec(write(WHOLE))
    assert (spec.name, spec.device, spec.module, spec.activate) == (
        "mychip",
        "mychip",
        "torch_mychip",
        "torch_mychip:register",
    )
    assert (spec.devices, spec.claims, spec.dtypes) == (2, ("streams", "autocast"), ("float32",))
    assert (spec.timeout_s, spec.start, spec.env) == (30.0, "spawn", {"MYCHIP_VISIBLE": "0"})
    assert spec.expectations == str(tmp_path / "known.toml")
    assert spec.path == (str(tmp_path),)
    assert spec.source == str(tmp_path / "spec.toml")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("timeout = 3", r"key 'timeout': unknown key, .*did you mean 'timeout_s'\?"),
        ('claims = ["stream"]', r"unknown claim 'stream', .*did you mean 'streams'\?"),
        ('claims = "streams"', "key 'claims': got 'streams', wanted a list of texts"),
        ("devices = 0", "key 'devices': got 0, wanted a whole number of at least 1"),
        ("devices = true", "key 'devices': got True"),
        ("timeout_s = -1", "key 'timeout_s': got -1"),
        ('start = "forked"', r"key 'start': got 'forked', wanted one of fork, spawn; did you mean 'fork'\?"),
        ('activate = "torch_mychip"', "key 'activate': got 'torch_mychip', wanted 'module:function'"),
        ("env = { A = 1 }", "key 'env': got .*wanted a table of texts"),
        ('python = "./no/python"', "key 'python': got './no/python', but .* does not exist"),
        ('name = "a/b"', "key 'name': got 'a/b'"),
        ("schema = 2", "key 'schema': got 2, wanted 1"),
    ],
)
def test_a_broken_key_is_named_with_what_was_got_and_wanted(write, line: str, says: str) -> None:
    key = line.partition(" =")[0]
    base = {"schema": "schema = 1", "name": 'name = "x"', "device": 'device = "x"'}
    base[key] = line
    file = write("\n".join(base.values()))
    with pytest.raises(UsageError, match=says) as caught:
        read_spec(file)
    assert str(file) in str(caught.value)


def test_a_missing_key_is_named(write) -> None:
    with pytest.raises(UsageError, match="key 'device': missing"):
        read_spec(write('schema = 1\nname = "x"\n'))


def test_a_file_that_is_no_toml_is_named_with_the_place(write) -> None:
    with pytest.raises(UsageError, match=r"not a TOML file: .*line 1"):
        read_spec(write("name: x"))


def test_built_in_accelerators_are_spawned_and_cpu_is_forked() -> None:
    assert {name: spec.start for name, spec in BUILT_IN.items()} == {
        "cpu": "fork",
        "meta": "fork",
        "cuda": "spawn",
        "xpu": "spawn",
        "mps": "spawn",
    }


def test_a_module_with_a_spec_file_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "torch_mychip"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "torch_conformance.toml").write_text('schema = 1\nname = "chip"\ndevice = "mychip"\n')
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert find_backend("torch_mychip").name == "chip"
    assert "torch_mychip" in [known.name for known in known_backends()]


def test_a_module_without_a_spec_file_is_imported_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain_chip.py").write_text("raise SystemExit('imported')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    spec = find_backend("plain_chip")
    assert (spec.name, spec.module, spec.device) == ("plain_chip", "plain_chip", "")


def test_an_unknown_backend_names_the_nearest_and_all_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--backend", "cpv"]) == 2
    error = capsys.readouterr().err
    assert "unknown backend 'cpv'; did you mean 'cpu'?" in error
    assert "meta, cuda, xpu, mps" in error


def test_a_spec_file_that_is_not_there_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--backend", "no/such.toml"]) == 2
    assert "is no file" in capsys.readouterr().err


def test_an_interpreter_that_does_not_exist_cannot_be_started(write, capsys: pytest.CaptureFixture[str]) -> None:
    file = write('schema = 1\nname = "x"\ndevice = "x"\npython = "python-that-is-not-there"\n')
    assert main(["list", "--backend", str(file)]) == 3
    assert "there is no such program" in capsys.readouterr().err


def test_an_interpreter_without_torch_is_told_so(write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nexec /usr/bin/env -u PYTHONPATH python3 -S "$@"\n')
    python.chmod(0o755)
    file = write(f'schema = 1\nname = "x"\ndevice = "x"\npython = "{python}"\n')
    assert main(["run", "--backend", str(file), "--out", str(tmp_path / "r")]) == 3
    assert "there is no torch in" in capsys.readouterr().err


def test_a_missing_module_cannot_be_started_and_says_which(write, tmp_path: Path) -> None:
    file = write('schema = 1\nname = "x"\ndevice = "x"\nimport = "torch_mychip_that_is_missing"\n')
    from torch_conformance.session import Session

    with Session(read_spec(file)) as session, pytest.raises(BackendStartError, match="torch_mychip_that_is_missing"):
        session.start()


def test_the_environment_loads_no_backend_by_itself_and_computes_on_one_thread(write) -> None:
    env = environment(read_spec(write(WHOLE)), faults=("a", "b"))
    assert env["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "0"
    assert env["OMP_NUM_THREADS"] == "1"
    assert env["MYCHIP_VISIBLE"] == "0"
    assert env["TORCH_CONFORMANCE_FAULTS"] == "a,b"


def test_a_torch_on_the_path_comes_first_and_has_bytecode_of_its_own(write, tmp_path: Path) -> None:
    spec = read_spec(write(WHOLE))
    assert "PYTHONPYCACHEPREFIX" not in environment(spec) or "PYTHONPYCACHEPREFIX" in os.environ
    (tmp_path / "torch").mkdir()
    env = environment(spec)
    assert env["PYTHONPATH"].split(os.pathsep)[0] == str(tmp_path)
    assert env["PYTHONPYCACHEPREFIX"] == str(tmp_path / ".pycache")
