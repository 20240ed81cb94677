"""Conditions that hold where a node runs: enclosing tests, early exits, asserts, and what they say about CUDA."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from .names import CUDA_ONLY_TOKENS, says_cuda_only, tokens
from .source import FUNCTIONS, Source

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass(frozen=True, slots=True)
class Guard:
    """A test that is known true (holds) or known false where the node runs."""

    test: ast.expr
    holds: bool


def guards(source: Source, node: ast.AST) -> Iterator[Guard]:
    """Every condition known at a node, innermost first, up to the module."""
    child = node
    for up in source.ancestors(node):
        if isinstance(up, (ast.If, ast.While)):
            if child in up.body:
                yield Guard(up.test, True)
            elif child in up.orelse and isinstance(up, ast.If):
                yield Guard(up.test, False)
        elif isinstance(up, ast.IfExp):
            if child is up.body:
                yield Guard(up.test, True)
            elif child is up.orelse:
                yield Guard(up.test, False)
        elif isinstance(up, ast.BoolOp):
            for earlier in up.values:
                if earlier is child:
                    break
                yield Guard(earlier, isinstance(up.op, ast.And))
        elif isinstance(up, _COMPREHENSIONS) and not isinstance(child, ast.comprehension):
            for generator in up.generators:
                for test in generator.ifs:
                    yield Guard(test, True)
        if isinstance(child, ast.stmt):
            yield from _exits_before(up, child)
        child = up


def _exits_before(parent: ast.AST, child: ast.stmt) -> Iterator[Guard]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and child in block:
            for sibling in block[: block.index(child)]:
                if isinstance(sibling, ast.If) and leaves(sibling.body) and not sibling.orelse:
                    yield Guard(sibling.test, False)
                elif isinstance(sibling, ast.Assert):
                    yield Guard(sibling.test, True)


def leaves(block: list[ast.stmt]) -> bool:
    """Whether a block never runs on to what follows it."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return True
    return isinstance(last, ast.If) and bool(last.orelse) and leaves(last.body) and leaves(last.orelse)


def raises(block: list[ast.stmt]) -> bool:
    """Whether a block ends in an error: raise, or a call whose name says so."""
    for statement in block:
        if isinstance(statement, ast.Raise):
            return True
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            name = statement.value.func
            word = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
            if tokens(word) & {"throw", "raise", "fail", "unimplemented"}:
                return True
    return False


def string_constants(node: ast.AST) -> list[str] | None:
    """The strings of a literal tuple, list or set, a frozenset of one, or one string; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("frozenset", "set", "tuple"):
        return string_constants(node.args[0]) if node.args else []
    return None


def _is_cuda_text(text: str) -> bool:
    return text.lower() in ("cuda", "hip", "nccl") or text.startswith(("cuda:", "nccl:"))


# How a test speaks of CUDA.
DEVICE = "device"  # of a device that is at hand: device.type == "cuda", x.is_cuda
AVAILABLE = "available"  # torch.cuda.is_available()
FLAG = "flag"  # use_cuda, TEST_CUDA, is_nccl_available(), torch.version.cuda


def speaks_of_cuda(source: Source, test: ast.expr, holds: bool) -> str | None:
    """Whether a test that holds (or not) means that CUDA is there: DEVICE, AVAILABLE, FLAG or None."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return speaks_of_cuda(source, test.operand, not holds)
    if isinstance(test, ast.BoolOp):
        kinds = [speaks_of_cuda(source, value, holds) for value in test.values]
        if isinstance(test.op, ast.And) == holds:
            return next((kind for kind in (DEVICE, FLAG, AVAILABLE) if kind in kinds), None)
        return kinds[0] if all(kinds) else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compare(source, test, holds)
    if isinstance(test, ast.NamedExpr):
        return speaks_of_cuda(source, test.value, holds)
    if not holds:
        return None
    return _positive(source, test)


def _compare(source: Source, test: ast.Compare, holds: bool) -> str | None:
    operator, left, right = test.ops[0], test.left, test.comparators[0]
    positive = isinstance(operator, (ast.Eq, ast.In, ast.Is)) == holds
    if isinstance(operator, (ast.Eq, ast.NotEq)):
        for side in (left, right):
            strings = string_constants(side)
            if positive and strings and len(strings) == 1 and _is_cuda_text(strings[0]):
                return DEVICE
            if positive and isinstance(side, ast.Call) and _is_cuda_device(source, side):
                return DEVICE
            if positive and (source.dotted(side) or "").endswith("DeviceType.CUDA"):
                return DEVICE
    if isinstance(operator, (ast.In, ast.NotIn)):
        strings = string_constants(right)
        if positive and strings and any(_is_cuda_text(text) for text in strings):
            return DEVICE
        strings = string_constants(left)
        if positive and strings and len(strings) == 1 and _is_cuda_text(strings[0]):
            return DEVICE
        if positive and isinstance(left, ast.Call) and _is_cuda_device(source, left):
            return DEVICE
    if isinstance(operator, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        return _positive(source, left) if not positive else None
    if isinstance(operator, (ast.Gt, ast.GtE, ast.Lt, ast.LtE)):
        kind = _positive(source, left)
        return kind if holds else None
    return None


def _is_cuda_device(source: Source, call: ast.Call) -> bool:
    return (
        (source.dotted(call.func) or "").endswith("torch.device")
        and bool(call.args)
        and isinstance(call.args[0], ast.Constant)
        and _is_cuda_text(str(call.args[0].value))
    )


def _positive(source: Source, test: ast.expr) -> str | None:
    if isinstance(test, ast.Subscript):
        return _positive(source, test.value)
    if isinstance(test, ast.Call):
        dotted = source.dotted(test.func) or ""
        if dotted.startswith("torch.cuda."):
            return AVAILABLE if dotted.endswith((".is_available", ".device_count", "is_initialized")) else FLAG
        if isinstance(test.func, ast.Attribute) and test.func.attr == "startswith" and test.args:
            strings = string_constants(test.args[0])
            return DEVICE if strings and any(text.startswith("cuda") for text in strings) else None
        if dotted in ("isinstance", "issubclass") and len(test.args) == 2:
            inner = source.dotted(test.args[1]) or ""
            return DEVICE if says_cuda_only(inner) else None
        if dotted in ("any", "all") and test.args and isinstance(test.args[0], (ast.GeneratorExp, ast.ListComp)):
            return speaks_of_cuda(source, test.args[0].elt, True)
        return FLAG if dotted and says_cuda_only(dotted.rpartition(".")[2]) else None
    dotted = source.dotted(test) or (test.attr if isinstance(test, ast.Attribute) else "")
    if dotted.endswith(".is_cuda") or dotted == "is_cuda":
        return DEVICE
    if dotted.startswith(("torch.version.cuda", "torch.version.hip", "torch.backends.cud")):
        return FLAG
    return FLAG if says_cuda_only(dotted.rpartition(".")[2]) else None


def is_type_checking(test: ast.expr) -> bool:
    """Whether a test is true only for type checkers."""
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def never_runs(source: Source, node: ast.AST) -> str | None:
    """The reason why a node does not run: type-only code, a constant test, or code after an exit; None if it may."""
    for guard in guards(source, node):
        if is_type_checking(guard.test) and guard.holds:
            return "only type checkers read it"
        if isinstance(guard.test, ast.Constant) and bool(guard.test.value) != guard.holds:
            return "the enclosing condition is never true"
    child = source.statement(node)
    while child is not None:
        parent = source.parents.get(child)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and child in block and leaves(block[: block.index(child)]):
                return "it stands after a return or raise"
        child = next((up for up in source.ancestors(child) if isinstance(up, ast.stmt)), None)
    return None


def in_annotation(source: Source, node: ast.AST) -> bool:
    """Whether a node is part of a type annotation."""
    child = node
    for up in source.ancestors(node):
        if isinstance(up, (ast.AnnAssign, ast.arg)) and child is up.annotation:
            return True
        if isinstance(up, FUNCTIONS) and child is up.returns:
            return True
        if isinstance(up, ast.stmt):
            return False
        child = up
    return False


SPECIFIC_TOKENS = CUDA_ONLY_TOKENS - {"cuda", "hip", "nv", "ck"}
