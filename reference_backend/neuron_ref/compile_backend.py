"""The torch.compile backend ``neuron``: graphs are differentiated ahead of time and run operator by operator.

Found by name through the entry point that ``neuron-ref enable`` installs.
"""

from typing import Any

import torch

_IGNORED_MODES = (None, "default")


def neuron(module: torch.fx.GraphModule, example_inputs: list[Any], **settings: Any) -> Any:
    """Compile a captured graph.

    Raises:
        ValueError: a ``mode`` other than the default, or ``options``; the device has neither.
    """
    from torch._dynamo.backends.common import aot_autograd

    mode, options = settings.pop("mode", None), settings.pop("options", None)
    if mode not in _IGNORED_MODES or options:
        raise ValueError(
            f"the compile backend 'neuron' knows no modes and no options, but got mode={mode!r}, options={options!r}; "
            "leave both out"
        )
    return aot_autograd(fw_compiler=_run_as_captured)(module, example_inputs)


def _run_as_captured(graph: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
    from torch._functorch._aot_autograd.utils import make_boxed_func

    return make_boxed_func(graph.forward)
