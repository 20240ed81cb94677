"""``torch.neuron``: what a script calls on the device, with the names and meanings of ``torch.cuda``.

Anything that `torch.accelerator` also offers is the same thing here and there: one allocator, one set of streams, one
current device for each thread.
"""

from neuron_ref.device_module import amp as amp
from neuron_ref.device_module import index as _utils  # the name under which torch.load looks for _get_device_index
from neuron_ref.device_module import random as random
from neuron_ref.device_module.amp import get_amp_supported_dtype, is_bf16_supported
from neuron_ref.device_module.devices import (
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    exchange_device,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    maybe_exchange_device,
    set_device,
    synchronize,
)
from neuron_ref.device_module.index import _get_device_index
from neuron_ref.device_module.memory import (
    empty_cache,
    empty_host_cache,
    host_memory_stats,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
)
from neuron_ref.device_module.operators import (
    clear_op_tracking,
    get_executed_ops,
    get_fallback_ops,
    set_op_tracking,
)
from neuron_ref.device_module.random import (
    _get_generator,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from neuron_ref.device_module.startup import _is_in_bad_fork, _lazy_init, init, is_initialized
from neuron_ref.device_module.streams import (
    Event,
    Stream,
    StreamContext,
    _sleep,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "_get_device_index",
    "_get_generator",
    "_is_in_bad_fork",
    "_lazy_init",
    "_sleep",
    "_utils",
    "amp",
    "can_device_access_peer",
    "clear_op_tracking",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "empty_host_cache",
    "exchange_device",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_executed_ops",
    "get_fallback_ops",
    "get_rng_state",
    "get_rng_state_all",
    "host_memory_stats",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "maybe_exchange_device",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_op_tracking",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]


def __getattr__(name: str) -> object:
    """Names that torch reads as attributes although their value depends on what has happened."""
    if name == "default_generators":  # made when first asked for: importing must touch no device
        return random.default_generators()
    if name == "_initialized":  # torch.utils.checkpoint saves no random state of a device where this is missing
        return is_initialized()
    raise AttributeError(f"module 'torch.neuron' has no attribute {name!r}")
