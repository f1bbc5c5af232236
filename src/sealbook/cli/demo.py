"""`sealbook demo`: the whole way of the data, from a source to a query, on this machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import sealbook
from sealbook.cli.load import run_load
from sealbook.cli.output import message
from sealbook.cli.sql import show_answer
from sealbook.errors import ConfigError, Permanent
from sealbook.extract.results import Ending
from sealbook.model import Outcome

if TYPE_CHECKING:
    from sealbook.book import Book
    from sealbook.model import RunId, Verdict

app = typer.Typer()

_FIRST_DAY, _LAST_DAY = date(2026, 1, 1), date(2026, 1, 10)

_QUESTION = """\
select segments_device as device, count(distinct customer_id) as accounts,
       sum(metrics_clicks)::bigint as clicks, round(sum(metrics_cost_micros) / 1e6)::bigint as cost
from campaign_daily
group by all
order by cost desc"""

_EXAMPLES = """
[bold]Examples[/bold]
  sealbook demo
  sealbook demo my_demo
"""


@app.command(epilog=_EXAMPLES)
def demo(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The folder of the demo book.")] = Path(
        "demo"
    ),
) -> None:
    """Extract, judge and publish 600 made-up partitions, a few of them bad on purpose, and query them.

    It needs no network, and leaves a book on which all other commands work.
    Run it again: the new run replaces what the one before it has published.
    """
    _write_book(folder)
    with sealbook.open(folder) as book:
        run_id = _extract(book)
        verdicts = _judge(book, run_id)
        results = run_load(book, book.loader.plan())
        endings = Counter(result.ending for result in results)
        message(", ".join(f"{count:,} {ending}" for ending, count in endings.items()).capitalize() + "\n")
        _show_summary(book, verdicts)
        typer.echo(f"\n{_QUESTION}\n")
        show_answer(book.sql(_QUESTION))
    rejected = [str(verdict.key) for verdict in verdicts if verdict.outcome is Outcome.REJECTED]
    message(f"\nThe book is in {folder}. Next:")
    for command in (
        "state inspect --status failed",
        *(f"state history {key}" for key in rejected[:1]),
        "coverage campaign_daily --kind failed",
        "warehouse verify",
    ):
        message(f"  sealbook --config {folder} {command}")


def _write_book(folder: Path) -> None:
    """Write the files of the demo book; if they are there already, they are used as they are."""
    from sealbook.extract.sources.demo import demo_configuration

    template = (files("sealbook") / "templates" / "demo.yaml").read_text("utf-8")
    contents = {folder / "sealbook.yaml": template, folder / "demo.yaml": demo_configuration()}
    there = [target for target in contents if target.exists()]
    if there and len(there) < len(contents):
        raise ConfigError(
            f"{folder} has {there[0].name}, but is no demo book; nothing was changed",
            remedy="Name another folder.",
        )
    for target, content in contents.items() if not there else ():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, "utf-8")
        except OSError as error:
            raise ConfigError(f"{target} cannot be written: {error.strerror}") from None


def _extract(book: Book) -> RunId:
    from sealbook.cli.progress import partitions_progress
    from sealbook.clock import new_run_id
    from sealbook.extract.planning import plan_keys

    plan = plan_keys(book.settings.sources, _FIRST_DAY, _LAST_DAY, source="demo")
    run_id, total = new_run_id(), sum(map(len, plan.values()))
    sealed = rows = 0
    with (
        partitions_progress("Extracting", total) as progress,
        closing(book.extract(plan, run_id)) as batches,
    ):
        for batch in batches:
            sealed += sum(result.ending is not Ending.FAILED for result in batch)
            rows += sum(result.record_count for result in batch)
            progress.advance(
                len(batch),
                rows=sum(result.record_count for result in batch),
                size=sum(result.payload_bytes for result in batch),
            )
    message(f"Extracted {sealed:,} of {total:,} partitions, {rows:,} rows, as run {run_id}")
    return run_id


def _judge(book: Book, run_id: RunId) -> list[Verdict]:
    from sealbook.chronicle import steps_of
    from sealbook.cli.progress import partitions_progress
    from sealbook.model.pipeline_events import PipelineStep
    from sealbook.validate import Judged, Selection

    validator = book.validator
    plan = validator.plan(Selection(source="demo", run_id=run_id))
    verdicts: list[Verdict] = []
    with (
        steps_of(book.ledger.run_store, PipelineStep.VALIDATE, [run_id]),
        partitions_progress("Validating", len(plan.candidates)) as progress,
    ):
        for result in validator.judge(plan):
            if not isinstance(result, Judged):
                raise Permanent(f"{result.key} could not be judged: {result.reason}")
            verdicts.append(result.verdict)
            progress.advance(1, rows=result.rows, size=result.payload_bytes)
    rejected = [verdict for verdict in verdicts if verdict.outcome is Outcome.REJECTED]
    message(f"Accepted {len(verdicts) - len(rejected):,}, rejected {len(rejected):,}")
    for verdict in sorted(rejected, key=lambda each: each.key):
        message(f"  {verdict.key}: {verdict.error_message}")
    return verdicts


def _show_summary(book: Book, verdicts: Sequence[Verdict]) -> None:
    from sealbook.cli.table import Column, print_table

    queries = book.settings.sources["demo"].queries
    outcomes = Counter((verdict.key.query_name, verdict.outcome) for verdict in verdicts)
    published = {name: list(book.ledger.pointers.published(name)) for name in queries}
    columns: list[Column[str]] = [
        Column("query", lambda name: name),
        Column("accepted", lambda name: outcomes[name, Outcome.ACCEPTED], number=True),
        Column("rejected", lambda name: outcomes[name, Outcome.REJECTED], style=lambda _: "red", number=True),
        Column("published", lambda name: len(published[name]), number=True),
        Column("rows", lambda name: f"{sum(each.record_count for each in published[name]):,}", number=True),
    ]
    print_table(queries, columns)
