"""The measuring, with a clock that the test turns by hand."""

import gc
import math

import pytest
from alternating import Subject, compare


class HandClock:
    """Stands still except when an action moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def taking(self, seconds: float) -> Subject:
        def action() -> None:
            self.now += seconds

        return Subject(action)


def test_a_subject_twice_as_slow_has_ratio_two_and_control_one() -> None:
    clock = HandClock()
    found = compare("x", clock.taking(0.001), clock.taking(0.002), turns=5, clock=clock)
    assert found.ratio == pytest.approx(2.0)
    assert found.control == pytest.approx(1.0)


def test_times_are_for_one_call_in_microseconds() -> None:
    clock = HandClock()
    found = compare("x", clock.taking(0.0005), clock.taking(0.001), turns=3, block_s=0.004, clock=clock)
    assert found.repeats == 8
    assert found.baseline_us == pytest.approx(500)
    assert found.measured_us == pytest.approx(1000)


def test_finishing_counts_once_a_block() -> None:
    clock = HandClock()
    slow = clock.taking(0.008)
    measured = Subject(clock.taking(0.001).action, finish=slow.action)
    found = compare("x", clock.taking(0.001), measured, turns=3, block_s=0.008, clock=clock)
    assert found.ratio == pytest.approx(2.0)


def test_a_machine_that_slows_down_all_the_time_does_not_change_the_ratio() -> None:
    clock = HandClock()
    pace = 1.0

    def taking(seconds: float) -> Subject:
        def action() -> None:
            nonlocal pace
            pace *= 1.0005
            clock.now += seconds * pace

        return Subject(action)

    found = compare("x", taking(0.001), taking(0.0015), turns=101, block_s=0.004, clock=clock)
    assert found.ratio == pytest.approx(1.5, rel=0.01)
    assert found.control == pytest.approx(1.0, rel=0.01)


def test_single_turns_that_were_disturbed_do_not_change_the_ratio() -> None:
    clock = HandClock()
    calls = 0

    def disturbed() -> None:
        nonlocal calls
        calls += 1
        clock.now += 0.1 if calls % 7 == 0 else 0.001

    found = compare("x", clock.taking(0.001), Subject(disturbed), turns=41, block_s=0.0005, clock=clock)
    assert found.ratio == pytest.approx(1.0)
    assert found.high == pytest.approx(1.0)


def test_the_control_shows_a_baseline_that_is_not_steady() -> None:
    clock = HandClock()
    calls = 0

    def faster_every_second_time() -> None:
        nonlocal calls
        calls += 1
        clock.now += 0.001 if calls % 2 else 0.003

    unsteady = compare(
        "x", Subject(faster_every_second_time), clock.taking(0.001), turns=5, block_s=0.0005, clock=clock
    )
    assert not math.isclose(unsteady.control, 1.0, rel_tol=0.5)


def test_the_garbage_collector_is_on_again_after_a_failure() -> None:
    def failing() -> None:
        if not gc.isenabled():
            raise ValueError("inside a block")

    with pytest.raises(ValueError, match="inside a block"):
        compare("x", Subject(failing), Subject(failing), turns=3, block_s=0.0)
    assert gc.isenabled()
