"""Attention: the variants of torch.nn.attention that keep state of their own on the device."""

from __future__ import annotations

import torch

from .. import expect
from ..clause import clause
from ..target import Device


@clause(
    "attention/paged/places-its-tables",
    words="PagedAttention puts its page tables on the device it is told, and by default on the current accelerator.",
    source="torch/nn/attention/experimental/_paged_attention.py, PagedAttention",
    fault="copy_drops_last_element",
    cost=3.0,
)
def paged_places_its_tables(device: Device) -> None:
    from torch.nn.attention.experimental._paged_attention import PagedAttention

    told = PagedAttention(4, 2, 2, device=str(device.first))
    expect.on_device(told.page_table, device.first, "PagedAttention(4, 2, 2, device=first).page_table")
    expect.values(told.page_table, torch.full((2, 4), -1), "PagedAttention(4, 2, 2, device=first).page_table")
    if device.is_accelerator:
        for name in ("page_table", "capacity", "physical_to_logical"):
            table = getattr(PagedAttention(4, 2, 2), name)
            expect.equal(table.device.type, device.type, f"PagedAttention(4, 2, 2).{name}.device.type")
