"""A list of accelerators without PrivateUse1."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..context import Context
from ..finding import Edit, Level, Rewrite
from ..judging import defect, judge_place, review
from ..names import ACCELERATORS, DEVICE_TYPES, IN_TREE
from ..rule import Docs, Fixed, Judgement, Match, Rule
from ..scripting import may_be_scripted

_BACKEND_KEYS = {"CPU", "CUDA", "MPS", "HIP", "XPU", "HPU", "MTIA", "XLA", "IPU", "VE", "Lazy", "Meta"}


class DeviceList(Rule):
    code = "U011"
    taxonomy = ("B2", "B3", "D1")
    title = "a list of accelerators lacks PrivateUse1"
    docs = Docs(
        what="Finds tuples, lists and sets of device types (or dispatch keys) that name accelerators but not "
        "PrivateUse1.",
        why="A plugin's device is not in the list, so the gate refuses it, skips it or treats it as a CPU.",
        instead="Ask for a capability, or add `torch._C._get_privateuse1_backend_name()` where the list is used.",
        safety="Unsafe: a longer list opens the guarded code to another device. Only lists inside functions "
        "are rewritten: a constant or "
        "a cached function would freeze the name before the plugin renames it. TorchScript does not know the call.",
    )
    bad = (
        'FAST_KINDS = ("cuda", "xpu", "mps", "mtia")\n',
        'def lazy_init(device):\n    if device.type not in ["cuda", "hpu"]:\n'
        '        raise RuntimeError("no streams")\n',
        'backends_dense = ["CPU", "CUDA", "MPS", "HIP", "XPU", "HPU", "MTIA"]\n',
        'def is_acc(d):\n    return d.type in {"cuda", "mtia"}\n',
    )
    good = (
        'import torch\ndef is_acc(d):\n    return d.type in {"cuda", torch._C._get_privateuse1_backend_name()}\n',
        "import torch\nPU1 = torch._C._get_privateuse1_backend_name()\ndef is_acc(d):\n"
        '    return d.type in {"cuda", PU1}\n',
        'def is_acc(d):\n    return d.type not in ("cpu", "meta")\n',
        'UNITS = ["s", "ms", "us"]\n',
    )
    leave_alone = (
        'colours = ["red", "green", "xpu"]\n',
        '__all__ = ["__version__", "cuda", "xpu"]\n',
        'backends_ok = ["CPU", "CUDA", "MPS", "XPU", "PrivateUse1"]\n',
        'def fused(x):\n    return x.device.type in ("cpu", "cuda")\n',
        'import torch\ndef kinds():\n    found = ["cuda", "xpu"]\n'
        "    found.append(torch._C._get_privateuse1_backend_name())\n    return found\n",
    )
    fixed = (
        Fixed(
            'import torch\ndef ready(d):\n    return d.type in ("cuda", "xpu")  # streams\n',
            "import torch\ndef ready(d):\n"
            '    return d.type in ("cuda", "xpu", torch._C._get_privateuse1_backend_name())  # streams\n',
        ),
    )

    def match(self, context: Context) -> Iterator[Match]:
        for node in context.source.nodes(ast.Tuple, ast.List, ast.Set):
            assert isinstance(node, (ast.Tuple, ast.List, ast.Set))
            values = [item.value for item in node.elts if isinstance(item, ast.Constant)]
            if not node.elts or len(values) != len(node.elts) or not all(isinstance(value, str) for value in values):
                continue
            if all(value in DEVICE_TYPES for value in values) and set(values) & IN_TREE:
                yield Match(node, "types", f"lists {', '.join(map(str, values))} and no PrivateUse1")
            elif len(values) > 3 and all(value in _BACKEND_KEYS for value in values) and "CUDA" in values:
                yield Match(node, "keys", f"lists the dispatch keys {', '.join(map(str, values))} and no PrivateUse1")

    def judge(self, context: Context, match: Match) -> Judgement | None:
        node = match.node
        place = judge_place(context, node)
        if not isinstance(place, bool):
            return place
        source = context.source
        assert isinstance(node, (ast.Tuple, ast.List, ast.Set))
        if context.knows_private_use(node):
            return review(0.4, "the function treats PrivateUse1 beside this list")
        statement = source.statement(node)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and source.function(node) is None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            if any(name.startswith("__") for name in names):
                return None
            if statement.value is node and any(context.project.is_written(name) for name in names):
                return review(0.3, "other code adds to the list")
        if match.about == "keys":
            return defect(0.7, "a list of backends that a plugin's dispatch key is not in")
        accelerators = {item.value for item in node.elts if isinstance(item, ast.Constant)} & ACCELERATORS
        if any(isinstance(up, ast.Call) and _names_devices_for_tests(up) for up in source.ancestors(node)):
            return review(0.4, "devices that a test or an entry of an operator table is restricted to")
        if len(accelerators) < 2:
            return review(0.35, "one accelerator and the CPU: it may list where a kernel exists")
        if accelerators <= {"cuda", "hip"}:
            return None
        if context.guarded_by_device(node):
            return review(0.3, "a test for a CUDA device stands above it")
        return defect(
            0.75, "several accelerators are listed, so the list means accelerators in general", "no PrivateUse1 in it"
        )

    def rewrite(self, context: Context, match: Match) -> Rewrite | None:
        summary = "add torch._C._get_privateuse1_backend_name(), or ask for the capability"
        node, source = match.node, context.source
        assert isinstance(node, (ast.Tuple, ast.List, ast.Set))
        function = source.function(node)
        if match.about == "keys":
            return Rewrite(Level.DISPLAY, 'add "PrivateUse1"', "the kernel behind the key has to exist")
        if function is None or _is_default(function, node):
            return Rewrite(
                Level.DISPLAY, summary, "evaluated at import, where the name is not final; it has to become a call"
            )
        if any("cache" in ast.dump(decorator) for scope in source.scopes(node) for decorator in scope.decorator_list):
            return Rewrite(Level.DISPLAY, summary, "a cached function would freeze the name before the rename")
        if reason := may_be_scripted(context, node):
            return Rewrite(Level.DISPLAY, summary, f"{reason}, and TorchScript does not know the call")
        if len({item.value for item in node.elts if isinstance(item, ast.Constant)} & ACCELERATORS) < 2:
            return Rewrite(Level.DISPLAY, summary, "the list may say where a kernel exists")
        if not isinstance(source.parents.get(node), ast.Compare):
            return Rewrite(Level.DISPLAY, summary, "only a list that is asked for membership is known to be a gate")
        end = source.span(node.elts[-1])[1]
        edit = Edit(end, end, ", torch._C._get_privateuse1_backend_name()")
        return Rewrite(Level.UNSAFE, summary, "opens the guarded code to another device", (edit,), ("torch",))


def _is_default(function: ast.FunctionDef | ast.AsyncFunctionDef, node: ast.AST) -> bool:
    expressions = [*function.args.defaults, *filter(None, function.args.kw_defaults), *function.decorator_list]
    return any(node in ast.walk(expression) for expression in expressions)


def _names_devices_for_tests(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name.endswith("Info") or name.startswith(("skip", "only", "dtypes", "expectedFailure"))
