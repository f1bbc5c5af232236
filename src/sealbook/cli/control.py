"""`sealbook control`: which partitions are worked on, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealbook.cli import schedule
from sealbook.cli.loop import add_commands
from sealbook.cli.options import FormatOption
from sealbook.cli.output import Format, message, show_object
from sealbook.cli.selecting import selects
from sealbook.model.spans import duration_text
from sealbook.model.words import counted

if TYPE_CHECKING:
    from sealbook.book import BookReader
    from sealbook.model.selection import Selection
    from sealbook.views.simulation import SimulationView

app = typer.Typer(no_args_is_help=True, help="Which partitions are worked on, and when.")
add_commands(app)

_SIMULATE_EXAMPLES = """
[bold]Examples[/bold]
  sealbook control simulate --days 30
  sealbook control simulate --days 90 --transient 0.1 --query campaign_daily
"""


@app.command(epilog=_SIMULATE_EXAMPLES)
@selects()
def simulate(
    ctx: typer.Context,
    book: BookReader,
    selection: Selection,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=3_660, help="For how many days.")] = 30,
    at_once: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many requests are worked on at once.")
    ] = 8,
    seconds: Annotated[int, typer.Option(metavar="N", min=1, help="How long an attempt takes.")] = 2,
    transient: Annotated[
        float | None,
        typer.Option(metavar="PART", min=0, max=1, help="Which part of attempts fails for a while."),
    ] = None,
    permanent: Annotated[
        float | None, typer.Option(metavar="PART", min=0, max=1, help="Which part fails for good.")
    ] = None,
    rejected: Annotated[
        float | None, typer.Option(metavar="PART", min=0, max=1, help="Which part is rejected.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Another one has other luck.")] = 0,
    form: FormatOption = Format.TABLE,
) -> None:
    """Run the configured policy on a virtual clock, and say when what would be good, and what it costs.

    Attempts fail as often as the log says that they did, unless --transient, --permanent or --rejected
    say otherwise. Nothing is fetched, and nothing is written.
    """
    from sealbook.control.gathering import scenario_of
    from sealbook.control.scenario import Rates
    from sealbook.control.simulation import simulate as run_scenario
    from sealbook.views.simulation import SimulationView

    del ctx
    given = [transient, permanent, rejected]
    rates = None if given == [None] * 3 else Rates(*(part or 0.0 for part in given))
    scenario = scenario_of(
        book.settings, book.ledger, book.expectations(horizons=True).fetchable, selection, days,
        rates=rates, at_once=at_once, seconds=seconds, seed=seed,
    )  # fmt: skip
    view = SimulationView.of(scenario, run_scenario(scenario, days))
    if form is Format.JSON:
        show_object(view.to_dict())
    else:
        _print(view)
    message(_summary(view))


def _print(view: SimulationView) -> None:
    from sealbook.cli.table import Column, print_table, stdout_console

    print_table(
        view.lanes,
        [
            Column("lane", lambda each: each.lane),
            Column("share", lambda each: f"{each.share:.0%}", number=True),
            Column("requests", lambda each: f"{each.requests:,}", number=True),
            Column("waits on average", lambda each: duration_text(each.mean_wait_seconds), number=True),
            Column("at most", lambda each: duration_text(each.longest_wait_seconds), number=True),
            Column("last begun (UTC)", lambda each: each.done_at, spare=1),
        ],
    )
    stdout_console().print()
    print_table(
        view.days,
        [
            Column("day", lambda each: each.day),
            Column("becomes good", lambda each: f"{each.good:,}", number=True),
            *(
                Column(f"{lane} requests", lambda each, lane=lane: f"{getattr(each, lane):,}", number=True)  # type: ignore[misc]
                for lane in ("fresh", "retry", "refresh", "backfill")
            ),
        ],
    )


def _summary(view: SimulationView) -> str:
    ends = ", ".join(
        f"{count:,} {name}"
        for name, count in (
            ("terminal", view.terminal),
            ("parked", view.parked),
            ("not done by then", view.unfinished),
        )
        if count
    )
    budgets = "; ".join(
        f"{each.source} is asked {each.requests_in_24_hours:,} times in its busiest 24 hours"
        + (f" of {each.requests_per_day:,}" if each.requests_per_day else "")
        for each in view.budgets
    )
    said = [f"{counted(view.became_good, 'partition')} would become good" + (f", {ends}" if ends else "")]
    if view.missed_due_points:
        missed = counted(view.missed_due_points, "due point")
        said.append(f"{missed} would pass while the day waits for the one before")
    said += [budgets] if budgets else []
    return ". ".join(said) + "."


schedule.add_to(app)
