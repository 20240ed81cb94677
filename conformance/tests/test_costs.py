"""What the suite itself costs, beside what it runs."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

OPS = ("add", "mul", "sub", "exp", "sin", "cos", "neg", "sum", "mean", "cat", "abs", "sqrt")
IMPORTS = "import torch; from torch.testing._internal.common_methods_invocations import op_db"
LIMIT_CPU_S = 2.0


def cpu_seconds(*words: str) -> float:
    """CPU time of a process and of all that it waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.long
def test_twelve_cases_without_workers_cost_at_most_two_cpu_seconds_beyond_the_imports(tmp_path: Path) -> None:
    slice_of = ["-m", "torch_conformance.cli", "run", "--backend", "cpu", "--profile", "smoke", "--dtype", "float32"]
    for op in OPS:
        slice_of += ["--case", f"op/{op}/forward/float32/-"]
    subprocess.run(
        [sys.executable, "-m", "torch_conformance.cli", "list", "--backend", "cpu"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    beyond = [
        cpu_seconds(*slice_of, "--out", str(tmp_path / str(turn))) - cpu_seconds("-c", IMPORTS) for turn in range(3)
    ]
    assert sorted(beyond)[1] <= LIMIT_CPU_S, beyond


@pytest.mark.long
def test_listing_a_cached_plan_costs_at_most_half_a_cpu_second() -> None:
    words = ("-m", "torch_conformance.cli", "list", "--backend", "cpu")
    cpu_seconds(*words)
    times = sorted(cpu_seconds(*words) for _ in range(5))
    assert times[2] <= 0.5, times
