"""Importing changes nothing; activating registers once, in time, and refuses clearly."""

import shutil
from pathlib import Path

from python_process import PACKAGE, output_of, run_python


def _copy_of_package(folder: Path) -> Path:
    """The package with its sources and without its library, to be put first on the import path."""
    target = folder / "neuron_ref"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return target


def test_importing_the_package_imports_no_torch() -> None:
    assert output_of("import sys, neuron_ref; print('torch' in sys.modules)") == "False\n"


def test_importing_the_package_after_torch_registers_nothing() -> None:
    said = output_of("""
        import torch, neuron_ref
        print(torch._C._get_privateuse1_backend_name(), hasattr(torch, "neuron"), torch.accelerator.is_available())
    """)
    assert said == "privateuseone False False\n"


def test_activating_makes_the_device_the_accelerator_of_torch() -> None:
    said = output_of("""
        import neuron_ref
        neuron_ref.activate()
        import torch
        print(torch.accelerator.current_accelerator(), torch.neuron.is_available())
        print((torch.ones(2, device="neuron") + 1).cpu().tolist())
    """)
    assert said == "neuron True\n[2.0, 2.0]\n"


def test_activating_again_does_nothing() -> None:
    said = output_of("""
        import neuron_ref, torch
        neuron_ref.activate()
        x = torch.ones(2, device="neuron")
        neuron_ref.activate()
        print(x.sum().item())
    """)
    assert said == "2.0\n"


def test_threads_that_activate_at_the_same_time_register_once() -> None:
    said = output_of("""
        import threading, neuron_ref
        failed = []
        def activate():
            try:
                neuron_ref.activate()
            except Exception as error:
                failed.append(error)
        threads = [threading.Thread(target=activate) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        import torch
        print(failed, torch.neuron.device_count())
    """)
    assert said.startswith("[] ")


def test_a_slot_that_another_backend_renamed_is_refused_by_name() -> None:
    done = run_python("""
        import torch, neuron_ref
        torch.utils.rename_privateuse1_backend("other")
        neuron_ref.activate()
    """)
    assert done.returncode == 1
    assert "ActivationError" in done.stderr
    assert "PrivateUse1 is named 'other'" in done.stderr
    assert "use one backend a process" in done.stderr


def test_another_backend_of_the_same_name_is_refused() -> None:
    done = run_python("""
        import torch, neuron_ref
        torch.utils.rename_privateuse1_backend("neuron")
        neuron_ref.activate()
    """)
    assert done.returncode == 1
    assert "PrivateUse1 is named 'neuron'" in done.stderr


def test_a_missing_build_is_an_error_that_gives_the_command(tmp_path: Path) -> None:
    _copy_of_package(tmp_path)
    done = run_python("import neuron_ref; neuron_ref.activate()", path=tmp_path)
    assert done.returncode == 1
    assert "neuron_ref is not built" in done.stderr
    assert "-m neuron_ref.build" in done.stderr


def test_a_build_from_other_sources_is_an_error_that_says_what_changed(tmp_path: Path) -> None:
    copy = _copy_of_package(tmp_path)
    for library in PACKAGE.glob("_C*.so"):
        shutil.copy(library, copy)
    with (copy / "csrc" / "faults.h").open("a") as file:
        file.write("// changed\n")
    done = run_python("import neuron_ref; neuron_ref.activate()", path=tmp_path)
    assert done.returncode == 1
    assert "the build of neuron_ref is stale (source changed)" in done.stderr
    assert "got:" in done.stderr and "wanted:" in done.stderr and "-m neuron_ref.build" in done.stderr


def test_a_refusal_changes_nothing_so_that_activating_works_once_the_cause_is_gone(tmp_path: Path) -> None:
    copy = _copy_of_package(tmp_path)
    (library,) = PACKAGE.glob("_C*.so")
    said = output_of(
        f"""
        import shutil, neuron_ref, torch
        try:
            neuron_ref.activate()
        except neuron_ref.StaleBuildError:
            print(torch._C._get_privateuse1_backend_name())
        shutil.copy({str(library)!r}, {str(copy)!r})
        neuron_ref.activate()
        print(torch.neuron.is_available())
        """,
        path=tmp_path,
    )
    assert said == "privateuseone\nTrue\n"


def test_device_type_tests_of_torch_are_generated_when_activated_first() -> None:
    said = output_of("""
        import neuron_ref
        neuron_ref.activate()
        import torch
        from torch.testing._internal.common_device_type import instantiate_device_type_tests
        from torch.testing._internal.common_utils import TestCase
        class TestAdd(TestCase):
            def test_add(self, device):
                self.assertEqual(torch.ones(2, device=device) + 1, torch.full((2,), 2.0, device=device))
        instantiate_device_type_tests(TestAdd, globals(), only_for=("neuron",))
        import unittest
        result = unittest.TextTestRunner(verbosity=0).run(
            unittest.defaultTestLoader.loadTestsFromTestCase(TestAddPRIVATEUSE1)
        )
        print(result.testsRun, result.wasSuccessful())
    """)
    assert said == "1 True\n"


def test_submodules_can_be_imported_by_their_torch_names() -> None:
    said = output_of("""
        import neuron_ref
        neuron_ref.activate()
        import torch.neuron.random
        import torch
        print(torch.neuron.random.manual_seed_all is torch.neuron.manual_seed_all)
    """)
    assert said == "True\n"


def test_faults_named_in_the_environment_are_switched_on() -> None:
    program = """
        import neuron_ref
        neuron_ref.activate()
        import torch
        print(torch.neuron.device_count())
    """
    assert output_of(program, environment={"NEURON_REF_DEVICES": "2"}) == "2\n"
    faulty = {"NEURON_REF_DEVICES": "2", "NEURON_REF_FAULTS": "device_count_is_one, autocast_leaks"}
    assert output_of(program, environment=faulty) == "1\n"


def test_an_unknown_fault_in_the_environment_is_refused_with_the_nearest_name() -> None:
    done = run_python(
        "import neuron_ref; neuron_ref.activate()", environment={"NEURON_REF_FAULTS": "device_count_is_two"}
    )
    assert done.returncode == 1
    assert "unknown fault 'device_count_is_two'" in done.stderr
    assert "'device_count_is_one'" in done.stderr
