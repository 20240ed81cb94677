"""The command neuron-ref."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from neuron_ref import stamp
from python_process import PACKAGE, import_path


def _command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "neuron_ref.cli", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_info_shows_the_build_and_every_device() -> None:
    done = _command("info", NEURON_REF_DEVICES="3")
    assert done.returncode == 0, done.stderr
    assert "build       current: torch " in done.stdout
    assert "neuron:0" in done.stdout and "neuron:2" in done.stdout and "neuron:3" not in done.stdout
    assert "environment NEURON_REF_DEVICES=3" in done.stdout


def test_info_as_json_holds_the_same() -> None:
    read = json.loads(_command("info", "--json", NEURON_REF_DEVICES="2").stdout)
    assert read["schema"] == 1
    assert read["build"] == "current"
    assert read["got"]["source"] == stamp.source_digest()
    assert [device["index"] for device in read["devices"]] == [0, 1]
    assert read["environment"]["NEURON_REF_DEVICES"] == "2"


@pytest.fixture
def unbuilt(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "neuron_ref", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return tmp_path


def test_info_without_a_build_says_so_and_how_to_get_one(unbuilt: Path) -> None:
    done = _command("info", PYTHONPATH=import_path(unbuilt))
    assert done.returncode == 1
    assert "build       missing" in done.stdout
    assert "-m neuron_ref.build" in done.stdout


def test_enabling_without_a_build_is_refused(unbuilt: Path) -> None:
    done = _command("enable", PYTHONPATH=import_path(unbuilt))
    assert done.returncode == 3
    assert "neuron_ref is not built" in done.stderr


def test_build_is_the_build_command() -> None:
    done = _command("build")
    assert done.returncode == 0
    assert done.stdout.startswith("neuron_ref: up to date")


@pytest.mark.parametrize("arguments", [[], ["unknown"], ["build", "--jobs", "none"]])
def test_wrong_usage_is_exit_code_two(arguments: list[str]) -> None:
    assert _command(*arguments).returncode == 2


def test_help_shows_examples_and_exit_codes() -> None:
    said = _command("--help").stdout
    assert "neuron-ref enable" in said
    assert "Exit codes:" in said
