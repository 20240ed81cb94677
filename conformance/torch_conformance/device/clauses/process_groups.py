"""Process groups: what torch.distributed does for the device before any collective library of its own is there."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

import torch

from .. import expect
from ..clause import clause
from ..failure import Refused
from ..target import Device


@clause(
    "process_group/fake/serves-the-device",
    words="A process group of the fake backend takes tensors of the device without naming the device.",
    source="torch/testing/_internal/distributed/fake_pg.py, FakeStore",
    fault="copy_drops_last_element",
)
def fake_serves_the_device(device: Device) -> None:
    with _group("fake", world_size=2) as dist:
        tensor = torch.arange(4.0).to(device.first)
        dist.all_reduce(tensor)
        expect.values(tensor, torch.arange(4.0), "a tensor after all_reduce of the fake backend, which moves nothing")
        types = {item.type for item in dist.distributed_c10d._get_default_group()._device_types}
        expect.true(device.type in types, sorted(types), f"a set with {device.type!r}", "device types of the group")


@clause(
    "process_group/timeout/reaches-the-device",
    words="Setting the timeout of a process group sets it for the backend that serves the device.",
    source="torch/distributed/distributed_c10d.py, _set_pg_timeout",
    fault="copy_drops_last_element",
)
def timeout_reaches_the_device(device: Device) -> None:
    wanted = datetime.timedelta(seconds=77)
    with _group(f"{device.type}:gloo") as dist:
        group = dist.distributed_c10d._get_default_group()
        dist.distributed_c10d._set_pg_timeout(wanted, group)
        backend = group._get_backend(torch.device(device.type))
        expect.equal(backend.options._timeout, wanted, f"timeout of the {device.type}:gloo backend after setting it")
        expect.values(torch.arange(3.0).to(device.first), torch.arange(3.0), "a tensor made while the group is there")


@clause(
    "process_group/rng-sync/compares-states",
    words="The check that all ranks have the same random state takes a generator of the device.",
    source="torch/distributed/collective_utils.py, _check_rng_sync",
    fault="rng_state_truncated",
    needs=("generator",),
)
def rng_sync_compares_states(device: Device) -> None:
    from torch.distributed import collective_utils

    with _group("cpu:gloo") as dist:
        generator = torch.Generator(device.first).manual_seed(3)
        world = dist.group.WORLD
        seeded, _ = collective_utils._check_rng_sync_internal(generator, world)
        expect.equal([set(ranks) for ranks in seeded.values()], [{0}], "ranks that share the state, with one rank")
        torch.rand(8, device=device.first, generator=generator)
        advanced, _ = collective_utils._check_rng_sync_internal(generator, world)
        expect.true(
            set(advanced).isdisjoint(seeded),
            "the same value",
            "another one",
            "the value compared, after drawing numbers",
        )


@clause(
    "process_group/local-tensor/random-state-of-its-device",
    words="The random-number tracker of LocalTensor works on the current device of the type that it was made for.",
    source="torch/distributed/_local_tensor/__init__.py, _LocalOffsetBasedRNGTracker",
    fault="current_device_wrong",
    devices=2,
)
def local_tensor_random_state_of_its_device(device: Device) -> None:
    _require_distributed()
    from torch.distributed._local_tensor import _LocalOffsetBasedRNGTracker

    tracker = _LocalOffsetBasedRNGTracker(device.type)
    for current in (device.first, device.second):
        with device.on(current):
            expect.equal(tracker._device, current, f"device of the tracker while {current} is current")


def _require_distributed() -> Any:
    if not torch.distributed.is_available():
        raise Refused("this torch is built without torch.distributed")
    import torch.distributed as dist

    return dist


@contextlib.contextmanager
def _group(backend: str, world_size: int = 1) -> Iterator[Any]:
    """A default process group of this process alone, gone afterwards; gives the module torch.distributed."""
    dist = _require_distributed()
    if backend == "fake":
        from torch.testing._internal.distributed.fake_pg import FakeStore

        store: Any = FakeStore()
    elif not dist.is_gloo_available():
        raise Refused("this torch is built without gloo")
    else:
        store = dist.HashStore()
    dist.init_process_group(backend, store=store, rank=0, world_size=world_size)
    try:
        yield dist
    finally:
        dist.destroy_process_group()
