"""The CUDA runtime called from general code."""

from __future__ import annotations

from collections.abc import Iterator

from ..context import Context
from ..finding import Level, Rewrite
from ..guards import FLAG
from ..judging import defect, out_of_scope, review
from ..names import GENERIC, cuda_member, says_cuda_only
from ..rule import Docs, Judgement, Match, Rule
from ..source import FUNCTIONS


class CudaRuntimeCall(Rule):
    code = "U023"
    taxonomy = ("C4", "F5")
    title = "general code calls a part of torch.cuda that only CUDA has"
    docs = Docs(
        what="Finds calls into torch.cuda without an accelerator counterpart (cudart, pinning, snapshots, "
        "NVTX) in general code, "
        "also through an alias made at an import.",
        why="They raise on a build without CUDA; on a CUDA machine they act on a device that does not hold the data.",
        instead="Ask the module of the device for the feature (hasattr) and do without it where it is absent.",
        safety="Display only: there is no counterpart to rewrite to.",
    )
    bad = (
        "import torch.cuda._pin_memory_utils as pins\ndef share(t, pin_memory):\n    if pin_memory:\n"
        "        pins.pin_memory(t.data_ptr(), t.nbytes)\n",
        "import torch\ndef snapshot(device=None):\n    return torch.cuda.memory._snapshot(device)\n",
    )
    good = ("import torch\ndef snapshot(device):\n    return torch.accelerator.memory_stats(device)\n",)
    leave_alone = (
        "import torch\ndef graph_capture(x):\n    if x.is_cuda:\n        torch.cuda.nvtx.range_push('x')\n",
        "import torch\ndef pools():\n    pool: torch.cuda.MemPool | None = None\n    return pool\n",
        "import torch\ndef nvtx_range(name):\n    torch.cuda.nvtx.range_push(name)\n",
        "import torch\ndef arch():\n    return torch.cuda.get_device_capability()\n",
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node, dotted in context.source.calls:
            member = cuda_member(dotted)
            if member is not None and member not in GENERIC:
                yield Match(node, dotted, f"{dotted}() exists on CUDA only")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        node, source = match.node, context.source
        if out_of_scope(context, node) or context.module_is_cuda:
            return None
        if any(kind for kind, _ in context.cuda_guards(node)):
            kinds = [kind for kind, _ in context.cuda_guards(node)]
            return review(0.3, "an option or build flag named after CUDA stands above it") if kinds == [FLAG] else None
        for scope in source.scopes(node):
            if says_cuda_only(scope.name) and not (
                isinstance(scope, FUNCTIONS) and context.project.reached_generically(scope.name)
            ):
                return review(0.25, f"{scope.name} is about CUDA by its name")
        telling = match.about.split(".")
        if any(part in ("_pin_memory_utils", "_snapshot", "cudart") for part in telling):
            # A snapshot beside torch.accelerator is the general interface falling through to CUDA.
            if (why := context.knows_private_use(node)) and "_snapshot" not in telling:
                return review(0.4, why)
            return defect(0.7, "no condition above it asks for CUDA", "the function takes part in general work")
        return review(0.4, "no condition above it asks for CUDA, but the feature is CUDA's own")

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        return Rewrite(Level.DISPLAY, "ask the device's module for the feature (hasattr)", "there is no counterpart")
