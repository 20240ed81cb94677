"""Work that takes a known time on a device, so that order can be seen."""

from __future__ import annotations

import functools
import inspect
import time

import torch

from .target import Device

DELAY_S = 0.15
"""A delay long against the host's own speed and short against a test."""


def delay(device: Device, place: torch.device, seconds: float = DELAY_S) -> float:
    """Put work of about ``seconds`` on the current stream of ``place``.

    The backend's own ``_sleep`` is used where there is one, else a chain of matrix products.

    Returns:
        how long the call itself took, in seconds: about ``seconds`` on a device that runs everything at once.
    """
    begin = time.perf_counter()
    amount = _sleep_amount(device.type, seconds)
    if amount is not None:
        with device.on(place):
            device.module._sleep(amount)
        return time.perf_counter() - begin
    matrix = _matrix(str(place))
    per_product = _seconds_per_product(device, place)
    begin = time.perf_counter()
    for _ in range(max(1, int(seconds / per_product))):
        matrix = matrix @ matrix
    return time.perf_counter() - begin


def runs_at_once(took: float, seconds: float = DELAY_S) -> bool:
    """Whether a `delay` that took so long on the host had already run when it returned."""
    return took > 0.8 * seconds


def _sleep_amount(device_type: str, seconds: float) -> float | int | None:
    sleep = getattr(torch.get_device_module(device_type), "_sleep", None)
    if sleep is None:
        return None
    try:
        first = next(iter(inspect.signature(sleep).parameters), "")
    except (TypeError, ValueError):
        first = ""
    return seconds if first.startswith("sec") else int(seconds * _cycles_per_second(device_type))


@functools.cache
def _cycles_per_second(device_type: str) -> float:
    """How many units of ``_sleep`` a second has, measured."""
    module = torch.get_device_module(device_type)
    cycles = 1_000_000
    while True:
        module.synchronize()
        begin = time.perf_counter()
        module._sleep(cycles)
        module.synchronize()
        took = time.perf_counter() - begin
        if took > 0.02:
            return cycles / took
        cycles *= 4


@functools.cache
def _matrix(place: str) -> torch.Tensor:
    # A permutation: its powers stay finite however long the chain.
    return torch.eye(512).roll(1, 0).to(place)


@functools.cache
def _seconds_per_product(device: Device, place: torch.device) -> float:
    matrix = _matrix(str(place))
    matrix @ matrix
    device.synchronize(place)
    begin = time.perf_counter()
    for _ in range(20):
        matrix = matrix @ matrix
    device.synchronize(place)
    return max((time.perf_counter() - begin) / 20, 1e-6)
