"""Days past the horizon of their source: a verdict that takes them from consumers has to be confirmed."""

from __future__ import annotations

from collections.abc import Sequence

from sealbook.ledger.reader import LedgerReader
from sealbook.model import PartitionKey, PartitionState, Status, Verdict
from sealbook.model.horizons import IRREPLACEABLE, Horizons
from sealbook.model.selection import Selection
from sealbook.model.words import counted
from sealbook.validate.plan import Candidate


class Irreplaceables:
    """The accepted partitions among those to be judged whose source does not give their days any more."""

    def __init__(self, horizons: Horizons, accepted: dict[PartitionKey, PartitionState]) -> None:
        self._horizons = horizons
        self._accepted = accepted

    @classmethod
    def load(
        cls, reader: LedgerReader, horizons: Horizons, candidates: Sequence[Candidate]
    ) -> Irreplaceables:
        """Read the states of those that may be."""
        keys = {candidate.key for candidate in candidates if horizons.is_past(candidate.key)}
        chosen = Selection(keys=keys, statuses=[Status.SUCCESS])
        return cls(horizons, {state.key: state for state in reader.states(chosen)} if keys else {})

    def why_withheld(self, verdict: Verdict) -> str | None:
        """Say why a verdict must be confirmed; None if it may be given."""
        state = self._accepted.get(verdict.key)
        if state is None or state.current_run_id is None:
            return None
        rows = counted(state.record_count or 0, "row")
        if verdict.run_id == state.current_run_id and not verdict.accepted:
            would = f"rejecting it would take {rows} from consumers: {verdict.error_message}"
        elif verdict.run_id > state.current_run_id and verdict.record_count == 0 and state.record_count:
            would = f"it is empty, and would take the place of {rows}"
        else:
            self._follow(state, verdict)
            return None
        return (
            f"{IRREPLACEABLE}, as {self._horizons.why(verdict.key.source)}: {would}."
            f" If that is meant, judge it with --confirm {IRREPLACEABLE}"
        )

    def _follow(self, state: PartitionState, verdict: Verdict) -> None:
        if verdict.accepted and verdict.run_id > (state.current_run_id or ""):
            run_id, count = verdict.run_id, verdict.record_count
            self._accepted[verdict.key] = state._replace(current_run_id=run_id, record_count=count)
