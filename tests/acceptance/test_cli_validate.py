"""`sealbook validate`, as a user types it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from sealbook.ledger import Ledger, open_ledger
from sealbook.model import Status
from tests.support.cli import Ran, run
from tests.support.validation import CONTRACT, LATER_RUN, RUN, days, key, ledger_content, row, rows, seal

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

FIRST, SECOND = days(2)


@dataclass(frozen=True)
class Folder:
    """A book whose only query has the usual contract."""

    path: Path
    ledger: Ledger

    @property
    def raw(self) -> Path:
        """Where raw partitions are."""
        return self.path / "raw"

    def write_rules(self, *rules: Mapping[str, object]) -> None:
        """Configure the book with a contract that has these rules."""
        contract = {
            "columns": {
                column.name: {"type": str(column.type), "required": column.required}
                for column in CONTRACT.columns
            },
            "primary_key": list(CONTRACT.primary_key),
            "date_column": CONTRACT.date_column,
            "rules": list(rules),
        }
        query = {"text": "SELECT", "schema_version": "1", "contracts": {"1": contract}}
        catalogue = {"source": "demo", "queries": {"campaign_daily": query}}
        settings = {
            "ledger": "sqlite:///book.db",
            "sources": {"demo": {"queries": "demo.yaml", "customers": ["good", "bad", "odd"]}},
            "spark": {"master": "local[2]"},
        }
        (self.path / "demo.yaml").write_text(yaml.safe_dump(catalogue, sort_keys=False))
        (self.path / "sealbook.yaml").write_text(yaml.safe_dump(settings))

    def validate(self, *arguments: str) -> Ran:
        """Run the command."""
        return run("validate", *arguments, cwd=self.path)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """Two good partitions and a bad one, sealed but not judged."""
    with open_ledger(f"sqlite:///{tmp_path}/book.db") as ledger:
        folder = Folder(tmp_path, ledger)
        folder.write_rules({"name": "some_clicks", "expression": "metrics_clicks > 0"})
        seal(folder.raw, key("good", FIRST), rows(3, FIRST))
        seal(folder.raw, key("good", SECOND), rows(2, SECOND))
        seal(folder.raw, key("bad"), [row(1), row(2), row(1)])
        yield folder


def test_what_is_new_is_judged_once_and_rejections_are_shown_in_full(folder: Folder) -> None:
    ran = folder.validate()

    assert ran.code == 3
    assert "3 runs with 8 rows: 2 accepted, 1 rejected" in ran.said
    assert ["primary_key", "error", "1"] in [line.split() for line in ran.out.splitlines()]
    assert f"{key('bad')} run {RUN} rejected" in ran.out
    assert (
        "1 line has the campaign_id, segments_device of an earlier line: (1, MOBILE) (1 found, in line 3)"
        in ran.out
    )
    assert folder.ledger.state(key("bad")).status is Status.FAILED

    again = folder.validate()
    assert (again.code, again.out) == (0, "")
    assert "nothing new to judge" in again.said
    assert "1 partition is failed" in again.said
    assert "--rejected" in again.said
    elsewhere = folder.validate("--customer-id", "good")
    assert "--rejected" not in elsewhere.said


def test_json_has_an_object_for_each_run(folder: Folder) -> None:
    seal(folder.raw, key("odd"), rows(1), says={"schema_version": "9"})
    ran = folder.validate("--format", "json")

    assert ran.code == 3
    found: dict[tuple[str, str], Any] = {
        (each["customer_id"], each["logical_date"]): each for each in ran.json
    }
    assert {place: (each["outcome"], each["status"]) for place, each in found.items()} == {
        ("good", str(FIRST)): ("accepted", "success"),
        ("good", str(SECOND)): ("accepted", "success"),
        ("bad", str(FIRST)): ("rejected", "failed"),
        ("odd", str(FIRST)): ("not_judged", None),
    }
    assert len({frozenset(each) for each in ran.json}) == 1, "all have the same fields"
    [failed] = [check for check in found["bad", str(FIRST)]["checks"] if not check["passed"]]
    assert (failed["name"], failed["violations"], failed["lines"]) == ("primary_key", 1, [3])
    assert "no contract for schema_version '9'" in found["odd", str(FIRST)]["error_message"]


def test_a_changed_contract_is_tried_and_then_applied(folder: Folder) -> None:
    folder.validate()
    folder.write_rules(
        {"name": "three_rows", "expression": "campaign_id < 3"},
        {"name": "named", "expression": "campaign_name = 'Campaign 1'", "severity": "warn"},
    )
    before = ledger_content(folder.ledger)
    tried = folder.validate("--revalidate", "--dry-run")

    assert tried.code == 3
    table = [line.split() for line in tried.out.splitlines()]
    assert ["three_rows", "error", "1"] in table
    assert ["named", "warn", "2"] in table
    assert f"{key('good', FIRST)} run {RUN} would be demoted" in tried.out
    assert "1 accepted, 1 would be demoted" in tried.said
    assert "nothing was written" in tried.said
    assert ledger_content(folder.ledger) == before

    assert folder.validate("--revalidate").code == 3
    assert folder.ledger.state(key("good", FIRST)).status is Status.FAILED
    assert folder.ledger.state(key("good", SECOND)).status is Status.SUCCESS
    assert folder.validate("--revalidate").code == 0


def test_a_dry_run_judges_what_is_new_and_writes_nothing(folder: Folder) -> None:
    before = ledger_content(folder.ledger)
    tried = folder.validate("--dry-run")

    assert tried.code == 3
    assert f"{key('bad')} run {RUN} would be rejected" in tried.out
    assert "2 accepted, 1 would be rejected" in tried.said
    assert ledger_content(folder.ledger) == before


def test_what_was_rejected_is_judged_again_after_its_contract_was_corrected(folder: Folder) -> None:
    """R-VER-6."""
    folder.write_rules({"name": "three_rows", "expression": "campaign_id < 3"})
    assert folder.validate("--customer-id", "good").code == 3
    folder.write_rules()

    tried = folder.validate("--rejected", "--dry-run")
    assert "1 run with 3 rows: 1 accepted, 0 would be rejected" in tried.said
    assert folder.ledger.state(key("good", FIRST)).status is Status.FAILED
    assert folder.validate("--rejected", "--format", "json").json[0]["status"] == "success"
    assert folder.ledger.state(key("good", FIRST)).attempt_count == 2
    assert "nothing rejected to judge again" in folder.validate("--rejected").said


def test_what_is_passed_over_as_superseded_is_said(folder: Folder) -> None:
    """R-VER-5."""
    seal(folder.raw, key("good", FIRST), rows(3, FIRST), run_id=LATER_RUN)
    assert folder.validate("--run-id", LATER_RUN).code == 0

    ran = folder.validate("--customer-id", "good", "--until", str(FIRST))

    assert ran.code == 0
    assert "nothing new to judge" in ran.said
    assert "Passed over as superseded: 1 run" in ran.said


@pytest.mark.parametrize(
    ("arguments", "judged"),
    [
        ([str(key("good", SECOND))], {("good", SECOND)}),
        (["--customer-id", "good"], {("good", FIRST), ("good", SECOND)}),
        (["--since", str(SECOND)], {("good", SECOND)}),
        (["--until", str(FIRST), "--source", "demo"], {("good", FIRST), ("bad", FIRST)}),
        (["--run-id", LATER_RUN], set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_only_what_is_asked_for_is_judged(folder: Folder, arguments: list[str], judged: set[Any]) -> None:
    ran = folder.validate(*arguments, "--format", "json")

    found = {(each["customer_id"], each["logical_date"]) for each in ran.json}
    assert found == {(customer, str(day)) for customer, day in judged}


@pytest.mark.parametrize(
    ("option", "name", "known"),
    [
        ("--source", "demos", "demo"),
        ("--query-name", "other", "campaign_daily"),
        ("--customer-id", "x", "good, bad, odd"),
    ],
)
def test_a_name_that_nothing_has_is_an_error_that_says_which_there_are(
    folder: Folder, option: str, name: str, known: str
) -> None:
    ran = folder.validate(option, name)

    assert (ran.code, ran.out) == (2, "")
    assert f" {name} is configured" in ran.said
    assert f"Configured are {known};" in ran.said


def test_a_rule_that_is_wrong_is_refused_with_its_place(folder: Folder) -> None:
    folder.write_rules({"name": "clicks", "expression": "metric_clicks > 0"})
    ran = folder.validate()

    assert (ran.code, ran.out) == (2, "")
    assert "queries.campaign_daily.contracts.1.rules[0].expression" in ran.said
    assert "no column metric_clicks" in ran.said
    assert not list(folder.ledger.states())


def test_nothing_but_runs_without_a_contract_is_a_configuration_error(folder: Folder) -> None:
    place = seal(folder.raw, key("odd"), rows(1), says={"schema_version": "9"})
    ran = folder.validate(str(place))

    assert ran.code == 2
    assert "1 not judged" in ran.said


@pytest.mark.parametrize(
    "arguments",
    [
        ("--revalidate", "--rejected"),
        (str(key()), "--source", "demo"),
        ("--since", "2026-01-02", "--until", "2026-01-01"),
        ("--run-id", "1"),
        ("demo/c0/campaign_daily",),
    ],
)
def test_wrong_usage(folder: Folder, arguments: tuple[str, ...]) -> None:
    ran = folder.validate(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err
