"""The device side of an operator case: put samples on the device, run them, send back what they gave."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from ..case import Case
from . import forms, internals
from .execution import Ran, backward, place, run
from .result import Draw, Leaf, Result, leaf, tensors_of
from .sample import Sample, arguments_of, iterate
from .target import Device


def run_samples(
    device: Device, case: Case, run_seed: int, samples: list[Sample], at: Callable[[int], None]
) -> dict[int, Result]:
    """Run samples of one case.

    Args:
        device: the started backend.
        case: an operator case.
        run_seed: seed of the run.
        samples: as the oracle made them.
        at: called with the index before each sample.

    Returns:
        a result for each index.
    """
    operator = internals.op_infos()[case.id.subject].op
    missing = {sample.index for sample in samples if sample.arguments is None}
    remade = {made.index: made for made in iterate(case, run_seed, missing)} if missing else {}
    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in samples:
            at(sample.index)
            made = remade.get(sample.index)
            if made is None:
                assert sample.arguments is not None
                decoded, process, digest = forms.decode(sample.arguments), None, ""
            else:
                decoded, process, digest = _lifted(made.raw), made.raw.process if sample.backward else None, made.digest
            result = _run_one(device, case.id.subject, operator, sample, decoded, process)
            result.digest = digest
            results[sample.index] = result
    return results


def _lifted(raw: internals.RawSample) -> Any:
    """A sample of this process in the form that `forms.decode` gives, tensor by tensor; the rest stays what it is."""
    return forms.map_structure(arguments_of(raw), torch.Tensor, lambda item: forms.decode(forms.encode(item)))


def _run_one(device: Device, name: str, operator: Any, sample: Sample, decoded: Any, process: Any) -> Result:
    first = device.first
    arguments = place(name, decoded, first)
    torch.manual_seed(sample.seed)
    before = _states(device) if sample.draw_seeds else None
    ran = run(operator, arguments, process)
    if sample.backward and ran.raw is not None:
        backward(ran, arguments, _cotangents(sample, first))
    result = Result(str(first), ran.outputs, ran.gradients, _changed_inputs(decoded, arguments))
    if before is not None:
        draws = [_draw(device, ran, before)]
        for seed in sample.draw_seeds:
            arguments = place(name, decoded, first)
            torch.manual_seed(seed)
            again = run(operator, arguments, process)
            if sample.backward and again.raw is not None:
                backward(again, arguments, _cotangents(sample, first))
            draws.append(_draw(device, again, None))
        result.draws = tuple(draws)
    return result


def _cotangents(sample: Sample, device: torch.device) -> list[torch.Tensor]:
    placed: list[torch.Tensor] = forms.Placer(device).place(forms.decode(sample.cotangents))
    return placed


def _draw(device: Device, ran: Ran, before: tuple[bytes, bytes] | None) -> Draw:
    outputs = ran.outputs if ran.gradients is None else (ran.outputs, *ran.gradients)
    if before is None:
        return Draw(outputs)
    after = _states(device)
    return Draw(outputs, after[0] != before[0], after[1] != before[1])


def _states(device: Device) -> tuple[bytes, bytes]:
    host = torch.default_generator.get_state().numpy().tobytes()
    if device.type in ("cpu", "meta"):
        return host, host
    return device.get_rng_state().cpu().numpy().tobytes(), host


def _changed_inputs(decoded: Any, arguments: Any) -> tuple[Leaf, ...] | None:
    """The inputs as they are now, or None when each holds the bytes that were sent."""
    wanted = forms.leaves(decoded, forms.TensorForm)
    now = [leaf(tensor) for tensor in tensors_of(arguments)]
    same = all(_holds(one, form) for one, form in zip(now, wanted, strict=True))
    return None if same else tuple(now)


def _holds(now: Leaf, form: forms.TensorForm) -> bool:
    if now.layout == "strided" and now.data is None:
        return True  # meta: there is nothing to hold
    if now.shape != tuple(form.shape) or now.dtype != form.dtype:
        return form.layout == "nested"
    wanted = forms.values_of(form)
    if wanted is not None:
        return now.data == wanted
    before = leaf(forms.Placer(torch.device("cpu")).tensor(form))
    return contents(before) == contents(now)


def contents(one: Leaf) -> tuple[Any, ...]:
    """The bytes of a leaf and of its parts."""
    return (one.data, *(contents(part) for part in one.parts))
