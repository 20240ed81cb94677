"""The part of a build that needs torch: `neuron_ref.build` runs this file in a process of its own.

It is a process of its own because torch's build extension writes straight to file descriptor 1, which the parent turns
into progress, and because the parent recognises an up-to-date build without importing torch.
"""

import argparse
from pathlib import Path

# No -march: the library must run wherever the installed torch runs.
_FLAGS = {
    "release": ["-O2", "-g0"],
    "debug": ["-O0", "-g"],
    "address": ["-O1", "-g", "-fsanitize=address", "-fno-omit-frame-pointer"],
    "thread": ["-O1", "-g", "-fsanitize=thread", "-fno-omit-frame-pointer"],
}
_WARNINGS = ["-Wall", "-fvisibility=hidden"]


def compile_library(sources: list[Path], include: Path, work: Path, flavour: str) -> None:
    """Compile and link `sources` into ``work/lib/neuron_ref/_C*.so``; what is up to date is left alone."""
    from setuptools import setup  # type: ignore[import-untyped]
    from torch.utils.cpp_extension import BuildExtension, CppExtension

    flags = _FLAGS[flavour]
    sanitize = [flag for flag in flags if flag.startswith("-fsanitize")]
    extension = CppExtension(
        "neuron_ref._C",
        [str(source) for source in sources],
        include_dirs=[str(include)],
        extra_compile_args=[*_WARNINGS, *flags],
        extra_link_args=["-pthread", *sanitize],
    )
    setup(
        name="neuron_ref_library",
        packages=[],
        ext_modules=[extension],
        cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
        script_args=["build_ext", "--build-lib", str(work / "lib"), "--build-temp", str(work / "objects")],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--include", type=Path, required=True)
    parser.add_argument("--flavour", choices=sorted(_FLAGS), required=True)
    parser.add_argument("sources", nargs="+", type=Path)
    arguments = parser.parse_args()
    compile_library(arguments.sources, arguments.include, arguments.work, arguments.flavour)
