"""Whether this process has begun to use the device, and whether it may."""

from neuron_ref import _C

_used = False


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that had used the device, and so may not use it."""
    return _C.is_in_bad_fork()


def _lazy_init() -> None:
    """Note that the device is in use from now on; torch calls this before the first tensor is made there.

    Raises:
        RuntimeError: this process was forked from one that had used the device.
    """
    global _used
    if _is_in_bad_fork():
        raise RuntimeError(
            "Cannot re-initialize neuron in forked subprocess. To use neuron with multiprocessing, you must use the "
            "'spawn' start method."
        )
    _used = True


def init() -> None:
    """Begin to use the device; whatever needs it does this by itself."""
    _lazy_init()


def is_initialized() -> bool:
    """Whether this process has begun to use the device: chosen one, made a tensor on one or asked for a stream."""
    return _used and not _is_in_bad_fork()
