"""A partition in full, on both databases: its judgement line by line, its timeline, what can be done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import sealbook
from sealbook.book import Book
from sealbook.errors import NotFound
from sealbook.ledger.schedule.pauses import Scope
from sealbook.model import Check, Outcome, Severity
from sealbook.model.failures import ErrorClass
from sealbook.model.partition_events import PartitionFailed, Stage
from sealbook.model.selection import Selection
from sealbook.views import row_content
from sealbook.views.partition import PartitionView, view_partition
from sealbook.views.row_content import RowRules
from sealbook.views.timeline import gather
from tests.support.commands import check_command
from tests.support.ledger import accept, reject, run_id
from tests.support.partitions import seal
from tests.support.pointers import load
from tests.support.statuses import days, key, write_status_book

[DAY] = days(1)
KEY = key("a", DAY)
LINES = [b'{"id": 1, "mail": "ann@example.org"}', b'{"id": 2, "mail": "<b>bob</b>"}', b"no object"]
REPEATED = Check("primary_key", passed=False, violations=7, lines=(1, 2), detail="7 lines repeat: 1, 2")
WARNED = Check("json", passed=False, violations=1, lines=(3,), detail="1 line is odd", severity=Severity.WARN)
CHECKS = (Check("types", passed=True), WARNED, REPEATED)


@dataclass(frozen=True)
class Masking:
    """What of rows may be seen, as a console has it configured."""

    show_rows: bool = True
    masked_columns: frozenset[str] = field(default_factory=frozenset)

    def row(self, query_name: str, row: object) -> dict[str, object]:
        assert query_name == KEY.query_name
        assert isinstance(row, dict)
        return {name: "•••" if name in self.masked_columns else value for name, value in row.items()}


@pytest.fixture
def book(tmp_path: Path, ledger_url: str) -> Iterator[Book]:
    write_status_book(tmp_path, ledger_url, first_day=DAY)
    with sealbook.open(tmp_path) as opened:
        yield opened


def view(book: Book, *, attempt: int | None = None, rules: RowRules | None = None) -> PartitionView:
    book.catch_up()
    found = view_partition(book.reader, KEY, attempt=attempt, rules=rules)
    for offer in found.offers:
        check_command(offer.command)
    return found


def lines(found: PartitionView) -> dict[int, tuple[str | None, str | None]]:
    assert found.verdict is not None
    return {each.line: (each.text, each.withheld) for check in found.verdict.checks for each in check.lines}


def test_nobody_ever_touched_it(book: Book) -> None:
    found = view(book)
    assert (found.verdict, found.attempts, found.timeline.moments, found.runs) == (None, (), (), ())
    assert [each.action for each in found.offers] == ["backfill"]


def test_a_judgement_shows_each_check_and_the_lines_themselves(book: Book) -> None:
    """R-VER-2."""
    seal(book, KEY, 1, LINES)
    book.ledger.judge([reject(KEY, checks=CHECKS, error="primary_key: 7 lines repeat: 1, 2")])
    found = view(book)
    assert found.verdict is not None
    assert [(each.name, each.outcome, each.violations, each.more) for each in found.verdict.checks] == [
        ("primary_key", "failed", 7, 5), ("json", "warned", 1, 0), ("types", "passed", 0, 0),
    ]  # fmt: skip
    assert lines(found) == {number: (line.decode(), None) for number, line in enumerate(LINES, start=1)}
    assert [each.action for each in found.offers] == ["retry", "reprocess", "mark"]
    assert found.runs == (run_id(1),)


def test_an_earlier_judgement_can_be_asked_for(book: Book) -> None:
    seal(book, KEY, 1, LINES)
    book.ledger.judge([reject(KEY, checks=CHECKS)])
    book.ledger.judge([accept(KEY, again="x", records=3)])
    last, first = view(book), view(book, attempt=1)
    assert last.verdict is not None
    assert first.verdict is not None
    assert (last.verdict.outcome, last.verdict.attempt) == (Outcome.ACCEPTED, 2)
    assert (first.verdict.outcome, first.verdict.attempt) == (Outcome.REJECTED, 1)
    assert first.attempts == (1, 2)
    with pytest.raises(NotFound, match="has no judgement 3"):
        view(book, attempt=3)


def test_rows_can_be_kept_from_who_looks(book: Book) -> None:
    """Neither a line, nor a value that a check or an error quotes, nor what the log says of it."""
    seal(book, KEY, 1, LINES)
    book.ledger.judge([reject(KEY, checks=CHECKS, error="primary_key: 7 lines repeat: 1, 2")])
    for rules in (Masking(show_rows=False), Masking(masked_columns=frozenset({"mail", "id"}))):
        found = view(book, rules=rules)
        told = str(found.to_dict())
        assert "example.org" not in told
        assert "repeat: 1, 2" not in told
        assert "7 lines repeat" in told
        assert found.timeline.moments[-1].text == "primary_key"


def test_columns_can_be_masked(book: Book) -> None:
    seal(book, KEY, 1, LINES)
    book.ledger.judge([reject(KEY, checks=CHECKS)])
    found = lines(view(book, rules=Masking(masked_columns=frozenset({"mail"}))))
    assert found[1] == ('{"id":1,"mail":"•••"}', None)
    assert found[3] == (None, "it is no JSON object, and columns are masked")


def test_an_error_without_checks_is_kept_too(book: Book) -> None:
    seal(book, KEY, 1, LINES)
    book.ledger.judge([reject(KEY, error="ann@example.org is no number")])
    assert "ann@example.org" in str(view(book).to_dict())
    assert "ann@example.org" not in str(view(book, rules=Masking(show_rows=False)).to_dict())


def test_lines_are_bounded(book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_content, "_LONGEST", 5)
    monkeypatch.setattr(row_content, "_WITHIN", len(LINES[0]) + 1)
    seal(book, KEY, 1, LINES)
    book.ledger.judge([reject(KEY, checks=(REPEATED,))])
    found = lines(view(book))
    assert found[1] == ('{"id"', f"{len(LINES[0]) - 5} more characters")
    assert found[2][0] is None
    assert "not in the first" in (found[2][1] or "")


def test_a_payload_that_is_gone_is_said(book: Book) -> None:
    book.ledger.judge([reject(KEY, checks=(REPEATED,))])
    [(text, withheld), _] = lines(view(book)).values()
    assert text is None
    assert "is not sealed" in (withheld or "")


def test_the_timeline_tells_all_that_happened_in_order(book: Book) -> None:
    """R-EVT-11, R-CTL-3: runs, attempts, pointers and overrides."""
    seal(book, KEY, 1, LINES)
    book.ledger.judge([accept(KEY, 1, records=3)])
    load(book.ledger)
    book.operator.pause(Scope("demo", "a"), actor="ann", reason="holidays")
    book.operator.pause(Scope("demo", "b"), actor="ann", reason="another's")
    book.operator.resume(Scope("demo", "a"), actor="ann", reason="back")
    book.ledger.runs.tell(
        [
            PartitionFailed(
                key=KEY, run_id=run_id(2), attempt="1", failed_stage=Stage.EXTRACT,
                error_class=ErrorClass.TRANSIENT, error=f"{KEY}: no answer",
            )
        ]
    )  # fmt: skip
    plan = book.operator.reprocess(Selection(keys=[KEY]), actor="bob", reason="restated")
    book.operator.carry_out(plan.plan.id)
    seal(book, KEY, 3, LINES)
    book.ledger.judge([accept(KEY, 3, records=3)])
    load(book.ledger)
    book.ledger.judge([reject(KEY, 3, again="x", error="it was cut short")])
    load(book.ledger)
    book.rollback(KEY, run_id(1), actor="bob", reason="bad reload")
    moments = view(book).timeline.moments
    assert [(each.kind, each.run_id, each.actor) for each in moments] == [
        ("sealed", run_id(1), None),
        ("accepted", run_id(1), None),
        ("published", run_id(1), None),
        ("pause", None, "ann"),
        ("resume", None, "ann"),
        ("failed", run_id(2), None),
        ("reprocess", None, "bob"),
        ("sealed", run_id(3), None),
        ("accepted", run_id(3), None),
        ("published", run_id(3), None),
        ("rejected", run_id(3), None),
        ("hidden", run_id(3), None),
        ("rolled_back", run_id(1), "bob"),
        ("published", run_id(1), None),
    ]
    texts = [each.text for each in moments]
    assert "in extract (transient): no answer" in texts
    assert f"3 rows, in place of run {run_id(1)}" in texts
    assert "judged again: it was cut short" in texts
    assert [each.at for each in moments] == sorted(each.at for each in moments)
    assert [each.action for each in view(book).offers] == ["reprocess"]


def test_a_demoted_partition_can_be_rolled_back(book: Book) -> None:
    """R-STATE-9."""
    for run in (1, 2):
        seal(book, KEY, run, LINES)
        book.ledger.judge([accept(KEY, run, records=3)])
    book.ledger.judge([reject(KEY, 2, again="x")])
    [offer] = [each for each in view(book).offers if each.action == "rollback"]
    assert offer.run_id == run_id(1)
    assert f"--to {run_id(1)}" in offer.command


def test_what_was_given_up_can_be_taken_up(book: Book) -> None:
    """R-CTL-5."""
    book.ledger.judge([reject(KEY)])
    plan = book.operator.mark(Selection(keys=[KEY]), actor="ann", reason="lost")
    book.operator.carry_out(plan.plan.id)
    assert [each.action for each in view(book).offers] == ["retry", "clear", "reprocess"]


def test_judgements_and_publications_outlive_the_log(book: Book) -> None:
    """Of a run that was retired, the ledger keeps what it was judged and published as."""
    book.ledger.judge([reject(KEY)])
    book.ledger.judge([accept(KEY, again="x")])
    load(book.ledger)
    told = [(each.kind, each.run_id, each.at, each.attempt) for each in view(book).timeline.moments]
    reads = book.ledger.reader
    kept = gather([], reads.attempts(KEY), reads.pointers.history(KEY), [])
    assert [(each.kind, each.run_id, each.at, each.attempt) for each in kept] == told
    assert [kind for kind, *_ in told] == ["rejected", "accepted", "published"]
