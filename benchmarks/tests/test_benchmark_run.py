"""The front of the benchmarks, run as `make bench` runs it."""

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parent.parent / "run.py"


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(RUN), *arguments], capture_output=True, text=True, check=False)


def test_an_unknown_name_is_wrong_usage_and_the_known_ones_are_named() -> None:
    done = _run("overhed")
    assert done.returncode == 2
    assert "unknown benchmark overhed; there are device_overhead, activate_time" in done.stderr


def test_a_quick_run_measures_every_operator_and_writes_both_files(tmp_path: Path) -> None:
    done = _run("device_overhead", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    read = json.loads((tmp_path / "device_overhead.json").read_text())
    names = {each["name"] for each in read["ratios"]}
    assert {"add[8]", "conv2d tiny", "add[1M]", "mm[512x512]"} <= names
    assert all(each["ratio"] > 0 and each["turns"] == 5 for each in read["ratios"])
    assert (tmp_path / "device_overhead.svg").stat().st_size > 1000


def test_activation_is_measured_in_processes_of_its_own(tmp_path: Path) -> None:
    done = _run("activate_time", "--quick", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (ratio,) = json.loads((tmp_path / "activate_time.json").read_text())["ratios"]
    assert 0 < ratio["measured_us"] < ratio["baseline_us"]
