"""What a path on the command line means; `torch` is the torch of this environment, found without importing it."""

from __future__ import annotations

from pathlib import Path

from .tree import TreeError, installed_tree


class PlaceError(Exception):
    """Nothing there to read."""


def locate(argument: str) -> tuple[Path, Path | None]:
    """The folder or file to read, and what its paths are relative to (None: the folder itself).

    Raises:
        PlaceError: no such path, or no torch is installed.
    """
    path = Path(argument)
    if argument == "torch" and not path.exists():
        try:
            tree = installed_tree()
        except TreeError as error:
            raise PlaceError(str(error)) from error
        return tree.package, tree.root
    if not path.exists():
        raise PlaceError(f"no such file or folder: {argument}")
    return path, None
