"""Random state: generators have a state that can be saved, set, advanced and kept apart."""

from __future__ import annotations

import torch

from .. import expect
from ..clause import clause
from ..target import Device

COUNT = 4096


def draw(device: Device, place: torch.device | None = None, count: int = 64) -> torch.Tensor:
    """Uniform numbers of a device's default generator, on the CPU."""
    return torch.rand(count, device=place or device.first).to("cpu")


@clause(
    "random/seed/reproduces",
    words="torch.manual_seed makes the device repeat its numbers; another seed gives others.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.manual_seed.html",
    fault="rng_seed_ignored",
    profile="smoke",
)
def seed_reproduces(device: Device) -> None:
    torch.manual_seed(7)
    first = draw(device)
    torch.manual_seed(7)
    expect.values(draw(device), first, "rand after the same seed")
    torch.manual_seed(8)
    expect.true(not torch.equal(draw(device), first), "the same numbers", "others", "rand after another seed")


@clause(
    "random/state/advances",
    words="Each random call advances the generator: the next call gives other numbers, and the state differs.",
    source="https://docs.pytorch.org/docs/stable/notes/randomness.html",
    fault="rng_does_not_advance",
    profile="smoke",
)
def state_advances(device: Device) -> None:
    before = device.get_rng_state()
    first = draw(device)
    after = device.get_rng_state()
    expect.true(not torch.equal(before, after), "the same state", "another", "generator state after rand")
    expect.true(not torch.equal(draw(device), first), "the same numbers", "others", "a second rand")


@clause(
    "random/state/round-trip",
    words="Setting a saved state repeats exactly what followed it, also after an odd number of draws.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.get_rng_state.html",
    fault="rng_state_truncated",
)
def state_round_trip(device: Device) -> None:
    torch.manual_seed(3)
    draw(device, count=13)
    torch.randn(5, device=device.first)
    state = device.get_rng_state()
    expect.equal((state.dtype, str(state.device)), (torch.uint8, "cpu"), "dtype and device of a state")
    wanted = [
        draw(device),
        torch.randn(33, device=device.first).cpu(),
        torch.randint(99, (17,), device=device.first).cpu(),
    ]
    device.set_rng_state(state)
    got = [
        draw(device),
        torch.randn(33, device=device.first).cpu(),
        torch.randint(99, (17,), device=device.first).cpu(),
    ]
    for name, one, other in zip(("rand", "randn", "randint"), got, wanted, strict=True):
        expect.values(one, other, f"{name} after set_rng_state")


@clause(
    "random/state/set-is-read-back",
    words="The state that was set is the state that is read.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.set_rng_state.html",
    fault="set_rng_state_ignored",
)
def set_is_read_back(device: Device) -> None:
    state = device.get_rng_state()
    draw(device)
    device.set_rng_state(state)
    expect.equal(torch.equal(device.get_rng_state(), state), True, "get_rng_state equals what was set")


@clause(
    "random/state/saved-is-a-copy",
    words="A saved state does not change when the generator goes on.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.get_rng_state.html",
    fault="rng_state_is_live",
)
def saved_is_a_copy(device: Device) -> None:
    state = device.get_rng_state()
    kept = state.clone()
    draw(device)
    expect.equal(torch.equal(state, kept), True, "a saved state is as it was after further draws")


@clause(
    "random/devices/are-independent",
    words="Drawing on one device does not move the generator of another, nor the CPU's.",
    source="https://docs.pytorch.org/docs/stable/notes/randomness.html",
    fault="get_rng_state_of_first_device",
    devices=2,
)
def devices_are_independent(device: Device) -> None:
    torch.manual_seed(0)
    second, host = device.get_rng_state(device.second), torch.get_rng_state()
    draw(device, device.first)
    expect.equal(torch.equal(device.get_rng_state(device.second), second), True, "second device's state unchanged")
    expect.equal(torch.equal(torch.get_rng_state(), host), True, "CPU state unchanged by a draw on the device")
    first = device.get_rng_state(device.first)
    draw(device, device.second)
    expect.equal(torch.equal(device.get_rng_state(device.first), first), True, "first device's state unchanged")
    moved = device.get_rng_state(device.second)
    expect.equal(torch.equal(moved, second), False, "second device's state unchanged by its own draw")


@clause(
    "random/host/does-not-move-device",
    words="Drawing on the CPU does not move the device's generator, and the other way round.",
    source="https://docs.pytorch.org/docs/stable/notes/randomness.html",
    fault="rng_draws_from_the_host",
    needs=("generator",),
)
def host_and_device(device: Device) -> None:
    state, host = device.get_rng_state(), torch.get_rng_state()
    torch.rand(10)
    expect.equal(torch.equal(device.get_rng_state(), state), True, "device state unchanged by a draw on the CPU")
    host = torch.get_rng_state()
    draw(device)
    expect.equal(torch.equal(torch.get_rng_state(), host), True, "CPU state unchanged by a draw on the device")


@clause(
    "random/seed/reaches-all-devices",
    words="torch.manual_seed seeds every device, not only the current one.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.manual_seed.html",
    fault="manual_seed_all_seeds_first_device_only",
    devices=2,
)
def seed_reaches_all(device: Device) -> None:
    torch.manual_seed(11)
    first = [draw(device, place) for place in (device.first, device.second)]
    torch.manual_seed(11)
    for name, place, wanted in zip(("first", "second"), (device.first, device.second), first, strict=True):
        expect.values(draw(device, place), wanted, f"rand on the {name} device after torch.manual_seed")


@clause(
    "random/fork/restores",
    words="torch.random.fork_rng puts the generators of device and CPU back when its block is left.",
    source="https://docs.pytorch.org/docs/stable/random.html#torch.random.fork_rng",
    fault="rng_state_not_restored",
)
def fork_restores(device: Device) -> None:
    torch.manual_seed(5)
    wanted = draw(device)
    torch.manual_seed(5)
    devices = list(range(device.count)) if device.has_index else []
    with torch.random.fork_rng(devices, device_type=device.type if device.has_index else "cuda"):
        torch.manual_seed(99)
        draw(device, count=100)
    expect.values(draw(device), wanted, "rand after fork_rng")


@clause(
    "random/generator/is-its-own",
    words="A torch.Generator of the device has a seed, reproduces, and leaves the default generator alone.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Generator.html",
    fault="rng_generator_ignored",
)
def generator_is_its_own(device: Device) -> None:
    generator = torch.Generator(device=device.first)
    expect.equal(generator.device.type, device.type, "generator.device.type")
    generator.manual_seed(21)
    expect.equal(generator.initial_seed(), 21, "generator.initial_seed()")
    state = device.get_rng_state()
    first = torch.rand(32, device=device.first, generator=generator).cpu()
    second = torch.rand(32, device=device.first, generator=generator).cpu()
    expect.equal(torch.equal(device.get_rng_state(), state), True, "default generator untouched by another one")
    expect.true(not torch.equal(first, second), "the same numbers twice", "others", "a second rand(generator=...)")
    generator.manual_seed(21)
    expect.values(torch.rand(32, device=device.first, generator=generator), first, "rand after generator.manual_seed")


@clause(
    "random/generator/state-and-clone",
    words="A generator's state can be moved to another generator, and a clone goes on from the same place on its own.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Generator.html",
    fault="rng_state_truncated",
)
def generator_state(device: Device) -> None:
    one = torch.Generator(device=device.first)
    one.manual_seed(4)
    torch.rand(9, device=device.first, generator=one)
    other = torch.Generator(device=device.first)
    other.set_state(one.get_state())
    copy = one.clone_state() if hasattr(one, "clone_state") else None
    wanted = torch.rand(20, device=device.first, generator=one).cpu()
    expect.values(torch.rand(20, device=device.first, generator=other), wanted, "rand from a generator given the state")
    if copy is not None:
        expect.values(torch.rand(20, device=device.first, generator=copy), wanted, "rand from a cloned generator")


@clause(
    "random/generator/seed-is-fresh",
    words="Generator.seed() sets a new seed, returns it, and numbers change with it.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.Generator.html#torch.Generator.seed",
    fault="rng_seed_ignored",
)
def seed_is_fresh(device: Device) -> None:
    generator = torch.Generator(device=device.first)
    seeds = [generator.seed() for _ in range(3)]
    expect.equal(generator.initial_seed(), seeds[-1], "initial_seed() after seed()")
    expect.true(len(set(seeds)) > 1, seeds, "different seeds", "three calls of Generator.seed()")


@clause(
    "random/distribution/uniform-and-normal",
    words="rand is uniform on [0, 1), randn has mean 0 and deviation 1, within six standard errors.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.randn.html",
    fault="normal_is_too_wide",
)
def uniform_and_normal(device: Device) -> None:
    torch.manual_seed(1)
    uniform = torch.rand(COUNT, device=device.first).cpu().double()
    least, most = float(uniform.min()), float(uniform.max())
    expect.true(least >= 0 and most < 1, (least, most), "inside [0, 1)", "range of rand")
    expect.near(float(uniform.mean()), 0.5, 6 * (1 / 12 / COUNT) ** 0.5, "mean of rand")
    normal = torch.randn(COUNT, device=device.first).cpu().double()
    expect.near(float(normal.mean()), 0.0, 6 / COUNT**0.5, "mean of randn")
    expect.near(float(normal.std()), 1.0, 6 / (2 * COUNT) ** 0.5, "deviation of randn")


@clause(
    "random/distribution/permutation-and-integers",
    words="randperm is a permutation that depends on the seed; randint covers its range and no more.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.randperm.html",
    fault="rng_does_not_advance",
)
def permutation_and_integers(device: Device) -> None:
    first = torch.randperm(257, device=device.first).cpu()
    expect.equal(sorted(first.tolist()), list(range(257)), "sorted randperm(257)")
    second = torch.randperm(257, device=device.first).cpu()
    expect.true(not torch.equal(first, second), "the same order", "another", "a second randperm")
    integers = torch.randint(-2, 5, (COUNT,), device=device.first).cpu()
    expect.equal(sorted(set(integers.tolist())), list(range(-2, 5)), "values of randint(-2, 5)")


@clause(
    "random/dropout/drops-its-share",
    words="Dropout zeroes about its share, scales the rest, and drops other elements the next time.",
    source="https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html",
    fault="rng_does_not_advance",
)
def dropout_share(device: Device) -> None:
    ones = torch.ones(COUNT, device=device.first)
    first = torch.nn.functional.dropout(ones, 0.25).cpu()
    second = torch.nn.functional.dropout(ones, 0.25).cpu()
    share = float(first.eq(0).double().mean())
    expect.near(share, 0.25, 6 * (0.25 * 0.75 / COUNT) ** 0.5, "share of zeros after dropout(0.25)")
    kept = first[first.ne(0)]
    expect.near(float(kept.min()), 1 / 0.75, 1e-5, "what is kept after dropout(0.25)")
    expect.true(not torch.equal(first, second), "the same elements", "others", "a second dropout")
