"""What is wrong with a partition, the worst first, each with the commands that would change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from sealbook.model import Attempt, Outcome, PartitionKey, PartitionState, RunId, Severity, Status
from sealbook.model.explanation import Finding, Problem, Way
from sealbook.model.partition_events import (
    PartitionCancelled,
    PartitionFact,
    PartitionFailed,
    PartitionJudged,
    PartitionSealed,
    Stage,
)
from sealbook.model.publication import Pointer
from sealbook.model.staleness import CodeInForce, StaleCode, StaleReason
from sealbook.model.status import AttemptOutcome, Availability
from sealbook.model.status_line import StatusLine


@dataclass(frozen=True, slots=True)
class Known:
    """All that the ledger knows of a partition."""

    line: StatusLine
    state: PartitionState
    attempts: list[Attempt]
    pointers: list[Pointer]
    facts: list[PartitionFact]
    """What the log, or the archive, still tells of it, in the order of commits."""
    in_force: CodeInForce | None
    due_at: datetime | None

    @property
    def key(self) -> PartitionKey:
        """The partition."""
        return self.line.key

    @property
    def pointer(self) -> Pointer | None:
        """Its latest pointer, which may have ended."""
        return self.pointers[-1] if self.pointers else None

    def latest(self, run_id: RunId | None) -> Attempt | None:
        """Return the last judgement of a run."""
        return next((each for each in reversed(self.attempts) if each.run_id == run_id), None)

    @property
    def unjudged(self) -> RunId | None:
        """The newest run that is sealed and waits to be judged."""
        waiting: set[RunId] = set()
        for fact in self.facts:
            if isinstance(fact, PartitionSealed):
                waiting.add(fact.run_id)
            elif isinstance(fact, PartitionJudged | PartitionCancelled):
                waiting.discard(fact.run_id)
        newest = max(waiting - {each.run_id for each in self.attempts}, default=None)
        current = self.state.current_run_id
        is_superseded = self.state.status is Status.SUCCESS and current is not None
        return None if newest is None or (is_superseded and newest < (current or newest)) else newest

    @property
    def restorable(self) -> RunId | None:
        """The newest other run that a rollback can give authority to."""
        return next(iter(restorable_runs(self.state, self.attempts)), None)


def restorable_runs(state: PartitionState, attempts: Iterable[Attempt]) -> list[RunId]:
    """Return the other runs that a rollback can give authority to, the newest first (R-STATE-9)."""
    if state.status is Status.PENDING:
        return []
    latest = {each.run_id: each for each in attempts}
    return sorted(
        (
            run_id
            for run_id, each in latest.items()
            if each.outcome is Outcome.ACCEPTED
            and each.schema_version == state.schema_version
            and run_id != state.current_run_id
        ),
        reverse=True,
    )


def problems_of(known: Known) -> Iterator[Problem]:
    """Yield what is wrong apart from staleness: with what consumers get, then with the last attempt."""
    line, state, key = known.line, known.state, known.key
    failed = _last_failed(known)
    if line.availability is Availability.HIDDEN:
        yield _withdrawn(known)
    elif line.availability is Availability.NONE:
        if failed is None or state.status is Status.SUCCESS:
            waiting = _waiting(known)
            if waiting is not None:
                yield waiting
    elif line.availability is Availability.BEHIND:
        text = f"run {state.current_run_id} is accepted and not loaded; consumers still get the one before it"
        yield Problem("behind", text, state.updated_at, state.current_run_id, ways=(_load(key),))
    if failed is not None and not _is_demotion(known, failed):
        yield failed
    newer = known.unjudged
    if newer is not None and (line.availability is not Availability.NONE or failed is not None):
        yield _not_judged(key, newer)


def stale_problem(known: Known, reason: StaleReason) -> Problem:
    """Say what a reason of staleness means, without what it comes from."""
    key, line = known.key, known.line
    in_force = "" if known.in_force is None else known.in_force.contract_hash[:12]
    again = Way("publish it anew", f"sealbook run {key}")
    judge = Way("judge it again", f"sealbook validate --revalidate {key}")
    match reason.code:
        case StaleCode.FRESHNESS_POLICY:
            text = "it was not published again by its deadline, though it was due"
        case StaleCode.UPSTREAM_CHANGED:
            text = "what it is made of was published later"
        case StaleCode.CODE_CHANGED:
            used = (line.last_materialization_code_version or "")[:12]
            text = f"it was accepted by contract {used}, and another, {in_force}, is in force by now"
        case StaleCode.UPSTREAM_UNKNOWN:
            text = "something that it is made of was never published"
        case StaleCode.CODE_UNKNOWN:
            text = f"by which contract it was accepted is not recorded; {in_force} is in force"
    ways: tuple[Way, ...]
    if reason.code is StaleCode.UPSTREAM_UNKNOWN:
        ways = tuple(Way("see why", f"sealbook explain {each}") for each in reason.upstreams[:1])
    elif reason.code in (StaleCode.FRESHNESS_POLICY, StaleCode.UPSTREAM_CHANGED):
        ways = (again,)
    else:  # only what is accepted can be judged again; what was withdrawn says how else
        ways = (judge,) if known.state.status is Status.SUCCESS else ()
    return Problem(reason.code, text, reason.since, ways=ways)


def _withdrawn(known: Known) -> Problem:
    state, key, pointer = known.state, known.key, known.pointer
    run_id = known.line.last_materialization_run_id or (None if pointer is None else pointer.run_id)
    since = None if pointer is None else pointer.closed_at
    if state.status is Status.SUCCESS:
        text = f"run {state.current_run_id} has authority and is not loaded; what was published is withdrawn"
        return Problem("withdrawn", text, since or state.updated_at, state.current_run_id, ways=(_load(key),))
    if state.status is Status.PENDING:
        text = "it was requeued after what was published had been rejected"
        return Problem("withdrawn", text, since, run_id, ways=(_judge_new(key), _fetch(key)))
    judged = known.latest(state.current_run_id)
    text = f"run {state.current_run_id} was published, and rejected when it was judged again"
    at = since
    if judged is not None:
        # Consumers lost it with the verdict; the pointer is ended by the next load.
        at = judged.judged_at if since is None else min(since, judged.judged_at)
    return Problem(
        "withdrawn",
        _with_error(text, judged),
        at,
        state.current_run_id,
        findings_of(judged),
        ways=(_fetch(key), _judge_rejected(key), *_roll_back(known), *_lines(known, judged)),
    )


def _waiting(known: Known) -> Problem | None:
    """Say why there is nothing to read where nothing has failed."""
    state, key, line = known.state, known.key, known.line
    if state.status is Status.SUCCESS:
        text = f"run {state.current_run_id} is accepted and not loaded"
        return Problem("not_loaded", text, state.updated_at, state.current_run_id, ways=(_load(key),))
    unjudged = known.unjudged
    if unjudged is not None:
        return _not_judged(key, unjudged)
    if line.attempted:
        if line.last_attempt_outcome is AttemptOutcome.CANCELLED:
            text = f"its last attempt, run {line.last_attempt_run_id}, was cancelled"
            return Problem(
                "cancelled", text, line.last_attempt_at, line.last_attempt_run_id, ways=(_fetch(key),)
            )
        text = "no run of it is accepted, and none has failed since it was requeued"
        return Problem("pending", text, ways=(_judge_new(key), _fetch(key)))
    if line.expected and line.due:
        text = "nobody has attempted it" + (", and its deadline has passed" if line.late else "")
        return Problem("missing", text, known.due_at, ways=(_fetch(key),))
    return None


def _last_failed(known: Known) -> Problem | None:
    """Say how the last attempt failed, if it did and nothing good came after it."""
    line, key = known.line, known.key
    if line.last_attempt_outcome is not AttemptOutcome.FAILED:
        return None
    run_id, at = line.last_attempt_run_id, line.last_attempt_at
    readable = line.availability.readable
    kept = "; what was published before stays readable" if readable else ""
    if line.last_attempt_stage == Stage.VALIDATE:
        judged = known.latest(run_id)
        text = f"run {run_id} does not hold {_contract(known, judged)}{kept}"
        # A requeue has it judged again as if it were new (R-VER-6).
        again = {Status.FAILED: (_judge_rejected(key),), Status.PENDING: (_judge_new(key),)}.get(
            known.state.status, ()
        )
        ways = (_fetch(key), *again, *_lines(known, judged))
        return Problem("rejected", _with_error(text, judged), at, run_id, findings_of(judged), ways=ways)
    failed = next(
        (
            each
            for each in reversed(known.facts)
            if isinstance(each, PartitionFailed) and each.run_id == run_id
        ),
        None,
    )
    stage = line.last_attempt_stage or "its run"
    why = (
        "; why is neither in the log nor in the archive"
        if failed is None
        else f" ({failed.error_class}): {failed.error.removeprefix(f'{key}: ')}"
    )
    way = _load(key) if stage == Stage.LOAD else _fetch(key)
    return Problem("failed", f"run {run_id} failed in {stage}{why}{kept}", at, run_id, ways=(way,))


def _is_demotion(known: Known, failed: Problem) -> bool:
    """Tell whether the last failure is the very one by which the partition was withdrawn."""
    hidden = known.line.availability is Availability.HIDDEN
    return hidden and known.state.status is Status.FAILED and failed.run_id == known.state.current_run_id


def findings_of(judged: Attempt | None) -> tuple[Finding, ...]:
    """Return the checks that rejected a run."""
    if judged is None:
        return ()
    return tuple(
        Finding(each.name, each.detail, each.violations, each.lines)
        for each in judged.checks
        if not each.passed and each.severity is Severity.ERROR
    )


def _with_error(text: str, judged: Attempt | None) -> str:
    """Add what a rejection says, where no check says it."""
    if judged is None or judged.error_message is None or findings_of(judged):
        return text
    return f"{text}: {judged.error_message}"


def _contract(known: Known, judged: Attempt | None) -> str:
    if judged is None or known.in_force is None:
        return "its contract"
    name = known.in_force.contract_hash[:12]
    if judged.judged_at < known.in_force.since:
        return f"a contract that was in force before {name}"
    return f"the contract in force, {name}"


def _not_judged(key: PartitionKey, run_id: RunId) -> Problem:
    return Problem(
        "not_judged", f"run {run_id} is sealed and not judged", run_id=run_id, ways=(_judge_new(key),)
    )


def _fetch(key: PartitionKey) -> Way:
    return Way("fetch it", f"sealbook run {key}")


def _load(key: PartitionKey) -> Way:
    return Way("load it", f"sealbook load {key}")


def _judge_new(key: PartitionKey) -> Way:
    return Way("judge it", f"sealbook validate {key}")


def _judge_rejected(key: PartitionKey) -> Way:
    return Way("judge it again", f"sealbook validate --rejected {key}", "once the contract is corrected")


def _roll_back(known: Known) -> tuple[Way, ...]:
    run_id = known.restorable
    if run_id is None:
        return ()
    return (Way("roll it back", f"sealbook state rollback {known.key} --to {run_id} --reason '…'"),)


def _lines(known: Known, judged: Attempt | None) -> tuple[Way, ...]:
    numbers = sorted({line for each in findings_of(judged) for line in each.lines})
    if judged is None or not numbers:
        return ()
    what = "see the line" if len(numbers) == 1 else "see the lines"
    # The newest run is shown by itself.
    runs = {each.run_id for each in known.attempts} | {fact.run_id for fact in known.facts}
    which = "" if judged.run_id == max(runs) else f" --run-id {judged.run_id}"
    listed = ",".join(map(str, numbers))
    return (Way(what, f"sealbook raw show {known.key}{which} --lines {listed}"),)
