"""What the compiled extension offers to Python. `torch.neuron` and `neuron_ref.faults` are written on these names."""

import torch

class DeviceProperties:
    name: str
    total_memory: int
    """Bytes."""
    index: int
    model: str

def initialize() -> None:
    """Register allocator, guard, hooks and kernels with c10. Call once, after the rename to ``neuron``."""

def device_count() -> int: ...
def current_device() -> int: ...
def set_device(index: int) -> None: ...
def exchange_device(index: int) -> int:
    """Make ``index`` current and return the previous one; a negative index changes nothing and returns -1."""

def synchronize(index: int) -> None: ...
def get_device_properties(index: int) -> DeviceProperties: ...
def mem_get_info(index: int) -> tuple[int, int]:
    """Free and total bytes of a device."""

def empty_host_cache() -> None: ...
def host_memory_stats() -> dict[str, int]: ...
def is_in_bad_fork() -> bool: ...
def default_generator(index: int) -> torch.Generator: ...
def sleep(seconds: float, device: int, stream_id: int) -> None:
    """Enqueue a delay on a stream and return at once."""

def enqueued_tasks(device: int, stream_id: int) -> int:
    """Tasks that the queue of a stream still holds, the running one included."""

def executed_ops(reset: bool) -> dict[str, int]:
    """Operators that the executor ran since the last reset, with their counts; counted only while counting is on."""

def count_ops(enabled: bool) -> None: ...
def fault_names() -> list[str]: ...
def fault_description(name: str) -> str:
    """What a fault makes wrong, in words; empty when there is none of this name."""

def set_fault(name: str, enabled: bool) -> None:
    """Switch one fault. Raises ValueError for a name that `fault_names` does not list."""

def alias_host(tensor: torch.Tensor) -> torch.Tensor:
    """A CPU tensor over the readable mapping of a device tensor; for tests and collectives, never for users."""
