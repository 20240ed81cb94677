"""Functions that mean CUDA without saying so."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Edit, Level, Rewrite
from ..judging import defect, out_of_scope, review
from ..names import says_cuda_only
from ..rule import Docs, Fixed, Judgement, Match, Rule
from ..scripting import may_be_scripted
from ..source import FUNCTIONS

# Name -> number of positional arguments with which it means CUDA. Source: torch/csrc/autograd/init.cpp of 2.13,
# where the overload without a device type is kept for CUDA only.
_IMPLICIT = {
    "is_autocast_enabled": 0,
    "set_autocast_enabled": 1,
    "get_autocast_gpu_dtype": 0,
    "set_autocast_gpu_dtype": 1,
}


class ImplicitCuda(Rule):
    code = "U030"
    taxonomy = ("F3",)
    title = "a function means CUDA without saying so"
    docs = Docs(
        what="Finds calls that mean CUDA although the word is not there, as `torch.is_autocast_enabled()` without a "
        "device type.",
        why="Autocast on another device is not seen: a fast path is taken, or a setting is lost, in silence.",
        instead="Pass the device type: `torch.is_autocast_enabled(x.device.type)`.",
        safety="Unsafe: the answer changes for other devices, and a device without autocast must be "
        "asked with is_autocast_available first. "
        "Rewritten only where a tensor's device is at hand; TorchScript knows the form without argument only.",
    )
    bad = (
        "import torch\ndef fast(x):\n    return not torch.is_autocast_enabled()\n",
        "import torch\ndef dtype():\n    return torch.get_autocast_gpu_dtype()\n",
    )
    good = ("import torch\ndef fast(x):\n    return not torch.is_autocast_enabled(x.device.type)\n",)
    leave_alone = (
        "import torch\ndef cuda_graph(x):\n    return torch.is_autocast_enabled()\n",
        "import torch\ndef f(x):\n    return torch.is_autocast_enabled() or torch.is_autocast_enabled(x.device.type)\n",
        "import torch\nHANDLED = [torch.is_autocast_enabled, torch.set_autocast_enabled]\n",
    )
    fixed = (
        Fixed(
            "import torch\ndef fast(x):\n    y = torch.ones(2, device=x.device)\n"
            "    return y, torch.is_autocast_enabled()\n",
            "import torch\ndef fast(x):\n    y = torch.ones(2, device=x.device)\n"
            "    return y, torch.is_autocast_enabled(x.device.type)\n",
        ),
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node, dotted in context.source.calls:
            head, _, name = dotted.rpartition(".")
            if (
                head in ("torch", "torch._C")
                and name in _IMPLICIT
                and len(node.args) == _IMPLICIT[name]
                and not node.keywords
            ):
                yield Match(node, name, f"{name}() without a device type means CUDA")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        node, source = match.node, context.source
        if out_of_scope(context, node) or context.module_is_cuda:
            return None
        if any(says_cuda_only(scope.name) for scope in source.scopes(node)):
            return review(0.3, "the enclosing function is about CUDA by its name")
        function = source.function(node)
        if function is not None and _asks_by_type(context, function):
            return review(0.4, "the function also asks with a device type")
        if context.guarded_by_device(node):
            return None
        return defect(0.85, "the form without a device type answers for CUDA only")

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        summary = "pass the device type of the tensor at hand"
        call, source = match.node, context.source
        assert isinstance(call, ast.Call)
        if reason := may_be_scripted(context, call):
            return Rewrite(Level.DISPLAY, summary, f"{reason}; it knows the form without argument only")
        tensor = _tensor_at_hand(source.function(call))
        if match.about != "is_autocast_enabled" or tensor is None:
            return Rewrite(Level.DISPLAY, summary, "no device is at hand")
        end = source.span(call)[1] - 1
        note = "the answer changes for other devices; ask is_autocast_available first for one without autocast"
        return Rewrite(Level.UNSAFE, summary, note, (Edit(end, end, f"{tensor}.device.type"),))


def _asks_by_type(context: Context, function: ast.AST) -> bool:
    return any(
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr
        in ("is_autocast_enabled", "get_autocast_dtype", "set_autocast_enabled", "set_autocast_dtype")
        and len(inner.args) > _IMPLICIT.get(inner.func.attr, 0)
        for inner in ast.walk(function)
    )


def _tensor_at_hand(function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> str | None:
    if not isinstance(function, FUNCTIONS):
        return None
    parameters = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
    used = {
        inner.value.id
        for inner in ast.walk(function)
        if isinstance(inner, ast.Attribute) and inner.attr == "device" and isinstance(inner.value, ast.Name)
    }
    return next((name for name in parameters if name in used and name not in ("self", "cls")), None)
