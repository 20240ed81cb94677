"""Changes to live modules that can be taken back, for faults."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch


class Patch:
    """The changes that one fault makes, in order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def attribute(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute of a module, class or object."""
        before = owner.__dict__[name] if name in getattr(owner, "__dict__", {}) else getattr(owner, name)
        setattr(owner, name, value)
        self.on_undo(lambda: setattr(owner, name, before))

    def function(self, original: Any, replacement: object) -> None:
        """Replace a function of ``torch.neuron`` wherever a module of it holds it under its name.

        A fault that reached only one of the names would be seen or not depending on how a caller spells it.
        """
        package = torch.get_device_module("neuron").__name__
        modules = [module for name, module in sys.modules.items() if name == package or name.startswith(f"{package}.")]
        for module in {id(module): module for module in modules}.values():
            self._everywhere(module, original, replacement)

    def _everywhere(self, module: ModuleType, original: Any, replacement: object) -> None:
        for name, value in list(vars(module).items()):
            if value is original:
                self.attribute(module, name, replacement)

    def kernel(self, operator: str, replacement: Callable[..., object]) -> None:
        """Replace the device's kernel of an ``aten`` operator, named as in ``gelu`` or ``clamp.Tensor``."""
        library = torch.library.Library("aten", "IMPL")
        library.impl(operator, replacement, "PrivateUse1", allow_override=True)
        self.on_undo(library._destroy)

    def on_undo(self, action: Callable[[], object]) -> None:
        """Do something when the fault is turned off, before what was registered earlier."""
        self._undo.append(action)

    def undo(self) -> None:
        """Take every change back, the last one first."""
        while self._undo:
            self._undo.pop()()
