"""Memory: what the allocator says of itself agrees with what was asked of it."""

from __future__ import annotations

import gc

import torch

from .. import expect
from ..clause import clause
from ..target import Device

MIB = 1 << 20
NEEDS = ("memory_stats",)
SOURCE = "https://docs.pytorch.org/docs/stable/accelerator.html#memory-management"


def settle(device: Device) -> None:
    """Let everything that can be freed be freed."""
    gc.collect()
    device.synchronize()


def block(device: Device, mib: int, place: torch.device | None = None) -> torch.Tensor:
    """Uninitialised device memory of so many MiB."""
    return torch.empty(mib * MIB, dtype=torch.uint8, device=place or device.first)


@clause(
    "memory/allocated/rises-and-falls",
    words="memory_allocated rises by at least the size of a new tensor and falls back when it is gone.",
    source=SOURCE,
    fault="stats_not_counted",
    needs=NEEDS,
    profile="smoke",
)
def allocated_rises(device: Device) -> None:
    settle(device)
    before = torch.accelerator.memory_allocated()
    tensor = block(device, 8)
    held = torch.accelerator.memory_allocated() - before
    expect.true(
        8 * MIB <= held <= 10 * MIB, held, f"{8 * MIB} to {10 * MIB} bytes", "rise of memory_allocated by 8 MiB"
    )
    view = tensor[: 4 * MIB]
    expect.equal(torch.accelerator.memory_allocated() - before, held, "rise after a view was taken")
    del tensor
    expect.equal(torch.accelerator.memory_allocated() - before, held, "rise while a view still lives")
    del view
    settle(device)
    expect.equal(torch.accelerator.memory_allocated(), before, "memory_allocated after the last view is gone")


@clause(
    "memory/peak/remembers",
    words="max_memory_allocated is the highest that memory_allocated has been, also after memory was freed.",
    source=SOURCE,
    fault="max_memory_is_current",
    needs=NEEDS,
)
def peak_remembers(device: Device) -> None:
    settle(device)
    torch.accelerator.reset_peak_memory_stats()
    before = torch.accelerator.memory_allocated()
    tensor = block(device, 16)
    del tensor
    settle(device)
    peak = torch.accelerator.max_memory_allocated()
    expect.true(peak >= before + 16 * MIB, peak - before, f"at least {16 * MIB}", "peak over a freed block of 16 MiB")


@clause(
    "memory/peak/reset",
    words="reset_peak_memory_stats brings the peak down to what is allocated now.",
    source=SOURCE,
    fault="peak_not_reset",
    needs=NEEDS,
)
def peak_reset(device: Device) -> None:
    block(device, 16)
    settle(device)
    torch.accelerator.reset_peak_memory_stats()
    now = torch.accelerator.memory_allocated()
    expect.equal(torch.accelerator.max_memory_allocated(), now, "max_memory_allocated after the reset")


@clause(
    "memory/accumulated/counts-and-resets",
    words="The totals of allocated and freed bytes only grow, until they are reset.",
    source=SOURCE,
    fault="accumulated_not_reset",
    needs=NEEDS,
)
def accumulated(device: Device) -> None:
    settle(device)
    key = "allocated_bytes.all"
    before = torch.accelerator.memory_stats()
    block(device, 4)
    settle(device)
    after = torch.accelerator.memory_stats()
    for part in ("allocated", "freed"):
        grown = after[f"{key}.{part}"] - before[f"{key}.{part}"]
        expect.true(grown >= 4 * MIB, grown, f"at least {4 * MIB}", f"growth of {key}.{part}")
    torch.accelerator.reset_accumulated_memory_stats()
    left = torch.accelerator.memory_stats()[f"{key}.allocated"]
    expect.equal(left, 0, f"{key}.allocated after reset_accumulated_memory_stats")


@clause(
    "memory/count/requests",
    words="The number of allocations rises by one for each new tensor that needs memory, and by none for an empty one.",
    source=SOURCE,
    fault="stats_not_counted",
    needs=NEEDS,
)
def count_requests(device: Device) -> None:
    settle(device)
    key = "allocation.all.current"
    stats = torch.accelerator.memory_stats()
    if key not in stats:
        key = "allocated.all.current"
    before = stats[key]
    held = [torch.empty(100, device=device.first) for _ in range(5)]
    empty = torch.empty(0, device=device.first)
    expect.equal(torch.accelerator.memory_stats()[key] - before, 5, f"rise of {key} with five tensors and an empty one")
    del held, empty
    settle(device)
    expect.equal(torch.accelerator.memory_stats()[key], before, f"{key} after they are gone")


@clause(
    "memory/reserved/covers-allocated",
    words="What is reserved from the device is never less than what is allocated, now and at the peak.",
    source=SOURCE,
    fault="reserved_below_allocated",
    needs=NEEDS,
)
def reserved_covers(device: Device) -> None:
    held = []
    for mib in (1, 3, 20, 7):
        held.append(block(device, mib))
        reserved, allocated = torch.accelerator.memory_reserved(), torch.accelerator.memory_allocated()
        expect.true(reserved >= allocated, reserved, f"at least {allocated}", "memory_reserved")
        peaks = torch.accelerator.max_memory_reserved(), torch.accelerator.max_memory_allocated()
        expect.true(
            peaks[0] >= max(peaks[1], reserved), peaks[0], f"at least {max(peaks[1], reserved)}", "peak reserved"
        )


@clause(
    "memory/cache/empty-gives-back",
    words="empty_cache gives reserved memory back that no tensor uses, and touches no living tensor.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.memory.empty_cache.html",
    fault="empty_cache_keeps_reserved",
    needs=NEEDS,
)
def empty_gives_back(device: Device) -> None:
    living = torch.arange(1000.0).to(device.first)
    cached = block(device, 64)
    settle(device)
    del cached
    settle(device)
    before = torch.accelerator.memory_reserved()
    torch.accelerator.empty_cache()
    after = torch.accelerator.memory_reserved()
    allocated = torch.accelerator.memory_allocated()
    expect.true(
        after <= max(before - 64 * MIB, allocated),
        after,
        f"at most {max(before - 64 * MIB, allocated)}",
        "memory_reserved after empty_cache",
    )
    expect.values(living, torch.arange(1000.0), "a tensor that lived through empty_cache")


@clause(
    "memory/cache/reuses",
    words="Memory of a freed tensor is used again: making and freeing many tensors does not grow what is reserved.",
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-memory-management",
    fault="memory_leaks",
    needs=NEEDS,
)
def cache_reuses(device: Device) -> None:
    block(device, 4)
    settle(device)
    before = torch.accelerator.memory_reserved()
    for _ in range(20):
        block(device, 4)
    settle(device)
    grown = torch.accelerator.memory_reserved() - before
    expect.true(
        grown <= 8 * MIB, grown, f"at most {8 * MIB} bytes", "growth of memory_reserved over 20 rounds of 4 MiB"
    )


@clause(
    "memory/devices/are-counted-apart",
    words="Memory of one device is not counted on another.",
    source=SOURCE,
    fault="memory_stats_of_first_device",
    needs=NEEDS,
    devices=2,
)
def devices_apart(device: Device) -> None:
    settle(device)
    before = [torch.accelerator.memory_allocated(index) for index in (0, 1)]
    tensor = block(device, 8, device.second)
    rises = [torch.accelerator.memory_allocated(index) - before[index] for index in (0, 1)]
    expect.equal(rises[0], 0, "rise on the first device by a tensor on the second")
    expect.true(rises[1] >= 8 * MIB, rises[1], f"at least {8 * MIB}", "rise on the second device")
    del tensor
    settle(device)
    expect.equal(torch.accelerator.memory_allocated(1), before[1], "memory_allocated(1) after the tensor is gone")


@clause(
    "memory/info/free-falls",
    words="get_memory_info gives free and total bytes, free at most total, and free falls when memory is taken.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.memory.get_memory_info.html",
    fault="memory_info_never_changes",
    needs=NEEDS,
)
def free_falls(device: Device) -> None:
    torch.accelerator.empty_cache()
    free, total = torch.accelerator.get_memory_info(device.first)
    expect.true(0 <= free <= total and total > 0, (free, total), "0 <= free <= total, total > 0", "get_memory_info")
    tensor = block(device, 64)
    now, still = torch.accelerator.get_memory_info(device.first)
    expect.equal(still, total, "total with 64 MiB taken")
    expect.true(now <= free - 32 * MIB, free - now, f"at least {32 * MIB}", "fall of free with 64 MiB taken")
    del tensor


@clause(
    "memory/stats/algebra",
    words="current is allocated less freed, and at most peak, for every statistic that has these parts.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.memory.memory_stats.html",
    fault="stats_not_counted",
    needs=NEEDS,
)
def algebra(device: Device) -> None:
    settle(device)
    torch.accelerator.reset_accumulated_memory_stats()
    start = torch.accelerator.memory_stats()
    held = [block(device, 1), torch.empty(10, device=device.first)]
    block(device, 2)
    settle(device)
    stats = torch.accelerator.memory_stats()
    checked = 0
    for key in [name.removesuffix(".current") for name in stats if name.endswith(".current")]:
        current, peak = stats[f"{key}.current"], stats[f"{key}.peak"]
        expect.true(0 <= current <= peak, current, f"between 0 and the peak {peak}", f"{key}.current")
        if f"{key}.freed" in stats:
            moved = stats[f"{key}.allocated"] - stats[f"{key}.freed"]
            expect.equal(
                current - start[f"{key}.current"], moved, f"change of {key}.current, against allocated - freed"
            )
            checked += 1
    expect.true(checked > 0, checked, "at least 1", "statistics with allocated and freed")
    rise = stats["allocated_bytes.all.current"] - start["allocated_bytes.all.current"]
    expect.true(rise >= sum(t.nbytes for t in held), rise, "at least what the living tensors hold", "allocated_bytes")


@clause(
    "memory/storage/resize-to-zero-frees",
    words="A storage that is resized to nothing gives its memory back, and can be filled again.",
    source="torch/storage.py, UntypedStorage.resize_",
    fault="resize_keeps_memory",
    needs=NEEDS,
)
def resize_frees(device: Device) -> None:
    settle(device)
    tensor = torch.zeros(4 * MIB, dtype=torch.uint8, device=device.first)
    before = torch.accelerator.memory_allocated()
    tensor.untyped_storage().resize_(0)
    settle(device)
    fall = before - torch.accelerator.memory_allocated()
    expect.true(fall >= 4 * MIB, fall, f"at least {4 * MIB}", "fall of memory_allocated by resize_(0)")
    tensor.untyped_storage().resize_(4 * MIB)
    tensor.fill_(9)
    expect.values(tensor[-3:], torch.full((3,), 9, dtype=torch.uint8), "a storage that was resized back")
