"""`sealbook contract`: what raw partitions must hold to be accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode, report
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_json, show_object
from sealbook.cli.selecting import selects
from sealbook.errors import NotMigrated
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.config import Settings
    from sealbook.errors import ConfigError
    from sealbook.model.contract import Query
    from sealbook.model.selection import Selection
    from sealbook.validate.trial import Bite

app = typer.Typer(help="What raw partitions must hold to be accepted.", no_args_is_help=True)

_CHECK_EXAMPLES = """
[bold]Examples[/bold]
  sealbook contract check
  sealbook contract check --source google_ads
"""

_INFER_EXAMPLES = """
[bold]Examples[/bold]
  sealbook contract infer demo/1003/campaign_daily/2026-01-05 demo/1004/campaign_daily/2026-01-05
  sealbook contract infer --query-name campaign_daily --since 2026-01-01 --schema-version 2
"""

_DIFF_EXAMPLES = """
[bold]Examples[/bold]
  sealbook contract diff 1 2 --query-name campaign_daily
  sealbook contract diff 1 2 --format json
"""

_TEST_EXAMPLES = """
[bold]Examples[/bold]
  sealbook contract test
  sealbook contract test google_ads/123-456-7890/campaign_daily/2026-01-01
  sealbook contract test --query-name campaign_daily --format json
"""

_SHOW_EXAMPLES = """
[bold]Examples[/bold]
  sealbook contract show campaign_daily
  sealbook contract show campaign_daily --format json
"""


@app.command(epilog=_CHECK_EXAMPLES)
@selects(configuration=True)
def check(ctx: typer.Context, settings: Settings, selection: Selection) -> None:
    """Check every contract, and every rule's expression with Spark's own parser.

    Columns are held against the contracts that runs were accepted under: new ones need a schema_version
    of their own. Says what is wrong and where: file, field and line. Reads no data.
    """
    from sealbook.spark.session import spark_session
    from sealbook.validate.contracts import rule_errors
    from sealbook.views.contracts import chosen_queries

    queries = chosen_queries(settings, selection)
    spark = spark_session(settings.spark)
    errors = [
        *(error for query in queries for error in rule_errors(spark, query)),
        *_column_errors(settings, queries),
    ]
    for error in errors:
        report(error, ctx.obj)
    contracts = [contract for query in queries for contract in query.contracts.values()]
    rules = sum(len(contract.rules) for contract in contracts)
    message(
        f"{counted(len(contracts), 'contract')} with {counted(rules, 'rule')}: "
        f"{len(errors) or 'nothing'} wrong"
    )
    if errors:
        raise typer.Exit(ExitCode.WRONG_USAGE)


def _column_errors(settings: Settings, queries: list[Query]) -> list[ConfigError]:
    """Hold columns against the contracts that the ledger has accepted runs under, if there is one yet."""
    from sealbook.ledger import ledger_exists, open_ledger_reader
    from sealbook.validate.contracts import column_errors

    if not ledger_exists(settings.ledger):
        return []
    try:
        with open_ledger_reader(settings.ledger) as ledger:
            return [error for query in queries for error in column_errors(ledger.contracts, query)]
    except NotMigrated as error:
        message(f"Columns are not held against accepted runs: {error}.")
        return []


@app.command(epilog=_SHOW_EXAMPLES)
@selects(configuration=True, query=True)
def show(
    ctx: typer.Context, settings: Settings, selection: Selection, form: FormatOption = Format.TABLE
) -> None:
    """Show the contracts of a query, or of all of them, the one of new extractions first."""
    from sealbook.views.contracts import chosen_queries, contract_views

    del ctx
    shown = [each for query in chosen_queries(settings, selection) for each in contract_views(query)]
    if form is Format.JSON:
        show_json(each.to_dict() for each in shown)
    else:
        from sealbook.cli.contract_text import print_contract

        for each in shown:
            print_contract(each)


@app.command(epilog=_INFER_EXAMPLES)
@selects(keys=True)
def infer(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    schema_version: Annotated[
        str | None, typer.Option(metavar="VERSION", help="The version to propose; by default the next one.")
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", min=1, help="Look at so many partitions at most.")] = 20,
    form: FormatOption = Format.TABLE,
) -> None:
    """Propose a contract from sealed runs, as YAML to paste below `contracts`.

    Columns, types, required fields, the primary key, the date column and bounds of the row count are such
    that every run that was looked at holds them. Read it before you use it. Nothing is written.
    """
    from dataclasses import asdict

    from sealbook.config.contract_yaml import contract_yaml

    del ctx
    proposal = book.infer_contract(selection, schema_version=schema_version, runs=runs)
    if form is Format.JSON:
        show_object(asdict(proposal))
    else:
        typer.echo(contract_yaml(proposal.contract, proposal.notes), nl=False)


@app.command(epilog=_DIFF_EXAMPLES)
@selects(configuration=True)
def diff(
    ctx: typer.Context,
    settings: Settings,
    selection: Selection,
    before: Annotated[str, typer.Argument(metavar="V1", help="A schema_version.")],
    after: Annotated[str, typer.Argument(metavar="V2", help="Another.")],
    form: FormatOption = Format.TABLE,
) -> None:
    """Show what differs between two versions of a query's contract, and what that means for reads.

    Of every query that has both, unless one is chosen. Starts no Spark and asks no ledger.
    """
    from sealbook.cli.table import Column, print_table
    from sealbook.views.contracts import chosen_queries, compare_versions

    del ctx
    found = compare_versions(chosen_queries(settings, selection), before, after)
    changes = [(query, each) for query, several in found for each in several]
    if form is Format.JSON:
        show_json({"source": query.source, "query": query.name, **each._asdict()} for query, each in changes)
    elif changes:
        print_table(
            changes,
            [
                Column("query", lambda each: each[0].name, spare=1),
                Column("what", lambda each: each[1].field),
                Column(before, lambda each: each[1].before, wraps=True),
                Column(after, lambda each: each[1].after, wraps=True),
                Column("meaning", lambda each: each[1].note, spare=2, wraps=True),
            ],
        )
    if not changes:
        message(f"Versions {before} and {after} say the same.")


@app.command("test", epilog=_TEST_EXAMPLES)
@selects(keys=True)
def try_checks(
    ctx: typer.Context, book: BookReader, selection: Selection, form: FormatOption = Format.TABLE
) -> None:
    """Seed faults into a sample of an accepted partition, and show whether each check bites.

    Copies of the newest accepted partition of each query and schema_version are judged on Spark, one for each
    fault. Nothing is written to the book. The exit code is 3 if a check lets its fault pass.
    """
    from sealbook.cli.table import Column, print_table

    del ctx
    bites = list(book.try_contracts(selection))
    if form is Format.JSON:
        show_json(bites)
    else:
        print_table(
            bites,
            [
                Column("query", lambda each: f"{each.query_name} {each.schema_version}", spare=2),
                Column("check", lambda each: each.check),
                Column("fault", lambda each: each.fault, wraps=True),
                Column("bites", lambda each: _bites(each), style=lambda each: "" if each.bites else "red"),
                Column("evidence", lambda each: each.detail, spare=1, wraps=True),
            ],
        )
    passing = sum(not each.bites for each in bites)
    found = f"{counted(passing, 'fault')} pass" if passing else "every check bites"
    message(f"{counted(len(bites), 'fault')} seeded: {found}.")
    if passing:
        raise typer.Exit(ExitCode.DONE_IN_PART)


def _bites(bite: Bite) -> str:
    if not bite.bites:
        return "no"
    return "rejects" if bite.severity == "error" else "warns"
