"""Registration and index: the device is known wherever PyTorch keeps a name or a number of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import torch

from .. import expect
from ..clause import clause
from ..target import Device

T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> T:
    """What ``call`` gives in a new thread; its exception is raised here."""
    results: list[T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


@clause(
    "registration/device/parses-its-name",
    words="torch.device(NAME) gives a device of that type that prints its name and equals itself.",
    source="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device",
    fault="device_name_wrong",
    profile="smoke",
)
def parses_its_name(device: Device) -> None:
    expect.equal(torch.device(device.type).type, device.type, "torch.device(NAME).type")
    expect.equal(torch.device(device.type).index, None, "torch.device(NAME).index")
    expect.equal(str(device.first).split(":")[0], device.type, "str(torch.device(NAME, 0)), before the colon")
    expect.equal(torch.device(str(device.first)), device.first, "torch.device(str(device))")
    expect.equal(torch.device(f"{device.type}:0").index, 0, "torch.device('NAME:0').index")


@clause(
    "registration/tensor/reports-its-device",
    words="A tensor made on the device says so: device, type and whether it is on the CPU.",
    source="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device",
    fault="current_device_wrong",
    profile="smoke",
)
def tensor_reports_its_device(device: Device) -> None:
    tensor = torch.empty(2, device=device.first)
    expect.on_device(tensor, device.first, "torch.empty(2, device=first)")
    expect.equal(tensor.is_cpu, device.type == "cpu", "tensor.is_cpu")
    expect.equal(tensor.get_device(), 0 if device.has_index else -1, "tensor.get_device()")


@clause(
    "registration/module/is-found",
    words="torch.get_device_module(NAME) gives torch.NAME, which is available and counts its devices.",
    source="torch/__init__.py, get_device_module; https://docs.pytorch.org/tutorials/unstable/python_extension.html",
    fault="module_not_available",
    profile="smoke",
)
def module_is_found(device: Device) -> None:
    module = torch.get_device_module(device.type)
    expect.true(module is getattr(torch, device.type, None), module, f"torch.{device.type}", "get_device_module(NAME)")
    expect.true(bool(module.is_available()), module.is_available(), "True", f"torch.{device.type}.is_available()")
    if device.has_index:
        count = module.device_count()
        expect.equal(count, torch.accelerator.device_count(), f"torch.{device.type}.device_count()")


@clause(
    "registration/accelerator/is-the-device",
    words="torch.accelerator is available and its current accelerator is the device's type.",
    source="https://docs.pytorch.org/docs/stable/accelerator.html",
    fault="accelerator_not_registered",
    profile="smoke",
)
def accelerator_is_the_device(device: Device) -> None:
    device.need_index()
    expect.equal(torch.accelerator.is_available(), True, "torch.accelerator.is_available()")
    current = torch.accelerator.current_accelerator()
    expect.equal(None if current is None else current.type, device.type, "torch.accelerator.current_accelerator()")
    expect.true(torch.accelerator.device_count() >= 1, torch.accelerator.device_count(), "at least 1", "device_count()")


@clause(
    "registration/backend-name/is-its-slot",
    words="A device that took PyTorch's open slot is the one whose name the slot reports.",
    source="torch/utils/backend_registration.py, rename_privateuse1_backend",
    fault="slot_name_wrong",
)
def backend_name_is_its_slot(device: Device) -> None:
    key = torch._C._parse_dispatch_key("PrivateUse1")
    assert key is not None
    on_slot = torch._C._dispatch_keys(torch.empty(1, device=device.first)).has(key)
    named = torch._C._get_privateuse1_backend_name() == device.type
    expect.equal(on_slot, named, "whether tensors have the key PrivateUse1, against whether the slot has this name")


@clause(
    "registration/index/starts-at-zero",
    words="The current device of the main thread is 0 unless someone set it.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.current_device_index.html",
    fault="current_device_wrong",
)
def index_starts_at_zero(device: Device) -> None:
    device.need_index()
    expect.equal(torch.accelerator.current_device_index(), 0, "torch.accelerator.current_device_index()")
    expect.on_device(torch.empty(1, device=device.type), device.first, "torch.empty(1, device=NAME)")


@clause(
    "registration/index/set-changes-the-current",
    words="set_device_index makes that device current: it is reported, and tensors without an index are made there.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.set_device_index.html",
    fault="set_device_ignored",
    devices=2,
)
def set_changes_the_current(device: Device) -> None:
    try:
        torch.accelerator.set_device_index(1)
        expect.equal(torch.accelerator.current_device_index(), 1, "current_device_index() after set_device_index(1)")
        expect.on_device(torch.empty(1, device=device.type), device.second, "torch.empty(1, device=NAME)")
        expect.on_device(torch.zeros(1).to(device.type), device.second, "torch.zeros(1).to(NAME)")
    finally:
        torch.accelerator.set_device_index(0)


@clause(
    "registration/index/context-restores",
    words="torch.accelerator.device_index makes a device current inside its block and brings the old one back after.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.device_index.html",
    fault="device_context_does_not_restore",
    devices=2,
)
def context_restores(device: Device) -> None:
    with torch.accelerator.device_index(1):
        expect.on_device(torch.empty(1, device=device.type), device.second, "torch.empty inside device_index(1)")
        with torch.accelerator.device_index(0):
            expect.equal(torch.accelerator.current_device_index(), 0, "current index inside device_index(0)")
        expect.equal(torch.accelerator.current_device_index(), 1, "current index after the inner block")
    try:
        expect.equal(torch.accelerator.current_device_index(), 0, "current index after the outer block")
    finally:
        torch.accelerator.set_device_index(0)


@clause(
    "registration/index/context-restores-after-exception",
    words="Leaving a device context by an exception brings the old device back too.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.device_index.html",
    fault="device_context_does_not_restore",
    devices=2,
)
def context_restores_after_exception(device: Device) -> None:
    try:
        with torch.accelerator.device_index(1):
            raise KeyError("leaves the block")
    except KeyError:
        pass
    try:
        expect.equal(torch.accelerator.current_device_index(), 0, "current index after an exception in device_index(1)")
    finally:
        torch.accelerator.set_device_index(0)


@clause(
    "registration/index/operator-guards",
    words="An operator runs on the device of its inputs, whatever device is current, and leaves that as it was.",
    source="c10/core/impl/DeviceGuardImplInterface.h, DeviceGuardImplInterface",
    fault="guard_does_not_restore",
    devices=2,
)
def operator_guards(device: Device) -> None:
    tensor = torch.arange(4.0).to(device.second)
    out = torch.cat([tensor + 1, torch.ones_like(tensor)])
    expect.on_device(out, device.second, "cat of tensors on the second device while the first is current")
    expect.values(out, torch.tensor([1.0, 2, 3, 4, 1, 1, 1, 1]), "cat on the second device")
    expect.equal(torch.accelerator.current_device_index(), 0, "current index after operators on the second device")


@clause(
    "registration/index/is-per-thread",
    words="The current device belongs to a thread: another thread neither sees nor disturbs it.",
    source="https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code",
    fault="current_device_is_per_process",
    devices=2,
)
def index_is_per_thread(device: Device) -> None:
    def other() -> int:
        before = torch.accelerator.current_device_index()
        torch.accelerator.set_device_index(1)
        return before

    with torch.accelerator.device_index(1):
        expect.equal(in_thread(torch.accelerator.current_device_index), 0, "current index of a new thread")
    in_thread(other)
    expect.equal(torch.accelerator.current_device_index(), 0, "current index after another thread set its own to 1")


@clause(
    "registration/index/invalid-is-an-error",
    words="A device index that does not exist is an error when a tensor is made there, and changes nothing.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.accelerator.set_device_index.html",
    fault="out_of_range_index_wraps",
)
def invalid_is_an_error(device: Device) -> None:
    device.need_index()
    beyond = torch.accelerator.device_count()
    expect.raises(
        RuntimeError,
        lambda: torch.empty(1, device=torch.device(device.type, beyond)),
        f"torch.empty(1, device='{device.type}:{beyond}')",
    )
    module = device.module
    if hasattr(module, "set_device"):
        expect.raises(
            (RuntimeError, ValueError, AssertionError), lambda: module.set_device(beyond), f"set_device({beyond})"
        )
    expect.raises((RuntimeError, ValueError), lambda: torch.accelerator.set_device_index(beyond), f"set({beyond})")
    expect.equal(torch.accelerator.current_device_index(), 0, "current index after refused indices")


@clause(
    "registration/index/module-context-agrees",
    words="torch.NAME.device and torch.accelerator speak of the same current device.",
    source="torch/accelerator/__init__.py, current_device_index",
    fault="device_context_does_not_restore",
    devices=2,
)
def module_context_agrees(device: Device) -> None:
    module = device.module
    with module.device(1):
        expect.equal(torch.accelerator.current_device_index(), 1, "accelerator's index inside torch.NAME.device(1)")
        expect.equal(module.current_device(), 1, "torch.NAME.current_device() inside torch.NAME.device(1)")
    try:
        expect.equal(module.current_device(), 0, "torch.NAME.current_device() after the block")
    finally:
        torch.accelerator.set_device_index(0)


@clause(
    "registration/default-device/context",
    words="Inside `with torch.device(...)` factories make tensors on that device, and the block leaves no trace.",
    source="https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device",
    fault="device_context_ignored",
)
def default_device_context(device: Device) -> None:
    with device.first:
        expect.on_device(torch.zeros(2), device.first, "torch.zeros(2) inside `with device`")
        expect.on_device(torch.tensor([1, 2]), device.first, "torch.tensor inside `with device`")
    expect.on_device(torch.zeros(2), torch.device("cpu"), "torch.zeros(2) after `with device`")


@clause(
    "registration/module-method/moves-modules",
    words="Module.to(device) moves parameters and buffers and keeps the Parameter objects and their values.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to",
    fault="module_to_replaces_parameters",
)
def moves_modules(device: Device) -> None:
    module = torch.nn.BatchNorm1d(3)
    weight, before = module.weight, module.weight.detach().clone()
    module.to(device.first)
    expect.on_device(module.weight, device.first, "module.weight after .to(device)")
    assert module.running_mean is not None
    expect.on_device(module.running_mean, device.first, "module.running_mean after .to(device)")
    expect.true(module.weight is weight, "another Parameter", "the same object", "module.weight after .to(device)")
    expect.values(module.weight, before, "module.weight after .to(device)")
