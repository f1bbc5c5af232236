"""`sealbook contract`: what raw partitions must hold to be accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli.failure import ExitCode, report
from sealbook.cli.invocation import load_settings
from sealbook.cli.options import FormatOption, SourceOption
from sealbook.cli.output import Format, message, show_json
from sealbook.errors import ConfigError
from sealbook.model.contract import Contract, Query

if TYPE_CHECKING:
    from sealbook.config import Settings, SourceSettings

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


@dataclass(frozen=True, slots=True)
class ContractShown:
    """A contract, with what it belongs to and its hashes."""

    source: str
    is_current: bool
    contract_hash: str
    validator_version: str
    contract: Contract


@app.command(epilog=_CHECK_EXAMPLES)
def check(ctx: typer.Context, source: SourceOption = None) -> None:
    """Check every contract, and every rule's expression with Spark's own parser.

    Says what is wrong and where: file, field and line. Reads no data.
    """
    from sealbook.cli.rule_places import rule_errors
    from sealbook.spark.session import spark_session

    settings = load_settings(ctx)
    sources = _sources(settings, source)
    spark = spark_session(settings.spark)
    errors = [error for each in sources for error in rule_errors(spark, each)]
    for error in errors:
        report(error, debug=ctx.obj.debug)
    contracts = [contract for query in _queries(sources) for contract in query.contracts.values()]
    rules = sum(len(contract.rules) for contract in contracts)
    message(f"{len(contracts)} contracts with {rules} rules: {len(errors) or 'nothing'} wrong")
    if errors:
        raise typer.Exit(ExitCode.WRONG_USAGE)


@app.command(epilog=_SHOW_EXAMPLES)
def show(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The name of a query.")],
    source: SourceOption = None,
    form: FormatOption = Format.TABLE,
) -> None:
    """Show the contracts of a query, the one of new extractions first."""
    sources = _sources(load_settings(ctx), source)
    shown = [each for known in _queries(sources) if known.name == query for each in _shown(known)]
    if not shown:
        names = sorted({known.name for known in _queries(sources)})
        raise ConfigError(f"there is no query {query!r}", remedy=f"There are {', '.join(names) or 'none'}.")
    if form is Format.JSON:
        show_json(map(_as_object, shown))
    else:
        from sealbook.cli.contract_text import print_contract

        for each in shown:
            print_contract(each)


def _sources(settings: Settings, name: str | None) -> list[SourceSettings]:
    if name is None:
        return list(settings.sources.values())
    if name not in settings.sources:
        known = ", ".join(settings.sources) or "none"
        raise ConfigError(f"there is no source {name!r}", remedy=f"There are {known}.")
    return [settings.sources[name]]


def _queries(sources: Iterable[SourceSettings]) -> Iterator[Query]:
    for source in sources:
        yield from source.queries.values()


def _shown(query: Query) -> list[ContractShown]:
    from sealbook.validate.contracts import validator_version

    contracts = sorted(
        query.contracts.values(), key=lambda contract: contract.schema_version != query.schema_version
    )
    return [
        ContractShown(
            query.source,
            contract.schema_version == query.schema_version,
            contract.hash,
            validator_version(contract),
            contract,
        )
        for contract in contracts
    ]


def _as_object(shown: ContractShown) -> dict[str, object]:
    """Return one flat object: the contract's own fields, and what it belongs to."""
    from dataclasses import asdict

    fields = asdict(shown)
    contract = fields.pop("contract")
    return {"source": fields.pop("source"), **contract, **fields}
