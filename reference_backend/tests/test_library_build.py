"""Building: with a copy of the package that has sources of its own, two small files that need no torch headers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from python_process import PACKAGE, import_path, output_of

_MODULE = """
#include <Python.h>
int answer();
static PyObject* ask(PyObject*, PyObject*) { return PyLong_FromLong(answer()); }
static PyMethodDef methods[] = {{"ask", ask, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
extern "C" __attribute__((visibility("default"))) PyObject* PyInit__C() { return PyModule_Create(&module); }
"""


class Tree:
    """A package that can be built in seconds, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "neuron_ref"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("*.so", "__pycache__", "csrc"))
        self.write("module.cpp", _MODULE)
        self.write("driver/answer.cpp", "int answer() { return 1; }\n")

    def write(self, name: str, text: str) -> None:
        file = self.package / "csrc" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def build(self, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = os.environ | {"PYTHONPATH": import_path(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache")}
        return subprocess.run(
            [sys.executable, "-m", "neuron_ref.build", *options],
            env=variables | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def ask(self) -> str:
        return output_of("from neuron_ref import _C; print(_C.ask())", path=self.folder).strip()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_build_shows_every_file_and_its_library_can_be_imported(tree: Tree) -> None:
    done = tree.build()
    assert done.returncode == 0, done.stderr
    assert "[1/2]" in done.stderr and "[2/2]" in done.stderr
    assert "module.cpp" in done.stderr and "answer.cpp" in done.stderr
    assert done.stdout.startswith("neuron_ref: compiled 2 files")
    assert tree.ask() == "1"


def test_a_second_build_does_nothing_and_a_change_compiles_one_file(tree: Tree) -> None:
    assert tree.build().returncode == 0
    again = tree.build()
    assert again.stdout.startswith("neuron_ref: up to date")
    assert again.stderr == ""
    tree.write("driver/answer.cpp", "int answer() { return 2; }\n")
    changed = tree.build()
    assert changed.stdout.startswith("neuron_ref: compiled 1 files")
    assert tree.ask() == "2"


def test_force_compiles_every_file_again(tree: Tree) -> None:
    assert tree.build().returncode == 0
    assert tree.build("--force").stdout.startswith("neuron_ref: compiled 2 files")


def test_an_error_of_the_compiler_is_shown_without_its_command_and_the_old_library_stays(tree: Tree) -> None:
    assert tree.build().returncode == 0
    tree.write("driver/answer.cpp", "int answer() { return unheard_of; }\n")
    done = tree.build()
    assert done.returncode == 3
    assert "answer.cpp:1:" in done.stderr and "unheard_of" in done.stderr
    assert "1 of its files did not compile" in done.stderr
    assert " -c " not in done.stderr
    assert tree.ask() == "1"


def test_an_error_of_the_linker_is_shown(tree: Tree) -> None:
    tree.write("driver/answer.cpp", "int answer() { return 1; }\n")
    tree.write("driver/again.cpp", "int answer() { return 2; }\n")
    done = tree.build()
    assert done.returncode == 3
    assert "multiple definition" in done.stderr


def test_a_missing_compiler_is_named_with_what_to_install(tree: Tree) -> None:
    done = tree.build(CXX="no-such-compiler")
    assert done.returncode == 3
    assert "no-such-compiler is not in PATH" in done.stderr
    assert "apt install g++" in done.stderr


def test_a_missing_torch_is_named_with_what_to_install(tree: Tree) -> None:
    variables = os.environ | {"PYTHONPATH": import_path(tree.folder)}
    done = subprocess.run(
        # Without site-packages there is no torch.
        [sys.executable, "-S", "-m", "neuron_ref.build"],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "torch cannot be imported" in done.stderr
    assert "-m pip install torch" in done.stderr


def test_missing_ninja_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from neuron_ref import build

    monkeypatch.setattr(build, "_ninja_folders", list)
    with pytest.raises(build.BuildError, match=r"-m pip install ninja"):
        build._require_tools()


def test_a_folder_that_cannot_be_written_is_an_error(tree: Tree) -> None:
    (tree.folder / "cache").write_text("a file where the build folder should be")
    done = tree.build()
    assert done.returncode == 3
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize(
    "options", [["--sanitize", "everything"], ["--jobs", "0"], ["--debug", "--sanitize", "thread"]]
)
def test_wrong_options_are_wrong_usage(tree: Tree, options: list[str]) -> None:
    assert tree.build(*options).returncode == 2


def test_two_builds_at_a_time_both_end_with_the_same_library(tree: Tree) -> None:
    variables = os.environ | {"PYTHONPATH": import_path(tree.folder), "XDG_CACHE_HOME": str(tree.folder / "cache")}
    command = [sys.executable, "-m", "neuron_ref.build"]
    both = [subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted(process.communicate(timeout=120)[0].split(" (")[0].split(" in ")[0] for process in both)
    assert said == ["neuron_ref: compiled 2 files", "neuron_ref: up to date"]
    assert tree.ask() == "1"


def test_a_debug_build_replaces_a_release_build_and_back_without_compiling(tree: Tree) -> None:
    assert tree.build().returncode == 0
    assert "debug" in tree.build("--debug").stdout
    back = tree.build()
    assert back.returncode == 0
    assert "release" in back.stdout
    assert "[1/" not in back.stderr


def test_a_build_is_possible_while_the_device_is_enabled_and_not_built(tree: Tree) -> None:
    # As after `neuron-ref enable` and a change of the sources: importing torch would load the stale library and fail.
    site = tree.folder / "torch_neuronx-1.dist-info"
    site.mkdir()
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-neuronx\nVersion: 1\n")
    (site / "entry_points.txt").write_text("[torch.backends]\ntorch_neuronx = neuron_ref:activate\n")
    assert tree.build().returncode == 0
