"""Seeds: the same case and run seed give the same samples and the same random state in every process."""

from __future__ import annotations

import hashlib


def case_seed(identifier: str, run_seed: int) -> int:
    """A seed of 63 bits from a case id and the seed of the run."""
    digest = hashlib.blake2b(f"{run_seed}:{identifier}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def sample_seed(seed: int, index: int) -> int:
    """The seed under which sample ``index`` of a case with that seed runs."""
    digest = hashlib.blake2b(f"{seed}:{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
