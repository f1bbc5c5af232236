"""`python -m bench [NAME ...]`: make the named comparisons, or all; a table, and a file of figures."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.figures import Comparison, continued, write
from bench.gathering import HERE, Gatherer, names
from bench.machine import this_machine
from bench.scale import Scale

RESULTS = HERE / "results"
GATHERED = RESULTS / "figures.json"
ALL_HELD, MISSED, INCOMPLETE = 0, 1, 3


def main(arguments: list[str]) -> int:
    """Make comparisons; the exit code says whether all came to their end, and whether every bound held.

    Each is written down as soon as it is made, in the place of the last one of its name.
    """
    asked = _parse(arguments)
    wanted = asked.names or names()
    machine = this_machine()
    gatherer = Gatherer(asked.scale, RESULTS, Console(stderr=True))
    made = []
    for number, name in enumerate(wanted, 1):
        made.append(gatherer.make(name, f"[{number}/{len(wanted)}] "))
        figures = continued(GATHERED, asked.scale, machine, names())  # others may add to it meanwhile
        write(figures.including(made[-1]), GATHERED)
    console = Console(width=160)
    for each in made:
        console.print(table(each))
    console.print(f"written to {GATHERED}; `python -m bench.page` makes a page of it", highlight=False)
    return exit_code(made)


def _parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser(
        "python -m bench",
        description="Measure against peers.",
        epilog=f"Exit code: {ALL_HELD} every bound held; {MISSED} one was missed;"
        f" {INCOMPLETE} a comparison failed or died.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; default: all")
    parser.add_argument(
        "--scale",
        type=Scale,
        choices=list(Scale),
        default=Scale.SMALL,
        help="small: within the hour on two cores; full: what the bounds were set for; default: small",
    )
    asked = parser.parse_args(arguments)
    unknown = sorted(set(asked.names) - set(names()))
    if unknown:
        parser.error(f"no such comparison: {', '.join(unknown)}; there are {', '.join(names())}")
    return asked


def table(made: Comparison) -> Table:
    """Show a comparison to people."""
    shown = Table("what", "measured", "bound", "", "detail", title=made.name, title_justify="left")
    if made.failure is not None:
        shown.add_row(escape(made.failure), "", "", "[red]failed[/]", "")
    for result in made.results:
        mark = "[green]held[/]" if result.holds else "[red]missed[/]"
        value = f"{result.value:,.2f} {result.unit}"
        shown.add_row(escape(result.name), value, result.bound, mark, escape(result.detail))
    return shown


def exit_code(made: list[Comparison]) -> int:
    """Say by a number how it went; the worst of all counts."""
    if any(each.failure is not None for each in made):
        return INCOMPLETE
    return MISSED if any(each.missed for each in made) else ALL_HELD


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
