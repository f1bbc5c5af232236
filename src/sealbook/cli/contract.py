"""`sealbook contract`: what raw partitions must hold to be accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sealbook.cli.failure import ExitCode, report
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_json
from sealbook.cli.selecting import selects
from sealbook.errors import NotMigrated
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.config import Settings
    from sealbook.errors import ConfigError
    from sealbook.model.contract import Query
    from sealbook.model.selection import Selection

app = typer.Typer(help="What raw partitions must hold to be accepted.", no_args_is_help=True)

_CHECK_EXAMPLES = """
[bold]Examples[/bold]
  sealbook contract check
  sealbook contract check --source google_ads
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
