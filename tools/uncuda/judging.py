"""The judgement that several rules share: a use of CUDA in code that may or may not be general."""

from __future__ import annotations

import ast

from .context import Context
from .finding import Verdict
from .guards import AVAILABLE, FLAG, guards, in_annotation, never_runs
from .rule import Judgement


def defect(confidence: float, *reasons: str) -> Judgement:
    """The verdict defect."""
    return Judgement(Verdict.DEFECT, confidence, reasons)


def review(confidence: float, *reasons: str) -> Judgement:
    """The verdict review."""
    return Judgement(Verdict.REVIEW, confidence, reasons)


def out_of_scope(context: Context, node: ast.AST) -> bool:
    """Whether a node never runs, or is a type."""
    return in_annotation(context.source, node) or never_runs(context.source, node) is not None


def judge_place(context: Context, node: ast.AST) -> Judgement | bool | None:
    """Judge by the place alone: None for no finding, a review, or True when the place is general code."""
    if out_of_scope(context, node):
        return None
    if only := context.cuda_only(node):
        return None if only.by_name else review(0.3, only.reason)
    return True


def judge_use(context: Context, node: ast.AST, *, flags_excuse: bool = True) -> Judgement | None:
    """Judge a use of CUDA (a call, a literal device): general code, unguarded, is a defect.

    Args:
        flags_excuse: whether a test of an option named after CUDA makes the use right.
    """
    place = judge_place(context, node)
    if not isinstance(place, bool):
        return place
    if context.guarded_by_device(node):
        return None
    gate = context.availability_only(node)
    if gate is not None:
        general, reason = context.gate_is_general(gate)
        return defect(0.7, "only torch.cuda.is_available() stands above it", reason) if general else review(0.3, reason)
    kinds = [kind for kind, _ in context.cuda_guards(node)]
    if FLAG in kinds and flags_excuse:
        return review(0.3, "an option or build flag named after CUDA stands above it")
    if why := context.knows_private_use(node):
        return review(0.4, why)
    if _is_script(context, node):
        return review(0.35, "a script of its own, not a part of the library")
    return defect(0.85, "no condition above it asks for a CUDA device", "the module, class and function are general")


def judge_gate(context: Context, test: ast.expr) -> Judgement | None:
    """Judge a condition on CUDA by what it guards and by what the other branches do."""
    place = judge_place(context, test)
    if not isinstance(place, bool):
        return place
    if context.handled_beside(test):
        return None
    general, reason = context.gate_is_general(test)
    if general is False:
        return None
    if general is None:
        return review(0.35, reason)
    if why := context.knows_private_use(test):
        return review(0.4, why)
    outer = [(kind, guard) for kind, guard in context.cuda_guards(test) if guard is not test]
    if any(kind != AVAILABLE or not context.gate_is_general(guard)[0] for kind, guard in outer):
        return review(0.3, "another test for CUDA stands above it")
    return defect(0.75, reason, "no other branch serves other accelerators")


def _is_script(context: Context, node: ast.AST) -> bool:
    return any(
        "__name__" in ast.dump(guard.test) and "__main__" in ast.dump(guard.test)
        for guard in guards(context.source, node)
    )
