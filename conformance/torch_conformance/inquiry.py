"""Run by path in a device interpreter: where things are in there, found without importing any of them.

Standard library only and Python 3.10 clean. Prints one JSON object: the interpreter's version, the real path
and version of ``torch``, the versions of packages that decide which cases exist, and for each name given the file and
folder of the module.
"""

import sys

# The folder of this file is first on sys.path, and its `case.py` or `spec.py` must not stand for anyone's module.
del sys.path[0]

import importlib.metadata  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402


def where(name: str) -> "dict[str, str] | None":
    """File and folder of a top-level module; None when there is no such module."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if found is None:
        return None
    folders = list(found.submodule_search_locations or [])
    if not folders and found.origin in (None, "built-in", "frozen"):
        return {"file": "", "folder": ""}
    return {"file": found.origin or "", "folder": os.path.realpath(folders[0]) if folders else ""}


def version(name: str) -> str:
    """Version of an installed distribution; empty when it is absent."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def main() -> None:
    """Answer on stdout."""
    torch = where("torch")
    folder = torch["folder"] if torch else ""
    json.dump(
        {
            "python": sys.version.split()[0],
            "torch_folder": folder,
            "packages": {name: version(name) for name in ("torch", "numpy", "scipy", "expecttest")},
            "modules": {name: where(name) for name in sys.argv[1:]},
            "path": [entry for entry in sys.path if entry],
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
