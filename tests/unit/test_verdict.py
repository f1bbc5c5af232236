"""R-VER-2: a verdict says what was judged, how it ended, and on what evidence."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealbook.errors import InvalidInput
from sealbook.model import Check, Outcome, RunId, Severity, Verdict
from sealbook.model.verdict import MAX_ID
from tests.support.ledger import KEY, accept, reject, run_id

FAILED = Check("columns", passed=False, violations=7, lines=(1, 2, 3, 4, 5), detail="cost is no number")
WARNED = replace(FAILED, severity=Severity.WARN)


def test_an_acceptance_names_the_data_and_no_error() -> None:
    verdict = accept(KEY, 3, version="2", records=0, checks=(WARNED,))
    assert verdict.accepted
    assert (verdict.outcome, verdict.schema_version, verdict.record_count) == (Outcome.ACCEPTED, "2", 0)
    assert verdict.error_message is None
    assert isinstance(verdict.run_id, RunId)


def test_a_rejection_names_the_error_and_no_data() -> None:
    verdict = reject(KEY, 3, error="no good", checks=(FAILED,))
    assert not verdict.accepted
    assert (verdict.outcome, verdict.error_message) == (Outcome.REJECTED, "no good")
    assert (verdict.schema_version, verdict.record_count) == (None, None)


def test_a_rejection_needs_no_failed_check() -> None:
    """What could be said in words only is evidence too."""
    assert reject(checks=()).checks == ()


def test_checks_become_a_tuple_and_severities_members() -> None:
    made = Verdict.reject(
        KEY,
        run_id(1),
        error_message="bad",
        validator_version="v1",
        checks=[Check("a", passed=False, severity="warn")],  # type: ignore[arg-type]
    )
    assert made.checks == (Check("a", passed=False, severity=Severity.WARN),)
    assert made.checks[0].severity is Severity.WARN


def test_verdicts_are_values() -> None:
    """Equal by content, immutable, and the same in another process."""
    assert accept(checks=(WARNED,)) == accept(checks=(WARNED,))
    assert pickle.loads(pickle.dumps(reject(checks=(FAILED,)))) == reject(checks=(FAILED,))
    with pytest.raises(FrozenInstanceError):
        accept().record_count = 5  # type: ignore[misc]


def test_a_changed_copy_is_checked_like_the_original() -> None:
    """`replace` is no way around the rules of an acceptance."""
    with pytest.raises(InvalidInput, match="record_count"):
        replace(accept(), record_count=-1)
    with pytest.raises(InvalidInput, match="error_message"):
        replace(accept(), outcome=Outcome.REJECTED)
    with pytest.raises(InvalidInput, match="no failed check"):
        replace(accept(), checks=(FAILED,))


def test_a_revalidation_id_fits_into_an_index() -> None:
    assert accept(again="x" * MAX_ID).revalidation_id == "x" * MAX_ID
    with pytest.raises(InvalidInput, match=f"at most {MAX_ID} characters"):
        accept(again="x" * (MAX_ID + 1))


@given(st.text(st.characters(exclude_categories=())))
def test_every_text_is_taken_or_refused_by_name(text: str) -> None:
    """Whatever a database or a UTF-8 file can keep is good; the rest is an InvalidInput."""
    storable = bool(text.strip()) and "\0" not in text
    try:
        text.encode()
    except UnicodeEncodeError:
        storable = False
    if storable:
        assert reject(error=text).error_message == text
        assert Check("c", passed=True, detail=text).detail == text
    else:
        with pytest.raises(InvalidInput, match=r"^error_message "):
            reject(error=text)
        with pytest.raises(InvalidInput, match=r"^check detail "):
            Check("c", passed=True, detail=text)
