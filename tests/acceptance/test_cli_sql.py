"""`sealbook sql` and `sealbook coverage`, as a user types them. Neither needs Spark."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

import sealbook
from sealbook.book import Book
from tests.support.cli import Ran, run
from tests.support.damage import DAMAGES, inflict
from tests.support.ledger import accept, reject, run_id
from tests.support.published import QUERY, key, publish, write_book

KEYS = [key(customer, day) for customer in range(2) for day in range(2)]
ONE_DAY = ["--since", "2026-01-01", "--until", "2026-01-01"]
BY_CUSTOMER = (
    f"select customer_id, count(*) as n, sum(clicks) as clicks from {QUERY} group by all order by all"
)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Book]:
    """Four partitions of ten rows, published as run 1."""
    with sealbook.open(write_book(tmp_path)) as opened:
        publish(opened.ledger, opened.settings.warehouse, KEYS)
        yield opened


def ask(book: Book, *arguments: str) -> Ran:
    return run(*arguments, cwd=book.settings.root)


def test_an_answer_in_each_form(book: Book) -> None:
    assert ask(book, "sql", BY_CUSTOMER, "--format", "json").json == [
        {"customer_id": "c0", "n": 20, "clicks": 20},
        {"customer_id": "c1", "n": 20, "clicks": 20},
    ]
    table = ask(book, "sql", BY_CUSTOMER)
    assert table.out.splitlines() == [
        "customer_id   n  clicks",
        "c0           20      20",
        "c1           20      20",
    ]
    text = ask(book, "sql", f"select id, share, old from {QUERY} where id = 4", "--format", "csv").out
    assert next(csv.reader(StringIO(text))) == ["id", "share", "old"]
    assert len(text.splitlines()) == 1 + 4


def test_an_answer_without_rows_has_columns(book: Book) -> None:
    question = f"select id, clicks from {QUERY} where id < 0"
    ran = ask(book, "sql", question)
    assert (ran.code, ran.out) == (0, "")
    assert "id, clicks" in ran.said
    assert ask(book, "sql", question, "--format", "json").json == []
    assert ask(book, "sql", question, "--format", "csv").out == "id,clicks\n"


def test_a_question_sees_one_accepted_run_of_each_partition(book: Book) -> None:
    """R-CON-1, R-CON-2, R-WH-5, R-WH-7: behind, strict, demoted, and as of a cut."""

    def runs(*arguments: str) -> list[tuple[str, int]]:
        question = f"select run_id, count(*) n from {QUERY} group by all order by all"
        return [
            (row["run_id"], row["n"])
            for row in ask(book, "sql", question, "--format", "json", *arguments).json
        ]

    assert ask(book, "warehouse", "cut", "create", "before").code == 0
    publish(book.ledger, book.settings.warehouse, KEYS[:1], run=2)
    book.ledger.judge([accept(KEYS[1], 3), reject(KEYS[2], 1, again="r")])

    assert runs() == [(run_id(1), 20), (run_id(2), 10)]
    assert runs("--strict") == [(run_id(1), 10), (run_id(2), 10)]
    assert runs("--cut", "before") == [(run_id(1), 40)]
    assert runs("--cut", "before", "--strict") == [(run_id(1), 30)]
    shown = ask(book, "warehouse", "cut", "show", "before", "--format", "json")
    assert [row["withdrawn"] for row in shown.json].count("rejected") == 1
    assert "Cut before reads 4 partitions, 1 withdrawn since." in shown.said
    assert "rejected" in ask(book, "warehouse", "cut", "show", "before").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["select * from nothing"], "Tables: campaign_daily, clicks"),
        (["selec 1"], "syntax error"),
        (["select nothing from campaign_daily"], "nothing"),
        (["create table t (a int)"], "one question"),
        (["copy (select 1) to 'here.csv'"], "one question"),
        (["select 1; select 2"], "one question"),
        ([""], "one question"),
        (["select 1 as a, 2 as a", "--format", "json"], "several columns 'a'"),
    ],
)
def test_a_question_that_cannot_be_answered(book: Book, arguments: list[str], said: str) -> None:
    ran = ask(book, "sql", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.said


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_artifact_that_is_not_what_was_loaded_is_named(book: Book, damage: str) -> None:
    """And not told in DuckDB's words, nor as a mistake of who asks; `verify` finds the same one."""
    published, said = inflict(book, damage, KEYS[1], KEYS[2])
    ran = ask(book, "sql", f"select * from {QUERY}", "--format", "json")
    assert (ran.code, ran.out) == (1, "")
    assert f"is not what was loaded as {published.key}" in ran.said
    assert said in ran.said
    assert "`sealbook warehouse verify`" in ran.said
    assert "`sealbook load --rebuild`" in ran.said
    verified = ask(book, "warehouse", "verify", "--format", "json")
    assert verified.code == 1
    assert (published.customer_id, str(published.logical_date), "digest") in {
        (row["customer_id"], row["logical_date"], row["field"]) for row in verified.json
    }


def test_a_cut_that_is_not_there(book: Book) -> None:
    for command in (["sql", f"select * from {QUERY}"], ["coverage", QUERY]):
        ran = ask(book, *command, "--cut", "never")
        assert ran.code != 0
        assert "there is no cut 'never'" in ran.said
        assert "warehouse cut list" in ran.said


def test_no_spark_is_imported(book: Book) -> None:
    """And so no JVM is started."""
    program = (
        "import sys; from sealbook.cli import main; code = main(sys.argv[1:]);"
        "sys.exit('imported' if {'pyspark', 'py4j'} & sys.modules.keys() else code)"
    )
    for command in (["sql", BY_CUSTOMER], ["coverage", QUERY]):
        ended = subprocess.run(
            [sys.executable, "-c", program, *command],
            cwd=book.settings.root,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ended.returncode == 0, ended.stderr


def test_coverage_says_what_a_read_gets_and_why(book: Book) -> None:
    """R-CON-3: published, behind, failed, hidden, pending and missing."""
    publish(book.ledger, book.settings.warehouse, [key(2, 0)])
    book.ledger.judge([accept(KEYS[1], 2), reject(KEYS[2], 1, again="r", error="3 rows twice")])
    book.ledger.judge([reject(key(2, 0), 1, again="r"), accept(key(2, 1), 1)])
    book.ledger.requeue([key(2, 0)], actor="ann", reason="again")

    ran = ask(book, "coverage", QUERY, "--until", "2026-01-03", "--format", "json")

    assert ran.code == 0
    found = {(row["customer_id"], row["logical_date"]): row for row in ran.json}
    assert {at: row["kind"] for at, row in found.items()} == {
        ("c0", "2026-01-01"): "published",
        ("c0", "2026-01-02"): "behind",
        ("c0", "2026-01-03"): "missing",
        ("c1", "2026-01-01"): "failed",
        ("c1", "2026-01-02"): "published",
        ("c1", "2026-01-03"): "missing",
        ("c2", "2026-01-01"): "hidden",
        ("c2", "2026-01-02"): "pending",
        ("c2", "2026-01-03"): "missing",
    }
    assert found["c1", "2026-01-01"]["why"] == "3 rows twice"
    assert found["c0", "2026-01-02"]["run_id"] == run_id(1)
    assert run_id(2) in found["c0", "2026-01-02"]["why"]
    assert "9 partitions: 2 published, 1 behind, 1 pending, 1 hidden, 1 failed, 3 missing" in ran.said


def test_coverage_of_what_is_asked_for(book: Book) -> None:
    def kinds(*arguments: str) -> list[str]:
        ran = ask(book, "coverage", QUERY, "--until", "2026-01-02", "--format", "json", *arguments)
        assert ran.code == 0, ran.err
        return [row["kind"] for row in ran.json]

    assert ask(book, "warehouse", "cut", "create", "before").code == 0
    book.ledger.judge([accept(KEYS[0], 2), reject(KEYS[1], 1, again="r")])

    assert kinds("--customer", "c0") == ["behind", "failed"]
    assert kinds("--since", "2026-01-02", "--customer", "c1") == ["published"]
    assert kinds("--kind", "failed", "--kind", "behind") == ["behind", "failed"]
    assert kinds("--cut", "before", "--customer", "c0") == ["published", "withdrawn"]
    strict = ask(book, "coverage", QUERY, "--strict", "--kind", "behind", "--format", "json").json
    assert [(row["customer_id"], row["run_id"]) for row in strict] == [("c0", None)]
    assert "strict" in strict[0]["why"]


def test_coverage_as_a_table(book: Book) -> None:
    book.ledger.judge([reject(KEYS[0], 1, again="r", error="no rows")])
    lines = ask(book, "coverage", QUERY, "--customer", "c0").out.splitlines()
    assert lines[0].split() == ["partition", "kind", "run", "why"]
    assert lines[1].split() == [str(KEYS[0]), "failed", "no", "rows"]
    assert lines[2].split() == [str(KEYS[1]), "published", run_id(1)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "Configured are campaign_daily, clicks"),
        ([QUERY, "--since", "2026-01-02", "--until", "2026-01-01"], "since"),
        ([QUERY, "--kind", "lost"], "lost"),
        (["No!"], "query_name 'No!' is not valid"),
    ],
)
def test_coverage_that_cannot_be_told(book: Book, arguments: list[str], said: str) -> None:
    ran = ask(book, "coverage", *arguments)
    assert ran.code != 0
    assert ran.out == ""
    assert said in ran.said
