"""What came of judging a run, as one flat object."""

from __future__ import annotations

from dataclasses import asdict

from sealbook.validate.results import Judged, Result


def judgement_dict(result: Result) -> dict[str, object]:
    """Return one object with the same fields for every result."""
    if isinstance(result, Judged):
        fields = asdict(result.verdict)
        status = None if result.state is None else result.state.status
        return {**fields.pop("key"), **fields, "status": status}
    return {
        **asdict(result.key),
        "run_id": result.run_id,
        "outcome": "not_judged",
        "schema_version": None,
        "record_count": None,
        "error_message": result.reason,
        "validator_version": None,
        "checks": [],
        "revalidation_id": None,
        "contract_hash": None,
        "status": None,
    }
