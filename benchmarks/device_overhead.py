"""What the reference device costs beside the CPU: tiny operators, which show the way to the kernel, and large ones.

Each operator runs on the same values on both devices, one thread, without autograd.
"""

from collections.abc import Callable

import neuron_ref
import torch
from alternating import Subject, compare
from result import Benchmark, Limit, machine

TINY, LARGE = "tiny", "large"

LIMITS = (Limit(TINY, 1.7), Limit(LARGE, 1.05))

Make = Callable[[torch.device], Callable[[], object]]

_OPERATORS: list[tuple[str, str, Make]] = []


def _operator(name: str, group: str) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        _OPERATORS.append((name, group, make))
        return make

    return register


def _values(device: torch.device, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0)).to(device)


@_operator("add[8]", TINY)
def _add(device: torch.device) -> Callable[[], object]:
    x, y = _values(device, 8), _values(device, 8)
    return lambda: torch.add(x, y)


@_operator("add_[8]", TINY)
def _add_in_place(device: torch.device) -> Callable[[], object]:
    x, y = _values(device, 8), torch.zeros(8, device=device)
    return lambda: x.add_(y)


@_operator("mul[8]", TINY)
def _mul(device: torch.device) -> Callable[[], object]:
    x, y = _values(device, 8), _values(device, 8)
    return lambda: torch.mul(x, y)


@_operator("relu[8]", TINY)
def _relu(device: torch.device) -> Callable[[], object]:
    x = _values(device, 8)
    return lambda: torch.relu(x)


@_operator("softmax[8]", TINY)
def _softmax(device: torch.device) -> Callable[[], object]:
    x = _values(device, 8)
    return lambda: torch.softmax(x, 0)


@_operator("mm[4x4]", TINY)
def _mm(device: torch.device) -> Callable[[], object]:
    x, y = _values(device, 4, 4), _values(device, 4, 4)
    return lambda: torch.mm(x, y)


@_operator("layer_norm[4x4]", TINY)
def _layer_norm(device: torch.device) -> Callable[[], object]:
    x = _values(device, 4, 4)
    return lambda: torch.nn.functional.layer_norm(x, (4,))


@_operator("cat 2x[8]", TINY)
def _cat(device: torch.device) -> Callable[[], object]:
    both = [_values(device, 8), _values(device, 8)]
    return lambda: torch.cat(both)


@_operator("index[8]", TINY)
def _index(device: torch.device) -> Callable[[], object]:
    x, where = _values(device, 8), torch.arange(8).to(device)
    return lambda: x[where]


@_operator("conv2d tiny", TINY)
def _conv2d(device: torch.device) -> Callable[[], object]:
    x, weight = _values(device, 1, 1, 4, 4), _values(device, 1, 1, 3, 3)
    return lambda: torch.nn.functional.conv2d(x, weight)


@_operator("view[8]", TINY)
def _view(device: torch.device) -> Callable[[], object]:
    x = _values(device, 8)
    return lambda: x.view(2, 4)


@_operator("transpose[4x4]", TINY)
def _transpose(device: torch.device) -> Callable[[], object]:
    x = _values(device, 4, 4)
    return lambda: x.transpose(0, 1)


@_operator("empty[8]", TINY)
def _empty(device: torch.device) -> Callable[[], object]:
    return lambda: torch.empty(8, device=device)


@_operator("add[1M]", LARGE)
def _add_large(device: torch.device) -> Callable[[], object]:
    x, y = _values(device, 1 << 20), _values(device, 1 << 20)
    return lambda: torch.add(x, y)


@_operator("softmax[256x4096]", LARGE)
def _softmax_large(device: torch.device) -> Callable[[], object]:
    x = _values(device, 256, 4096)
    return lambda: torch.softmax(x, 1)


@_operator("mm[512x512]", LARGE)
def _mm_large(device: torch.device) -> Callable[[], object]:
    x, y = _values(device, 512, 512), _values(device, 512, 512)
    return lambda: torch.mm(x, y)


@_operator("add_[16M]", LARGE)
def _add_huge_in_place(device: torch.device) -> Callable[[], object]:
    # In place, because a fresh 64 MiB output measures how the host's malloc maps pages, not the device.
    x, y = _values(device, 1 << 24), _values(device, 1 << 24)
    return lambda: x.add_(y)


def measure(quick: bool = False) -> Benchmark:
    """Compare every operator on the device with the CPU.

    Args:
        quick: few turns, to see that it works.
    """
    neuron_ref.activate()
    torch.set_num_threads(1)
    cpu, device = torch.device("cpu"), torch.device("neuron", 0)
    neuron = torch.get_device_module(device)
    with torch.inference_mode():
        ratios = tuple(
            compare(
                name,
                Subject(make(cpu)),
                Subject(make(device), finish=neuron.synchronize),
                group=group,
                turns=5 if quick else (101 if group == TINY else 31),
                block_s=0.0005 if quick else (0.002 if group == TINY else 0.02),
            )
            for name, group, make in _OPERATORS
        )
    return Benchmark(
        name="device_overhead",
        title="Operators on the reference device beside the CPU, one thread",
        baseline="cpu",
        measured="neuron",
        ratios=ratios,
        limits=LIMITS,
        environment=machine() | {"torch": torch.__version__},
    )
