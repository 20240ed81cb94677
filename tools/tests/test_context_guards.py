"""What stands around a hit decides: each test is one reason to call it right, or to call it wrong."""

from __future__ import annotations

from scan_samples import defect_lines, findings, verdicts


def test_an_early_return_for_other_devices_makes_the_rest_cuda_code() -> None:
    code = 'import torch\ndef f(x):\n    if x.device.type != "cuda":\n        return\n    torch.cuda.synchronize()\n'
    assert defect_lines(code) == {3}  # the gate is too narrow; what it guards is not reported again


def test_an_assert_on_the_device_is_a_guard() -> None:
    code = "import torch\ndef f(x):\n    assert x.is_cuda\n    torch.cuda.empty_cache()\n"
    assert ("U021", "defect") not in verdicts(code)


def test_the_else_of_a_cpu_test_is_no_guard() -> None:
    code = (
        'import torch\ndef f(d):\n    if d.type == "cpu":\n'
        "        return 1\n    else:\n        torch.cuda.synchronize()\n"
    )
    assert defect_lines(code) == {6}


def test_the_condition_of_a_comprehension_is_a_guard() -> None:
    code = 'import torch\ndef f(ds):\n    return [torch.cuda.current_stream(d) for d in ds if d.type == "cuda"]\n'
    assert ("U021", "defect") not in verdicts(code)


def test_the_first_operand_of_and_guards_the_second() -> None:
    code = "import torch\ndef f(x):\n    return x.is_cuda and torch.cuda.current_device() == 0\n"
    assert ("U021", "defect") not in verdicts(code)


def test_the_second_operand_of_and_does_not_guard_the_first() -> None:
    code = "import torch\ndef f(x):\n    return torch.cuda.current_device() == 0 and x.is_cuda\n"
    assert ("U021", "defect") in verdicts(code)


def test_a_guard_does_not_reach_past_its_block() -> None:
    code = "import torch\ndef f(x):\n    if x.is_cuda:\n        pass\n    torch.cuda.synchronize()\n"
    assert defect_lines(code) == {5}


def test_a_capability_test_makes_the_gate_cuda_only() -> None:
    code = (
        "import torch\ndef f():\n    if torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0):\n"
        "        torch.cuda.synchronize()\n"
    )
    assert defect_lines(code) == set()


def test_a_module_that_is_about_cudnn_by_name_is_left_alone() -> None:
    from uncuda.project import Project
    from uncuda.scanner import scan_file

    data = b"import torch\ndef f():\n    torch.cuda.synchronize()\n"
    assert scan_file(Project({"a/cudnn_plan.py": data}), "a/cudnn_plan.py") == []
    assert scan_file(Project({"a/plan.py": data}), "a/plan.py") != []


def test_a_cuda_named_function_that_general_code_calls_is_general() -> None:
    code = (
        "import torch\ndef time_with_cuda_events(f):\n    torch.cuda.synchronize()\n\n"
        "def schedule(f):\n    return time_with_cuda_events(f)\n"
    )
    assert defect_lines(code) == {3}


def test_a_cuda_named_function_that_is_called_behind_a_test_is_left_alone() -> None:
    code = (
        "import torch\ndef time_with_cuda_events(f):\n    torch.cuda.synchronize()\n\n"
        "def schedule(f, x):\n    if x.is_cuda:\n        return time_with_cuda_events(f)\n"
    )
    assert 3 not in defect_lines(code)


def test_a_function_registered_under_the_cuda_key_is_left_alone() -> None:
    code = '@op.impl("CUDA")\ndef kernel(x):\n    torch.cuda.synchronize()\n'
    assert defect_lines("import torch\n" + code) == set()


def test_a_branch_for_privateuse1_beside_a_cuda_branch_closes_the_matter() -> None:
    code = (
        "import torch\ndef f(d):\n    if d.type == 'cuda':\n        torch.cuda.synchronize()\n"
        "    elif d.type == torch._C._get_privateuse1_backend_name():\n        torch.accelerator.synchronize()\n"
    )
    assert verdicts(code) == set()


def test_code_that_only_a_type_checker_reads_is_left_alone() -> None:
    code = "import typing\nimport torch\nif typing.TYPE_CHECKING:\n    d = torch.cuda.current_device()\n"
    assert verdicts(code) == set()


def test_code_after_a_return_is_left_alone() -> None:
    assert verdicts("import torch\ndef f():\n    return 1\n    torch.cuda.synchronize()\n") == set()


def test_an_alias_of_an_import_is_followed() -> None:
    assert ("U021", "defect") in verdicts("from torch import cuda as c\ndef f():\n    c.synchronize()\n")


def test_a_local_object_called_cuda_is_not_torch_cuda() -> None:
    assert verdicts("def f(cuda):\n    cuda.synchronize()\n") == set()


def test_membership_in_a_constant_of_another_module_is_found_without_the_word_cuda() -> None:
    found = verdicts(
        "from .kinds import GPUS\ndef f(d):\n    return d.type in GPUS\n", kinds='GPUS = ("cuda", "xpu")\n'
    )
    assert found == {("U031", "defect")}


def test_a_re_exported_constant_is_followed() -> None:
    found = verdicts(
        "from .front import GPUS\ndef f(d):\n    return d.type in GPUS\n",
        front="from .kinds import GPUS\n",
        kinds='GPUS = ("cuda", "xpu")\n',
    )
    assert found == {("U031", "defect")}


def test_a_table_that_another_module_adds_to_is_a_registry() -> None:
    code = "from .kinds import MAP\ndef f(d):\n    return MAP[d.type]\n"
    table = 'MAP = {"cuda": 1, "xpu": 2}\n'
    assert verdicts(code, kinds=table) == {("U031", "defect")}
    assert verdicts(code, kinds=table, plugin="from .kinds import MAP\nMAP['x'] = 3\n") == set()


def test_a_default_that_every_caller_overrides_is_for_review() -> None:
    code = 'def _handle(kind="cuda"):\n    return kind\n'
    assert ("U001", "defect") in verdicts(code)
    assert verdicts(code, user="from .module import _handle\n_handle('xpu')\n") == {("U001", "review")}
    assert ("U001", "defect") in verdicts(code, user="from .module import _handle\n_handle()\n")


def test_every_finding_gives_its_reasons() -> None:
    assert all(f.reasons for f in findings("import torch\ndef f():\n    torch.cuda.synchronize()\n"))


def test_a_fingerprint_survives_lines_added_above() -> None:
    code = "import torch\ndef f():\n    torch.cuda.synchronize()\n"
    (before,) = findings(code)
    (after,) = findings("\n\n# more\n" + code)
    assert before.location.line != after.location.line
    assert before.fingerprint == after.fingerprint
