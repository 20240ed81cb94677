"""Device and pinned memory: statistics and what empties the caches.

The statistics are those of `torch.accelerator`, with the same keys; these functions only say which device is meant and
check that it exists.
"""

from collections import OrderedDict
from typing import Any

import torch

from neuron_ref import _C
from neuron_ref.device_module.index import Device, checked_index
from neuron_ref.device_module.startup import _lazy_init


def empty_cache() -> None:
    """Give memory that is cached and unused back to the devices."""
    torch.accelerator.empty_cache()


def empty_host_cache() -> None:
    """Give pinned memory that is cached and unused back to the host."""
    _C.empty_host_cache()


def memory_stats(device: Device = None) -> "OrderedDict[str, Any]":
    """Statistics of the allocator of `device`, flat, with the keys of `torch.accelerator.memory_stats`."""
    _lazy_init()
    return torch.accelerator.memory_stats(checked_index(device))


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """The same statistics, nested by statistic, pool and measure."""
    _lazy_init()
    return torch._C._accelerator_getDeviceStats(checked_index(device))


def _stat(key: str, device: Device) -> int:
    return int(memory_stats(device).get(key, 0))


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors hold."""
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device: Device = None) -> int:
    """Most bytes that tensors held at a time since the start or the last `reset_peak_memory_stats`."""
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device: Device = None) -> int:
    """Bytes that the allocator holds, for tensors and as a cache."""
    return _stat("reserved_bytes.all.current", device)


def max_memory_reserved(device: Device = None) -> int:
    """Most bytes that the allocator held at a time since the start or the last `reset_peak_memory_stats`."""
    return _stat("reserved_bytes.all.peak", device)


def reset_peak_memory_stats(device: Device = None) -> None:
    """Let every ``peak`` start again from the present value."""
    _lazy_init()
    torch.accelerator.reset_peak_memory_stats(checked_index(device))


def reset_max_memory_allocated(device: Device = None) -> None:
    """Older name of `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_max_memory_reserved(device: Device = None) -> None:
    """Older name of `reset_peak_memory_stats`."""
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Let every count of what happened so far (``allocated``, ``freed``, retries, out-of-memory) start again from 0."""
    _lazy_init()
    torch.accelerator.reset_accumulated_memory_stats(checked_index(device))


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total bytes of `device`."""
    _lazy_init()
    return _C.mem_get_info(checked_index(device))


def host_memory_stats() -> dict[str, int]:
    """Statistics of the pinned memory of this process."""
    return _C.host_memory_stats()


_ROWS = (
    ("Allocated memory", "allocated_bytes", True),
    ("Active memory", "active_bytes", True),
    ("Reserved memory", "reserved_bytes", True),
    ("Non-releasable memory", "inactive_split_bytes", True),
    ("Allocations", "allocation", False),
    ("Active allocations", "active", False),
    ("Segments", "segment", False),
    ("Non-releasable blocks", "inactive_split", False),
)
_POOLS = (("large_pool", "from large pool"), ("small_pool", "from small pool"))
_MEASURES = ("current", "peak", "allocated", "freed")


def memory_summary(device: Device = None, abbreviated: bool = False) -> str:
    """The statistics of `device` as a table.

    Args:
        device: which; by default the current one.
        abbreviated: leave out the rows of the single pools.
    """
    index = checked_index(device)
    stats = memory_stats(index)
    lines = [
        f"Memory of neuron:{index}   retries: {stats.get('num_alloc_retries', 0)}   "
        f"out of memory: {stats.get('num_ooms', 0)}",
        f"{'':24}" + "".join(f"{measure:>14}" for measure in ("current", "peak", "allocated", "freed")),
    ]
    for title, name, is_bytes in _ROWS:
        pools = [("all", title)] if abbreviated else [("all", title), *((key, f"  {text}") for key, text in _POOLS)]
        for pool, text in pools:
            if f"{name}.{pool}.current" in stats:
                values = (int(stats[f"{name}.{pool}.{measure}"]) for measure in _MEASURES)
                lines.append(f"{text:24}" + "".join(f"{_text(value, is_bytes):>14}" for value in values))
    return "\n".join(lines)


def _text(value: int, is_bytes: bool) -> str:
    """A count as it is; bytes in the largest unit that keeps at least four digits, as the table needs no more."""
    if not is_bytes:
        return str(value)
    size = float(value)
    for unit in ("B", "KiB", "MiB"):
        if size < 10240:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.0f} GiB"
