"""`neuron-ref enable`: what libraries look for is there, and goes away again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from neuron_ref import NeuronRefError, enabling
from python_process import import_path, output_of


def test_after_enabling_importing_torch_activates_the_device(tmp_path: Path) -> None:
    enabling.enable(tmp_path)
    said = output_of("import torch; print((torch.ones(2, device='neuron') + 1).tolist())", path=tmp_path)
    assert said == "[2.0, 2.0]\n"


def test_loading_can_be_switched_off_for_a_process(tmp_path: Path) -> None:
    enabling.enable(tmp_path)
    program = "import torch; print(hasattr(torch, 'neuron'))"
    assert output_of(program, path=tmp_path, environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}) == "False\n"


def test_libraries_find_the_package_the_distribution_and_the_functions(tmp_path: Path) -> None:
    enabling.enable(tmp_path)
    said = output_of(
        """
        import importlib.metadata, importlib.util
        import torch, torch_neuronx
        print(importlib.util.find_spec("torch_neuronx") is not None, importlib.metadata.version("torch_neuronx"))
        print(torch_neuronx.device_count() == torch.neuron.device_count(), torch.neuron.is_available())
        """,
        path=tmp_path,
    )
    assert said.startswith("True 0.1.0+neuron.ref\nTrue True\n")


def test_the_compile_backend_is_found_by_name_and_computes_on_the_device(tmp_path: Path) -> None:
    enabling.enable(tmp_path)
    said = output_of(
        """
        import torch
        def f(x):
            return torch.relu(x) * 2
        x = torch.tensor([-1.0, 3.0], device="neuron", requires_grad=True)
        compiled = torch.compile(f, backend="neuron", fullgraph=True)
        y = compiled(x)
        y.sum().backward()
        print(y.tolist(), x.grad.tolist(), y.device)
        try:
            torch.compile(f, backend="neuron", mode="max-autotune")(x)
        except Exception as error:
            print("knows no modes" in str(error))
        """,
        path=tmp_path,
    )
    assert said == "[0.0, 6.0] [0.0, 2.0] neuron:0\nTrue\n"


def test_everything_that_was_written_is_recorded(tmp_path: Path) -> None:
    enabling.enable(tmp_path)
    (record,) = tmp_path.glob("*.dist-info/RECORD")
    recorded = {line.split(",")[0] for line in record.read_text().splitlines()}
    written = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert recorded == written


def test_enabling_twice_is_enabling_once(tmp_path: Path) -> None:
    assert enabling.enable(tmp_path) == enabling.enable(tmp_path)


def _command(*arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "neuron_ref.cli", *arguments],
        env=os.environ | {"PYTHONPATH": import_path(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_another_distribution_of_the_name_is_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / "torch_neuronx-2.13.dist-info"
    foreign.mkdir()
    (foreign / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-neuronx\nVersion: 2.13\n")
    for command in ("enable", "disable"):
        done = _command(command, path=tmp_path)
        assert done.returncode == 3
        assert "torch-neuronx 2.13" in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == [foreign.name]


def test_a_package_of_the_name_without_a_distribution_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "torch_neuronx").mkdir()
    (tmp_path / "torch_neuronx" / "__init__.py").write_text("")
    done = _command("enable", path=tmp_path)
    assert done.returncode == 3
    assert str(tmp_path / "torch_neuronx") in done.stderr


def test_disabling_removes_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enabling.enable(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert len(enabling.disable(tmp_path)) == 2
    assert list(tmp_path.iterdir()) == []


def test_disabling_what_is_not_enabled_does_nothing(tmp_path: Path) -> None:
    done = _command("disable", path=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("nothing to remove")


def test_a_folder_that_cannot_be_written_is_an_error_and_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "torch_neuronx").write_text("a file where the package should be")
    with pytest.raises(NeuronRefError, match="cannot be written"):
        enabling.enable(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["torch_neuronx"]
