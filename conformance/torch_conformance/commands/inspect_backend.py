"""``backends``, ``probe`` and ``list``: what there is, before anything runs."""

from __future__ import annotations

import argparse
import json

from .. import codec
from ..backend import CAPABILITIES
from ..case import Case
from ..discovery import known_backends
from ..errors import EXIT_EXPECTED, UsageError
from ..plan import load_plan
from ..selection import select, why_nothing
from .options import selection_of, spec_of


def backends(options: argparse.Namespace) -> int:
    """List built-in devices and every package that carries a spec file."""
    known = known_backends()
    if options.json:
        print(json.dumps(codec.to_json(known), indent=2))
        return EXIT_EXPECTED
    width = max(len(item.name) for item in known)
    for item in known:
        print(f"{item.name:<{width}}  {item.source or item.origin}")
    print("A name may also be any module that the interpreter can import, or the path of a spec file.")
    return EXIT_EXPECTED


def probe(options: argparse.Namespace) -> int:
    """Start the backend, and set what it was found to do against what it claims; claims are never changed."""
    from ..session import Session

    spec = spec_of(options)
    with Session(spec) as session:
        backend = session.start()
        found = session.probe()
    if options.json:
        print(json.dumps({"backend": codec.to_json(backend), "probe": found}, indent=2))
        return EXIT_EXPECTED
    print(
        f"{spec.name}: device {backend.spec.device}, {backend.count} of them, {backend.device_name or 'without a name'}"
    )
    print(f"  torch   {backend.torch} ({backend.torch_path}), git {backend.torch_git[:12] or 'unknown'}")
    print(f"  python  {backend.python}")
    if backend.build:
        print(f"  build   {backend.build}")
    capabilities = found.get("capabilities", {})
    for name, meaning in CAPABILITIES.items():
        claimed = "claimed" if name in spec.claims else "not claimed"
        seen = {True: "found", False: "not found", None: "not looked for"}[capabilities.get(name)]
        print(f"  {name:<16} {claimed:<12} {seen:<15} {meaning}")
    return EXIT_EXPECTED


def list_cases(options: argparse.Namespace) -> int:
    """Print the ids of the selected cases, in plan order."""
    spec, selection = spec_of(options), selection_of(options)
    plan = load_plan(spec, families=selection.families or None)
    cases = select(plan.cases, selection)
    if not cases:
        raise UsageError(f"there is nothing to list: {why_nothing(plan.cases, selection)}")
    if options.json:
        print(json.dumps([_as_json(case) for case in cases]))
    else:
        print("\n".join(str(case.id) for case in cases))
    return EXIT_EXPECTED


def _as_json(case: Case) -> dict[str, object]:
    identifier = case.id
    return {
        "id": str(identifier),
        "family": identifier.family,
        "subject": identifier.subject,
        "behaviour": identifier.behaviour,
        "dtype": identifier.dtype,
        "variant": identifier.variant,
        "profile": case.profile,
        "cost": case.cost,
        "needs": list(case.needs),
        "requires": list(case.requires),
    }
