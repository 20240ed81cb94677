"""The hub: one launcher, one oracle and one device process, and one case at a time through them.

A session survives the death of its device process: it blames one clause or one sample, starts another process and
goes on. It holds no opinion on what was expected.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

from . import codec
from .backend import Backend, BackendSpec
from .case import Case
from .channel import DeadlinePassed, Message, PeerGone
from .errors import BackendStartError, UsageError
from .outcome import FailedSample, Kind, Observation, Outcome, Samples, worst
from .process import START_TIMEOUT_S, Role, Starter, error_text

MOST_DEATHS = 3
"""After so many deaths in one case, the rest of its samples are not run."""
MOST_FAILED_STARTS = 3
"""After so many failed starts in a row, the rest of the cases are not run."""
OUTPUT_KEPT = 4096
MESSAGE_KEPT = 2000


class OracleBroken(Exception):
    """The suite's own half failed; the backend is not to blame."""


class Session:
    """Runs cases of one backend, one at a time.

    Use as a context manager: leaving it ends every process it started.
    """

    def __init__(
        self,
        spec: BackendSpec,
        *,
        profile: str = "full",
        seed: int = 0,
        faults: tuple[str, ...] = (),
        cases: Mapping[str, Case] | None = None,
        op_db: bool = False,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            spec: the backend.
            profile: the suite profile, which caps the samples of a case.
            seed: of all samples and clauses.
            faults: names of faults that the device process switches on.
            cases: the whole plan by id, to find prerequisites in.
            op_db: whether sampled cases will come, so that op_db is imported once, before the first fork.
        """
        self._spec = spec
        self._profile = profile
        self._seed = seed
        self._cases = cases or {}
        self._op_db = op_db
        self._starter = Starter(spec, faults)
        self._device: Role | None = None
        self._oracle: Role | None = None
        self._backend: Backend | None = None
        self._known: dict[str, Outcome] = {}
        self._failed_starts = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process; calling it again does nothing."""
        for role in (self._device, self._oracle):
            if role is not None:
                with contextlib.suppress(OSError):
                    role.close()
        self._device = self._oracle = None
        self._starter.close()

    def start(self) -> Backend:
        """Start the backend, if it is not started.

        Raises:
            BackendStartError: with the reason and a cure.
        """
        self._running_device()
        assert self._backend is not None
        return self._backend

    def list_cases(self, families: Sequence[str] | None = None) -> list[Case]:
        """All cases that the suite has for this backend, in plan order.

        Raises:
            BackendStartError: when the backend does not start or dies while it lists.
            UsageError: for a family that does not exist.
        """
        answer = self._ask_device({"list": {"families": list(families) if families is not None else None}}, "cases")
        return [codec.from_json(Case, item) for item in answer]

    def probe(self) -> dict[str, Any]:
        """What the backend was found to be able to do.

        Raises:
            BackendStartError: when the backend does not start or dies while it is probed.
        """
        found: dict[str, Any] = self._ask_device({"probe": True}, "probe")
        return found

    def run(self, case: Case) -> Outcome:
        """Run one case, after the cases that it requires.

        Never raises for what a backend does, except:

        Raises:
            BackendStartError: when the backend does not even start once.
        """
        name = str(case.id)
        if name in self._known:
            return self._known[name]
        begin = time.monotonic()
        outcome = self._blocked(case) or self._run_alone(case)
        outcome = dataclasses.replace(outcome, seconds=round(time.monotonic() - begin, 4))
        if name in self._required:
            self._known[name] = outcome
        return outcome

    @property
    def _required(self) -> frozenset[str]:
        # Only these outcomes are looked at again.
        if not hasattr(self, "_required_ids"):
            self._required_ids = frozenset(name for case in self._cases.values() for name in case.requires)
        return self._required_ids

    def _blocked(self, case: Case) -> Outcome | None:
        for name in case.requires:
            required = self._cases.get(name)
            if required is None:
                return Outcome(
                    str(case.id), Kind.ORACLE_BROKEN, message=f"requires {name!r}, which the plan does not have"
                )
            outcome = self.run(required)
            if outcome.kind is not Kind.PASS:
                root = outcome.blocked_by or name
                text = (
                    outcome.message
                    if outcome.kind is Kind.BLOCKED
                    else f"{name} must pass first and is {outcome.kind.value}"
                )
                return Outcome(str(case.id), Kind.BLOCKED, message=text, samples=Samples(run=0), blocked_by=root)
        return None

    def _run_alone(self, case: Case) -> Outcome:
        name = str(case.id)
        if case.devices > self._spec.devices:
            text = f"needs {case.devices} devices, {self._spec.name} offers {self._spec.devices} (key 'devices')"
            return Outcome(name, Kind.REFUSED, message=text, samples=Samples(run=0))
        if self._failed_starts >= MOST_FAILED_STARTS:
            return Outcome(name, Kind.NOT_RUN, message="the backend did not start again", samples=Samples(run=0))
        if case.sampled:
            self._want_op_db()
        try:
            device = self._running_device()
        except BackendStartError as error:
            if self._backend is None:
                raise
            self._failed_starts += 1
            return Outcome(
                name, Kind.NOT_RUN, message=f"the backend did not start again: {error}", samples=Samples(run=0)
            )
        self._failed_starts = 0
        device.output.take()
        try:
            outcome = _SampledRun(self, case).outcome() if case.sampled else self._clause(device, case)
        except OracleBroken as error:
            outcome = Outcome(name, Kind.ORACLE_BROKEN, message=str(error)[:MESSAGE_KEPT])
        if outcome.observation.state_changed:
            self._drop_device()
        if outcome.kind is not Kind.PASS and self._device is not None and not outcome.observation.output_tail:
            tail = self._device.output.take()[-OUTPUT_KEPT:]
            outcome = dataclasses.replace(
                outcome, observation=dataclasses.replace(outcome.observation, output_tail=tail)
            )
        return outcome

    def _clause(self, device: Role, case: Case) -> Outcome:
        name = str(case.id)
        request = {"clause": codec.to_json(case), "seed": self._seed}
        try:
            answer, _ = device.channel.ask(request, deadline=time.monotonic() + self._limit_s(case))
        except (PeerGone, DeadlinePassed) as error:
            death = self._bury(case, error)
            return Outcome(name, death.kind, message=death.message, observation=death.observation)
        if "outcome" not in answer:
            raise OracleBroken(f"the clause ended outside of its own checks: {error_text(answer)}")
        return codec.from_json(Outcome, answer["outcome"])

    def _limit_s(self, case: Case) -> float:
        return case.timeout_s or self._spec.timeout_s

    def _want_op_db(self) -> None:
        if not self._op_db:
            self._op_db = True
            self._drop_device()

    def _running_device(self) -> Role:
        if self._device is None:
            if self._op_db:
                self._starter.load_op_db()
            self._device = self._starter.role("device")
            try:
                self._introduce(self._device)
            except BaseException:
                self._drop_device()
                raise
        return self._device

    def _introduce(self, device: Role) -> None:
        request = {"start": codec.to_json(self._spec)}
        where = f" ({self._spec.source})" if self._spec.source else ""
        try:
            answer, _ = device.channel.ask(request, deadline=time.monotonic() + START_TIMEOUT_S)
        except (PeerGone, DeadlinePassed) as error:
            hung = isinstance(error, DeadlinePassed)
            how = device.stop_hung() if hung else device.wait()
            said = device.output.take().strip().splitlines()
            raise BackendStartError(
                f"{self._spec.name}: the process that imports and activates the backend{where} "
                f"{f'did not finish within {START_TIMEOUT_S:.0f} s' if hung else f'went away ({how})'}"
                f"{': ' + said[-1] if said else ' without a word'}."
            ) from error
        if "started" not in answer:
            raise BackendStartError(f"{self._spec.name}: the backend{where} could not be started: {error_text(answer)}")
        device.output.take()  # warnings of the start are not what a case printed
        started, ready = answer["started"], self._starter.ready
        self._backend = Backend(
            spec=dataclasses.replace(self._spec, device=self._spec.device or str(started.get("device", ""))),
            torch=str(ready.get("torch", "")),
            torch_git=str(ready.get("git", "") or ""),
            torch_path=str(ready.get("path", "")),
            python=str(ready.get("python", "")),
            count=int(started.get("count") or 0),
            device_name=str(started.get("name") or ""),
            build=str(started.get("build") or ""),
            packages={key: str(value) for key, value in (ready.get("packages") or {}).items()},
        )

    def _ask_device(self, request: Message, wanted: str) -> Any:
        device = self._running_device()
        try:
            answer, _ = device.channel.ask(request, deadline=time.monotonic() + START_TIMEOUT_S)
        except (PeerGone, DeadlinePassed) as error:
            how = device.stop_hung() if isinstance(error, DeadlinePassed) else device.wait()
            said = device.output.take().strip().splitlines()
            self._drop_device()
            raise BackendStartError(
                f"{self._spec.name}: the device process went away ({how}) when it was asked to {next(iter(request))}"
                f"{': ' + said[-1] if said else ''}."
            ) from error
        if wanted not in answer:
            if "list" in request and answer.get("error", {}).get("type") == "ValueError":
                raise UsageError(error_text(answer))
            raise BackendStartError(f"{self._spec.name}: could not {next(iter(request))}: {error_text(answer)}")
        return answer[wanted]

    def _running_oracle(self) -> Role:
        if self._oracle is None:
            self._oracle = self._starter.role("oracle")
        return self._oracle

    def ask_oracle(self, request: Message, payload: bytes = b"") -> tuple[Message, bytes]:
        """One question to the oracle.

        Raises:
            OracleBroken: when it answers with an error, hangs or dies; the next case gets a new one.
        """
        oracle = self._running_oracle()
        try:
            answer, data = oracle.channel.ask(request, payload, deadline=time.monotonic() + START_TIMEOUT_S)
        except (PeerGone, DeadlinePassed) as error:
            how = oracle.stop_hung() if isinstance(error, DeadlinePassed) else oracle.wait()
            said = oracle.stacks.take() or oracle.output.take()
            self._drop_oracle()
            raise OracleBroken(
                f"the oracle went away ({how}) at {next(iter(request))}: {said[-MESSAGE_KEPT:]}"
            ) from error
        if "error" in answer:
            raise OracleBroken(f"the oracle failed at {next(iter(request))}: {error_text(answer)}")
        return answer, data

    def _bury(self, case: Case, error: Exception) -> FailedDeath:
        """Reap a device process that died or hung, and say what is known of its end."""
        device = self._device
        assert device is not None
        hung = isinstance(error, DeadlinePassed)
        how = device.stop_hung() if hung else device.wait()
        hung = hung and how.status < 0
        stack = device.stacks.take()[-OUTPUT_KEPT * 4 :]
        output = device.output.take()[-OUTPUT_KEPT:]
        self._drop_device()
        said = output.strip().splitlines()
        frame = next((line.strip() for line in stack.splitlines() if line.strip().startswith("File ")), "")
        if hung:
            message = f"did not finish within {self._limit_s(case):g} s and was stopped"
        else:
            message = f"the device process went away: {how}"
        message += f"; it was in {frame}" if frame else ""
        if not hung:
            message += f"; its last line was: {said[-1][:300]}" if said else ""
        return FailedDeath(
            Kind.TIMED_OUT if hung else Kind.CRASHED,
            message,
            Observation(output_tail=output, stack=stack, exit="" if hung else str(how)),
        )

    def _drop_device(self) -> None:
        if self._device is not None:
            self._device.close()
            self._device = None

    def _drop_oracle(self) -> None:
        if self._oracle is not None:
            self._oracle.close()
            self._oracle = None


@dataclasses.dataclass(frozen=True, slots=True)
class FailedDeath:
    """The end of a device process: CRASHED or TIMED_OUT, what to say, and what was seen."""

    kind: Kind
    message: str
    observation: Observation


class _SampledRun:
    """One case over its samples: batches from the oracle to the device and the results back."""

    def __init__(self, session: Session, case: Case) -> None:
        self._session = session
        self._case = case
        self._failed: list[FailedSample] = []
        self._ran = 0
        self._equal = 0
        self._deaths = 0
        self._end = Observation()
        self._traceback = ""
        self._lost = ""

    def outcome(self) -> Outcome:
        ask = self._session.ask_oracle
        case = codec.to_json(self._case)
        ask(
            {
                "open": case,
                "seed": self._session._seed,
                "profile": self._session._profile,
                "only": None,
                "spec": codec.to_json(self._session.start().spec),
            }
        )
        more = True
        while more and not self._lost:
            batch, payload = ask({"next": True})
            more = bool(batch["more"])
            if batch["indices"]:
                self._run_batch(dict(zip(batch["indices"], batch["digests"], strict=True)), payload)
        closed, _ = ask({"close": True})
        planned = max(int(closed["planned"]), self._ran)
        return self._summed_up(planned, codec.from_json(Observation, closed.get("observation") or {}))

    def _run_batch(self, digests: dict[int, str], payload: bytes) -> None:
        left = list(digests)
        while left and not self._lost:
            at: list[int] = []
            try:
                results = self._on_device(left, payload, at)
            except (PeerGone, DeadlinePassed) as error:
                blamed = at[-1] if at else left[0]
                death = self._session._bury(self._case, error)
                self._failed.append(FailedSample(blamed, digests[blamed], death.kind, death.message))
                self._end = death.observation
                self._ran += 1
                self._deaths += 1
                left.remove(blamed)
                if self._deaths >= MOST_DEATHS:
                    self._lost = f"the device process died {MOST_DEATHS} times in this case"
                    return
                try:
                    self._session._running_device()
                except BackendStartError as start_error:
                    self._lost = f"the backend did not start again: {start_error}"
                continue
            judged, _ = self._session.ask_oracle({"judge": left}, results)
            self._failed += [codec.from_json(FailedSample, item) for item in judged["failed"]]
            self._equal += int(judged.get("bitwise_equal", 0))
            self._traceback = self._traceback or str(judged.get("traceback") or "")
            self._ran += len(left)
            return

    def _on_device(self, indices: list[int], payload: bytes, at: list[int]) -> bytes:
        """Run samples on the device; ``at`` grows by each index that was begun."""
        channel = self._session._running_device().channel
        limit_s = self._session._limit_s(self._case)
        request = {"samples": codec.to_json(self._case), "seed": self._session._seed, "indices": indices}
        channel.send(request, payload, deadline=time.monotonic() + limit_s)
        while True:
            answer, results = channel.receive(time.monotonic() + limit_s)
            if "at" in answer:
                at.append(int(answer["at"]))
            elif "results" in answer:
                return results
            else:
                raise OracleBroken(f"the device process could not run the samples: {error_text(answer)}")

    def _summed_up(self, planned: int, seen: Observation) -> Outcome:
        self._failed.sort(key=lambda item: item.index)
        kinds = [item.kind for item in self._failed]
        if planned == 0:
            kinds.append(Kind.ORACLE_BROKEN)
        elif self._ran == 0:
            kinds.append(Kind.NOT_RUN)
        kind = worst(kinds)
        first = next((item for item in self._failed if item.kind is kind), None)
        message = ""
        if first is not None:
            count = len(self._failed)
            # The index is a position in the whole iterator, of which a profile may have taken a few.
            message = f"sample {first.index}: {first.message}"
            message += f" ({count} of {planned} samples failed)" if count > 1 else ""
        elif planned == 0:
            message = "the oracle made no sample for this case"
        if self._lost:
            message = f"{message}; {planned - self._ran} samples were not run: {self._lost}".removeprefix("; ")
        return Outcome(
            id=str(self._case.id),
            kind=kind,
            message=message[:MESSAGE_KEPT],
            samples=Samples(planned, self._ran, tuple(self._failed)),
            traceback=self._traceback if first is not None else "",
            observation=dataclasses.replace(
                seen,
                bitwise_equal=self._equal,
                output_tail=self._end.output_tail,
                stack=self._end.stack,
                exit=self._end.exit,
            ),
        )


def run_cases(
    spec: BackendSpec,
    patterns: Sequence[str],
    *,
    profile: str = "full",
    seed: int = 0,
    faults: tuple[str, ...] = (),
) -> dict[str, Outcome]:
    """Run the cases that ``patterns`` match, one after the other, without pytest.

    Args:
        spec: the backend.
        patterns: globs over case ids; the profile caps the samples but does not restrict which cases run.
        profile: the suite profile.
        seed: of all samples and clauses.
        faults: names of faults to switch on.

    Returns:
        The outcome of each case by its id, in plan order.

    Raises:
        BackendStartError: when the backend cannot be started.
        UsageError: when a pattern matches no case, naming the nearest id.
    """
    from .plan import load_plan
    from .selection import Selection, select

    plan = load_plan(spec)
    chosen = select(plan.cases, Selection(cases=tuple(patterns), profile="full"))
    op_db = any(case.sampled for case in chosen)
    with Session(spec, profile=profile, seed=seed, faults=faults, cases=plan.by_id, op_db=op_db) as session:
        session.start()
        return {str(case.id): session.run(case) for case in chosen}
