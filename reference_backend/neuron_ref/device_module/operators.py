"""Which operators ran on the device, and which left it."""

from neuron_ref import _C


def set_op_tracking(enabled: bool) -> None:
    """Turn the counting of operators on or off; it is off at first, because it costs each operator a look-up."""
    _C.count_ops(enabled)


def clear_op_tracking() -> None:
    """Forget what was counted."""
    _C.executed_ops(True)


def get_executed_ops() -> dict[str, int]:
    """Operators that ran on the device since the last `clear_op_tracking`, and how often, while counting was on."""
    return _C.executed_ops(False)


def get_fallback_ops() -> dict[str, int]:
    """Operators whose data left the device to be computed on the CPU.

    None ever does: an operator without a kernel in device memory raises NotImplementedError. So this is empty, and
    there to be asked by code that has to tell this device from others.
    """
    return {}
