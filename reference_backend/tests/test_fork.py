"""What a process may do that was forked after the device was initialised: nothing, with a clear error."""

import json

import pytest
from python_process import output_of

STATEMENTS = [
    "torch.ones(3, device='neuron')",
    "tensor.add_(1)",
    "tensor.cpu()",
    "tensor[0].item()",
    "torch.accelerator.synchronize()",
    "torch.accelerator.set_device_index(1)",
    "torch.accelerator.memory_stats()",
    "torch.accelerator.empty_cache()",
    "torch.zeros(3).pin_memory()",
    "event.synchronize()",
    "torch.Stream('neuron').synchronize()",
    "torch.randn(3, device='neuron')",
]

IN_CHILDREN = """
    import json, os, sys, torch, neuron_ref
    neuron_ref.activate()
    tensor = torch.ones(1000, device="neuron")
    event = torch.Event("neuron")
    event.record()
    for number, statement in enumerate(STATEMENTS):
        child = os.fork()
        if child == 0:
            try:
                exec(statement)
            except RuntimeError as error:
                message = str(error)
            else:
                message = "no error"
            print(json.dumps({statement: message}), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    assert tensor.cpu().eq(1).all()
"""


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    """What each statement raised, each in a child of its own of one process."""
    printed = output_of(IN_CHILDREN.replace("STATEMENTS", repr(STATEMENTS)))
    return {key: value for line in printed.splitlines() for key, value in json.loads(line).items()}


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_use_in_a_forked_child_raises_and_names_spawn(statement: str, messages: dict[str, str]) -> None:
    assert "Cannot re-initialize neuron in forked subprocess" in messages[statement]
    assert "'spawn'" in messages[statement]


def test_a_child_cannot_write_into_the_tensors_of_its_parent() -> None:
    output_of(
        """
        import os, torch, neuron_ref
        from neuron_ref import _C
        neuron_ref.activate()
        tensor = torch.ones(1000, device="neuron")
        alias = _C.alias_host(tensor)
        child = os.fork()
        if child == 0:
            alias.fill_(5)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), status
        assert tensor.cpu().eq(1).all()
        """
    )


def test_inherited_tensors_are_dropped_in_the_child_without_harm() -> None:
    printed = output_of(
        """
        import gc, os, torch, neuron_ref
        neuron_ref.activate()
        tensors = [torch.ones(1000, device="neuron") for _ in range(100)]
        child = os.fork()
        if child == 0:
            del tensors
            gc.collect()
            total = sum(torch.ones(1 << 16).sum().item() for _ in range(50))
            print(total, flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert all(tensor.cpu().eq(1).all() for tensor in tensors)
        """
    )
    assert float(printed) == 50 * (1 << 16)


def test_the_cpu_side_of_torch_keeps_working_in_the_child() -> None:
    printed = output_of(
        """
        import os, torch, neuron_ref
        neuron_ref.activate()
        child = os.fork()
        if child == 0:
            print(torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 3, 3)).item(), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert float(printed) == 9


def test_a_process_forked_before_activation_has_a_device_of_its_own() -> None:
    output_of(
        """
        import os, torch, neuron_ref
        child = os.fork()
        if child == 0:
            neuron_ref.activate()
            os._exit(0 if torch.ones(3, device="neuron").sum().item() == 3 else 1)
        assert os.waitpid(child, 0)[1] == 0
        """
    )


def test_a_spawned_worker_may_use_the_device() -> None:
    from neuron_ref import _C

    assert not _C.is_in_bad_fork()
    printed = output_of(
        """
        import neuron_ref, torch
        neuron_ref.activate()
        import subprocess, sys
        program = "import torch, neuron_ref; neuron_ref.activate(); print(torch.ones(2, device='neuron').sum().item())"
        print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)
        """
    )
    assert float(printed) == 2
