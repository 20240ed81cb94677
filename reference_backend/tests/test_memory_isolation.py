"""Device memory that the host cannot touch, and what a process says before it dies of trying."""

import ctypes
import signal

import pytest
import torch
from python_process import run_python

READ = """
    import ctypes, faulthandler, torch, neuron_ref
    {before}
    neuron_ref.activate()
    {after}
    tensor = torch.zeros(100, device="neuron:1")
    ctypes.c_char.from_address(tensor.data_ptr() + 12).value
    print("survived")
"""


def read_device_memory(before: str = "", after: str = "") -> tuple[int, str]:
    program = READ.format(before=before, after=after)
    done = run_python(program)
    assert "survived" not in done.stdout
    return done.returncode, done.stderr


def test_a_host_read_of_device_memory_names_address_block_offset_and_device() -> None:
    code, message = read_device_memory()
    assert code == -signal.SIGSEGV
    assert "neuron: host code accessed device memory at 0x" in message
    assert "device: neuron:1" in message
    assert "size 400 bytes, offset 12" in message
    assert ".cpu()" in message


@pytest.mark.parametrize("moment", ["before", "after"])
def test_the_report_and_faulthandler_both_speak_whichever_was_installed_first(moment: str) -> None:
    code, message = read_device_memory(**{moment: "faulthandler.enable()"})
    assert code == -signal.SIGSEGV
    assert message.count("neuron: host code accessed device memory") == 1
    assert "size 400 bytes, offset 12" in message
    assert "Fatal Python error: Segmentation fault" in message


def test_a_segfault_elsewhere_is_not_reported_as_device_memory() -> None:
    done = run_python("import ctypes, neuron_ref; neuron_ref.activate(); ctypes.c_char.from_address(8).value")
    assert done.returncode == -signal.SIGSEGV
    assert "neuron:" not in done.stderr


def test_a_segfault_signal_sent_by_someone_still_ends_the_process() -> None:
    done = run_python(
        "import os, signal, neuron_ref; neuron_ref.activate(); os.kill(os.getpid(), signal.SIGSEGV); print('survived')"
    )
    assert done.returncode == -signal.SIGSEGV
    assert "survived" not in done.stdout


def test_memory_of_a_freed_tensor_is_reported_as_freed() -> None:
    done = run_python(
        """
        import ctypes, torch, neuron_ref
        neuron_ref.activate()
        address = torch.zeros(100, device="neuron").data_ptr()
        ctypes.c_char.from_address(address).value
        """
    )
    assert "already freed" in done.stderr


def test_a_host_write_through_a_raw_pointer_dies_too() -> None:
    done = run_python(
        """
        import ctypes, torch, neuron_ref
        neuron_ref.activate()
        tensor = torch.zeros(4, device="neuron")
        ctypes.memset(tensor.data_ptr(), 1, 4)
        """
    )
    assert done.returncode == -signal.SIGSEGV


def test_devices_have_memory_of_their_own() -> None:
    first = torch.arange(1000.0, device="neuron:0")
    second = torch.zeros(1000, device="neuron:1")
    second.fill_(7)
    assert torch.equal(first.cpu(), torch.arange(1000.0))
    assert first.data_ptr() != second.data_ptr()


def test_the_host_alias_shows_the_same_bytes_and_keeps_them_alive() -> None:
    from neuron_ref import _C

    tensor = torch.arange(4.0, device="neuron")
    alias = _C.alias_host(tensor)
    assert alias.device.type == "cpu"
    tensor.add_(1)
    assert alias.tolist() == [1, 2, 3, 4]
    del tensor
    torch.full((4,), 9.0, device="neuron")
    assert alias.tolist() == [1, 2, 3, 4]
    assert ctypes.c_float.from_address(alias.data_ptr()).value == 1
