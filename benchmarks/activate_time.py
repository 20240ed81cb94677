"""What `neuron_ref.activate()` adds to ``import torch``, in fresh processes, with the files in the page cache.

Processor time, not time on the wall: neither waits for anything but the processor, and others may be using it.
"""

import json
import statistics
import subprocess
import sys

from alternating import Ratio
from result import Benchmark, Limit, machine

LIMIT_S = 0.050
"""Processor seconds that activation may take."""

_PROGRAM = """
import json, time
started = time.process_time()
import torch
imported = time.process_time()
import neuron_ref
neuron_ref.activate()
activated = time.process_time()
print(json.dumps([imported - started, activated - imported]))
"""


def _run() -> tuple[float, float]:
    """Processor seconds of importing torch and of activating, in one fresh process."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True)
    torch_s, activate_s = json.loads(done.stdout)
    return torch_s, activate_s


def measure(quick: bool = False) -> Benchmark:
    """Start processes in turns.

    Args:
        quick: few processes, to see that it works.
    """
    _run()  # fills the page cache
    turns = 3 if quick else 11
    pairs = [(_run(), _run()) for _ in range(turns)]
    first = [one[0] for one, _ in pairs]
    activate = [one[1] for one, _ in pairs]
    ratios = sorted(b / a for a, b in zip(first, activate, strict=True))
    ratio = Ratio(
        name="activate",
        group="activate",
        ratio=statistics.median(ratios),
        low=ratios[len(ratios) // 4],
        high=ratios[-1 - len(ratios) // 4],
        control=statistics.median(other[0] / one[0] for one, other in pairs),
        baseline_us=statistics.median(first) * 1e6,
        measured_us=statistics.median(activate) * 1e6,
        turns=turns,
        repeats=1,
    )
    return Benchmark(
        name="activate_time",
        title=f"Processor time of activating the device after importing torch (limit {LIMIT_S * 1e3:.0f} ms)",
        baseline="import torch",
        measured="activate",
        ratios=(ratio,),
        limits=(Limit("activate", LIMIT_S / statistics.median(first)),),
        environment=machine(),
    )
