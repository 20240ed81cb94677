"""Words of PyTorch that the rules share: device types, and what torch.cuda holds."""

from __future__ import annotations

import re
from functools import cache

# Device types that c10 knows, as torch.device spells them, and names of well-known PrivateUse1 backends.
ACCELERATORS = frozenset({"cuda", "xpu", "mps", "hpu", "mtia", "npu", "mlu", "musa", "xla", "hip", "ipu", "vulkan"})
IN_TREE = frozenset({"cuda", "xpu", "mps", "hpu", "mtia"})
HOSTS = frozenset({"cpu", "meta"})
DEVICE_TYPES = ACCELERATORS | HOSTS | {"lazy", "maia", "ve", "fpga", "ort", "opengl", "opencl", "ideep", "mkldnn"}

# torch.cuda functions with an accelerator counterpart of the same call shape: name -> what to write.
SAME_SHAPE = {
    "synchronize": "torch.accelerator.synchronize",
    "is_available": "torch.accelerator.is_available",
    "device_count": "torch.accelerator.device_count",
    "current_device": "torch.accelerator.current_device_index",
    "set_device": "torch.accelerator.set_device_index",
    "current_stream": "torch.accelerator.current_stream",
    "set_stream": "torch.accelerator.set_stream",
    "empty_cache": "torch.accelerator.empty_cache",
    "memory_stats": "torch.accelerator.memory_stats",
    "memory_allocated": "torch.accelerator.memory_allocated",
    "max_memory_allocated": "torch.accelerator.max_memory_allocated",
    "memory_reserved": "torch.accelerator.memory_reserved",
    "max_memory_reserved": "torch.accelerator.max_memory_reserved",
    "reset_peak_memory_stats": "torch.accelerator.reset_peak_memory_stats",
    "reset_accumulated_memory_stats": "torch.accelerator.reset_accumulated_memory_stats",
    "mem_get_info": "torch.accelerator.get_memory_info",
    "Stream": "torch.Stream",
    "Event": "torch.Event",
}
# The counterpart has another shape; a person or a template has to complete it.
OTHER_SHAPE = {
    "device": "torch.accelerator.device_index(index)",
    "device_of": "torch.accelerator.device_index(tensor.device.index)",
    "stream": "the stream itself as a context: `with s:`",
    "default_stream": "torch.get_device_module(device).default_stream()",
    "init": "torch.get_device_module(device).init()",
    "is_initialized": "torch.get_device_module(device).is_initialized()",
    "_lazy_init": "torch.get_device_module(device)._lazy_init()",
    "get_device_properties": "torch.get_device_module(device).get_device_properties()",
    "get_device_name": "torch.get_device_module(device).get_device_name()",
    "memory_summary": "torch.get_device_module(device).memory_summary()",
    "current_blas_handle": "nothing: it is CUDA's own",
}
RNG = frozenset(
    {
        "get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all",
        "manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed",
    }
)  # fmt: skip
GENERIC = frozenset(SAME_SHAPE) | frozenset(OTHER_SHAPE) - {"current_blas_handle"} | RNG
# Sub-modules of torch.cuda that only repeat names of the top level.
PASS_THROUGH = ("memory", "random", "streams")

# Words in a path, class or function that say "this is about CUDA itself", as whole tokens of an identifier.
CUDA_ONLY_TOKENS = frozenset(
    {
        "cudnn", "cudart", "cublas", "cublaslt", "cusparse", "cusparselt", "cusolver", "cufft", "nvrtc", "nvtx", "nvml",
        "nccl", "cutlass", "cutedsl", "cuda", "cudagraph", "cudagraphs", "cuda_graph", "hip", "hipify", "rocm",
        "miopen", "jiterator", "nv", "nvidia", "nvshmem", "tf32", "tma", "tensorpipe", "ck", "cutile", "quack",
        "fbgemm",
        "fa2", "fa3", "fa4", "sm80", "sm90", "sm100", "blackwell", "hopper", "gds", "cudacpp", "roctx", "cubin", "ptx",
        "tensorrt", "nvfuser", "nvmath", "cupti", "cudss", "magma",
    }
)  # fmt: skip
# Vendor packages: inside torch/xpu and its like the word cuda is not this project's business either.
VENDOR_TOKENS = frozenset({"xpu", "mps", "mtia", "hpu", "mlu", "npu", "musa"})
_ARCHITECTURE = re.compile(r"sm\d+|[bh][12]00|gfx\d+")
_TOKEN = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+")


@cache
def tokens(identifier: str) -> frozenset[str]:
    """The lower-case words of an identifier or path: ``TestCudaGraph_sm80`` -> test, cuda, graph, sm80."""
    return frozenset(word.lower() for word in _TOKEN.findall(identifier))


@cache
def says_cuda_only(identifier: str) -> bool:
    """Whether an identifier or a path claims to be about CUDA, ROCm or one of their libraries."""
    words = tokens(identifier)
    return (
        bool(words & CUDA_ONLY_TOKENS)
        or any(_ARCHITECTURE.fullmatch(word) for word in words)
        or "cudagraph" in identifier.lower()
        or "cuda_graph" in identifier.lower()
    )


def is_vendor(path: str) -> bool:
    """Whether a path lies in the package of one vendor's device."""
    return any(part in VENDOR_TOKENS for part in path.lower().split("/")[:-1])


def cuda_member(dotted: str) -> str | None:
    """The member of ``torch.cuda`` that a dotted name means (``torch.cuda.memory.empty_cache`` -> ``empty_cache``)."""
    if not dotted.startswith("torch.cuda."):
        return None
    rest = dotted.removeprefix("torch.cuda.")
    head, dot, tail = rest.partition(".")
    return tail if dot and head in PASS_THROUGH and not tail.startswith("_") else rest


def is_generic(dotted: str) -> bool:
    """Whether a dotted name is a part of torch.cuda for which every accelerator has a counterpart."""
    return cuda_member(dotted) in GENERIC


# Part of a CUDA-only feature's name, for owners of calls that are read as text.
SPECIFIC_TOKENS_PATTERN = re.compile(r"cudnn|nccl|cu_?da_?graph|cutlass|nvtx|nvrtc|tf32|rocm|hipify", re.IGNORECASE)
