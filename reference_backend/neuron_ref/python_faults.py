"""The faults of the Python part. To add one, add a function here.

Each is laid over ``torch.neuron``, over the entry points of torch that lead to the device, or over single kernels.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from neuron_ref import _C, device_module
from neuron_ref.device_module import devices, random, streams
from neuron_ref.device_module import index as indices
from neuron_ref.patching import Patch

Apply = Callable[[Patch], None]


@dataclass(frozen=True, slots=True)
class PythonFault:
    """One way to be wrong."""

    name: str
    summary: str
    apply: Apply


FAULTS: dict[str, PythonFault] = {}


def fault(apply: Apply) -> Apply:
    """Register a fault under the name of its function; the docstring is the summary."""
    assert apply.__doc__ is not None, f"{apply.__name__} does not say what it breaks"
    FAULTS[apply.__name__] = PythonFault(apply.__name__, apply.__doc__, apply)
    return apply


# Devices and indices


@fault
def device_context_does_not_restore(patch: Patch) -> None:
    """Leaving a device context keeps its device current."""
    patch.attribute(devices.device, "__exit__", lambda self, *exception: None)
    patch.attribute(torch.accelerator.device_index, "__exit__", lambda self, *exception: None)


@fault
def out_of_range_index_wraps(patch: Patch) -> None:
    """An index of no device means another device instead of raising."""
    original = indices.checked_index

    def wrapped(device: indices.Device) -> int:
        return indices._get_device_index(device, optional=True) % _C.device_count()

    patch.function(original, wrapped)


@fault
def cpu_accepted_as_device(patch: Patch) -> None:
    """torch.neuron functions take "cpu" to be device 0."""
    original = indices._get_device_index

    def tolerant(device: indices.Device, optional: bool = False, allow_cpu: bool = False) -> int:
        try:
            return original(device, optional, allow_cpu)
        except ValueError:
            return 0

    patch.function(original, tolerant)


@fault
def device_count_is_one(patch: Patch) -> None:
    """torch.neuron, and so torch.accelerator, sees one device where there are several."""
    patch.function(devices.device_count, lambda: 1)


# Random numbers


@fault
def manual_seed_all_seeds_first_device_only(patch: Patch) -> None:
    """manual_seed_all, and so torch.manual_seed, leaves the generators of all devices but the first alone."""

    def seed_first(seed: int) -> None:
        for generator in random.default_generators()[:1]:
            generator.manual_seed(int(seed))

    patch.function(random.manual_seed_all, seed_first)


@fault
def set_rng_state_ignored(patch: Patch) -> None:
    """set_rng_state checks its arguments and sets nothing."""
    patch.function(random.set_rng_state, lambda new_state, device="neuron": None)


@fault
def get_rng_state_of_first_device(patch: Patch) -> None:
    """get_rng_state returns the state of device 0 for every device."""
    patch.function(random.get_rng_state, lambda device="neuron": _C.default_generator(0).get_state())


@fault
def torch_manual_seed_misses_device(patch: Patch) -> None:
    """The device says that it is in a bad fork, so torch.manual_seed passes it over."""
    patch.attribute(device_module, "_is_in_bad_fork", lambda: True)


# Streams


@fault
def stream_context_does_not_switch(patch: Patch) -> None:
    """Inside a stream context the stream from before stays current."""
    patch.attribute(streams.StreamContext, "__enter__", lambda self: None)


@fault
def stream_context_does_not_restore(patch: Patch) -> None:
    """Leaving a stream context keeps its stream current."""
    patch.attribute(streams.StreamContext, "__exit__", lambda self, *exception: None)


@fault
def set_stream_ignores_device(patch: Patch) -> None:
    """set_stream leaves the device of before current, as if every stream were its own."""

    def set_stream(stream: torch.Stream | None) -> None:
        if stream is not None:
            before = _C.current_device()
            torch._C._accelerator_setStream(stream)
            _C.set_device(before)

    patch.function(streams.set_stream, set_stream)


@fault
def default_stream_is_current_stream(patch: Patch) -> None:
    """default_stream returns whichever stream is current."""
    patch.function(streams.default_stream, streams.current_stream)


# Memory


def _with_stats(patch: Patch, change: Callable[[dict[str, Any]], object]) -> None:
    original = torch._C._accelerator_getDeviceStats

    def changed(index: int) -> dict[str, Any]:
        stats = original(index)
        change(stats)
        return stats

    patch.attribute(torch._C, "_accelerator_getDeviceStats", changed)


@fault
def max_memory_is_current(patch: Patch) -> None:
    """Peaks are what is in use now."""

    def lower(stats: dict[str, Any]) -> None:
        if "peak" in stats:
            stats["peak"] = stats["current"]
        for nested in stats.values():
            if isinstance(nested, dict):
                lower(nested)

    _with_stats(patch, lower)


@fault
def memory_stats_of_first_device(patch: Patch) -> None:
    """Every device reports the statistics of device 0."""
    original = torch._C._accelerator_getDeviceStats
    patch.attribute(torch._C, "_accelerator_getDeviceStats", lambda index: original(0))


@fault
def mem_get_info_swapped(patch: Patch) -> None:
    """Free and total memory change places."""
    original = torch._C._accelerator_getMemoryInfo
    patch.function(device_module.mem_get_info, lambda device=None: _C.mem_get_info(indices.checked_index(device))[::-1])
    patch.attribute(torch._C, "_accelerator_getMemoryInfo", lambda index: original(index)[::-1])


# Mixed precision


@fault
def amp_default_dtype_is_bfloat16(patch: Patch) -> None:
    """Autocast without a type computes in bfloat16, not in float16 as documented."""
    before = torch.get_autocast_dtype("neuron")
    torch.set_autocast_dtype("neuron", torch.bfloat16)
    patch.on_undo(lambda: torch.set_autocast_dtype("neuron", before))


@fault
def amp_supports_float16_only(patch: Patch) -> None:
    """Autocast to bfloat16 warns and computes in float32."""
    patch.function(device_module.get_amp_supported_dtype, lambda: [torch.float16])


@fault
def autocast_leaks(patch: Patch) -> None:
    """Autocast stays on when its context is left."""
    original = torch.amp.autocast_mode.autocast.__exit__

    def leaving(self: torch.autocast, *exception: Any) -> Any:
        on = torch.is_autocast_enabled("neuron")
        result = original(self, *exception)
        if self.device == "neuron":
            torch.set_autocast_enabled("neuron", on)
        return result

    patch.attribute(torch.amp.autocast_mode.autocast, "__exit__", leaving)
    patch.on_undo(lambda: torch.set_autocast_enabled("neuron", False))


@fault
def grad_scaler_misses_infinity(patch: Patch) -> None:
    """Unscaling gradients never finds an infinite one, so a step that overflowed is taken."""

    def unscale(grads: list[torch.Tensor], found_inf: torch.Tensor, inverse_scale: torch.Tensor) -> None:
        for grad in grads:
            grad.mul_(inverse_scale)

    patch.kernel("_amp_foreach_non_finite_check_and_unscale_", unscale)


# Saving, loading, moving


def _first_of_registry(patch: Patch, tag: Callable[[Any], Any], restore: Callable[[Any, str], Any]) -> None:
    registry = torch.serialization._package_registry
    entry = (-1, tag, restore)
    registry.insert(0, entry)
    patch.on_undo(lambda: registry.remove(entry))


@fault
def save_loses_device_index(patch: Patch) -> None:
    """A saved tensor remembers "neuron" and not which."""
    _first_of_registry(patch, lambda obj: "neuron" if obj.device.type == "neuron" else None, lambda obj, location: None)


@fault
def load_ignores_device_index(patch: Patch) -> None:
    """Whatever device of its kind map_location names, the tensor is loaded to the first."""
    _first_of_registry(
        patch,
        lambda obj: None,
        lambda obj, location: obj.to(device="neuron:0") if location.startswith("neuron") else None,
    )


@fault
def module_to_replaces_parameters(patch: Patch) -> None:
    """Module.to makes new Parameters, so that an optimizer made before it updates the old ones."""
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    patch.on_undo(lambda: torch.__future__.set_overwrite_module_params_on_conversion(before))


@fault
def tensor_method_ignores_index(patch: Patch) -> None:
    """x.neuron(1) goes to the current device."""
    patch.attribute(torch.Tensor, "neuron", lambda self, device=None, **options: self.to("neuron", **options))


# Single kernels


@fault
def gelu_ignores_approximation(patch: Patch) -> None:
    """gelu computes the exact form when the tanh form is asked for."""
    patch.kernel("gelu", lambda x, approximate="none": x * 0.5 * (1 + torch.erf(x / 2**0.5)))


@fault
def cumsum_skips_last(patch: Patch) -> None:
    """The last element of a cumulative sum repeats the one before it."""

    def cumsum(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        steps = list(itertools.accumulate(x.to(dtype or _sum_dtype(x)).unbind(dim), torch.add))
        return torch.stack([*steps[:-1], *steps[-2:-1]] if len(steps) > 1 else steps, dim)

    def _sum_dtype(x: torch.Tensor) -> torch.dtype:
        return x.dtype if x.is_floating_point() or x.is_complex() else torch.int64

    patch.kernel("cumsum", cumsum)


@fault
def sort_refused(patch: Patch) -> None:
    """sort raises NotImplementedError although the device claims it."""

    def refuse(*args: object, **options: object) -> None:
        raise NotImplementedError("aten::sort.stable is not implemented for neuron")

    patch.kernel("sort.stable", refuse)
