"""Equal reasons are one line: with how many partitions have them, and a few of these."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from sealbook.cli.reasons import few, say_reasons
from sealbook.cli.run import print_summary
from sealbook.extract.results import Ending, Extracted
from sealbook.model import Check, PartitionKey, RunId, Verdict
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import Stage
from sealbook.pipeline.outcome import RunOutcome, StageBatch
from sealbook.validate.results import Judged, Result, ValidateOutcome
from sealbook.views.reasons import Cause, group_reasons
from sealbook.views.run_summary import RunSummary

RUN = RunId("01J8ZQ6T5N8W3Y2V7R4K9M0XCE")


def key(number: int) -> PartitionKey:
    return PartitionKey("demo", "acme", "orders", date(2026, 1, 1) + timedelta(days=number))


def failed(number: int, message: str) -> Extracted:
    return Extracted(
        key(number), RUN, Ending.FAILED, 0.1, error_class=ErrorClass.PERMANENT, error_message=message
    )


def rejected(number: int, check: str, detail: str) -> Judged:
    verdict = Verdict.reject(
        key(number),
        RUN,
        error_message=f"{check}: {detail}",
        validator_version="v",
        checks=(Check(check, passed=False, violations=1, detail=detail),),
    )
    return Judged(verdict, None, 0, 0)


def test_texts_that_differ_only_in_their_partition_are_one_reason() -> None:
    causes = [
        *(Cause(key(number), "failed", f"{key(number)}: no such account") for number in range(3)),
        *(Cause(key(number), "failed", f"the disk failed at a/logical_date={key(number).logical_date}/x")
          for number in (3, 4)),
        Cause(key(5), "failed", "HTTP 503"),
        Cause(key(6), "skipped", "HTTP 503"),
    ]  # fmt: skip
    assert [(reason.ending, reason.text, len(reason.keys)) for reason in group_reasons(causes)] == [
        ("failed", "no such account", 3),
        ("failed", "the disk failed at a/logical_date=2026-01-04/x", 2),
        ("failed", "HTTP 503", 1),
        ("skipped", "HTTP 503", 1),
    ]
    assert all(reason.is_same for reason in group_reasons(causes))


def test_a_kind_brings_together_what_no_text_would() -> None:
    [reason] = group_reasons(Cause(key(n), "rejected", f"line {n} is bad", "json") for n in (2, 1))
    assert (reason.text, reason.is_same, reason.keys) == ("line 1 is bad", False, (key(1), key(2)))


def test_a_few_keys_stand_for_many() -> None:
    assert few([key(0)]) == "demo/acme/orders/2026-01-01"
    assert few([key(n) for n in range(7)]) == f"{key(0)}, {key(1)}, {key(2)} … and 4 more"


def test_reasons_are_said_once_each(capsys: pytest.CaptureFixture[str]) -> None:
    say_reasons(group_reasons(Cause(key(n), "failed", "no such account") for n in range(1800)))
    assert capsys.readouterr().err.splitlines() == [
        f"1,800 partitions failed: no such account ({key(0)}, {key(1)}, {key(2)} … and 1,797 more)"
    ]


def summary() -> RunSummary:
    made = RunSummary(RunOutcome.of(RUN))
    made.add(StageBatch(Stage.EXTRACT, [failed(n, f"{key(n)}: no such account") for n in range(5)]))
    judged: list[Result] = [
        rejected(5, "json", "2 lines"), rejected(6, "json", "3"), rejected(7, "a", "b"),
    ]  # fmt: skip
    made.add(StageBatch(Stage.VALIDATE, judged))
    return made


def test_a_run_says_each_reason_once_worst_first(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(summary())
    out = capsys.readouterr().out.splitlines()
    assert out[out.index("not published") + 1 :] == [
        "  5 partitions                 extract failed     no such account",
        f"    {key(0)}, {key(1)}, {key(2)} … and 2 more",
        "  2 partitions                 validate rejected  the first: json: 2 lines",
        f"    {key(5)}, {key(6)}",
        f"  {key(7)}  validate rejected  a: b",
    ]


def test_json_has_the_reasons_and_every_partition() -> None:
    told = summary().to_dict()
    assert told["reasons"] == [
        {
            "stage": Stage.EXTRACT,
            "ending": "failed",
            "reason": "no such account",
            "count": 5,
            "keys": [str(key(n)) for n in range(3)],
        },
        {
            "stage": Stage.VALIDATE,
            "ending": "rejected",
            "reason": "json: 2 lines",
            "count": 2,
            "keys": [str(key(5)), str(key(6))],
        },
        {
            "stage": Stage.VALIDATE,
            "ending": "rejected",
            "reason": "a: b",
            "count": 1,
            "keys": [str(key(7))],
        },
    ]
    assert isinstance(told["not_published"], list)
    assert len(told["not_published"]) == 8


def test_a_validation_shows_one_rejection_of_each_kind(capsys: pytest.CaptureFixture[str]) -> None:
    from sealbook.cli.verdict_text import Telling
    from sealbook.validate.plan import Which

    outcome = ValidateOutcome()
    outcome.add([rejected(n, "json", f"{n} lines") for n in range(1, 9)] + [rejected(9, "a", "b")])
    Telling(Which.NEW, is_dry_run=False).print_outcome(outcome)
    out = capsys.readouterr().out
    assert out.count("json: ") == 1
    assert f"the same checks failed in 7 more: {key(2)}, {key(3)}, {key(4)} … and 4 more" in out
    assert "a: b (1 found)" in out
