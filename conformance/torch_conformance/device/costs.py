"""What an operator case costs, so that the long ones start first and shards are even."""

from __future__ import annotations

USUAL = 0.05
"""Seconds of a case that is not listed."""

SLOW: dict[tuple[str, str], float] = {
    ("nn.functional.grid_sample", "*"): 4.0,
    ("grid_sampler_3d", "float16"): 50.0,
    ("grid_sampler_3d", "*"): 4.0,
}
"""Seconds of the full profile, by operator and dtype (``*`` for the others), measured on one core."""


def cost_of(operator: str, behaviour: str, dtype: str) -> float:
    """Expected CPU-seconds of a case in the ``full`` profile."""
    known = SLOW.get((operator, dtype), SLOW.get((operator, "*"), USUAL))
    return known * 2 if behaviour == "backward" else known
