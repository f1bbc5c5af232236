"""The board for a terminal: how every query stands, what runs, what changed; then the grid."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from rich.text import Text

from sealbook.cli.grid_text import print_grid
from sealbook.cli.table import cell
from sealbook.model.publication import Change, Cut
from sealbook.model.words import counted

if TYPE_CHECKING:
    from rich.console import Console

    from sealbook.model.status_line import QueryCounts
    from sealbook.views.status_board import Board, Changes, Runs, Schedule

_COLUMNS = {
    "due": ("due", ""),
    "readable": ("readable", "green"),
    "behind": ("behind", "yellow"),
    "failed": ("failed", "red"),
    "not_fetched": ("not fetched", "red"),
    "late": ("late", "yellow"),
    "missing": ("missing", "magenta"),
    "newest_day": ("newest day", ""),
}
_CHANGES = {
    Change.WITHDRAWN: ("withdrawn", "red"),
    Change.REPLACED: ("replaced", ""),
    Change.RESTORED: ("restored", "green"),
    Change.PUBLISHED: ("first published", "green"),
}
_OPEN = {"ready": "", "waiting": "", "held": "cyan", "paused": "yellow", "stopped": "red"}
_RUN_STYLES = {"COMPLETED": "green", "FAILED": "red", "CANCELLED": "red"}


def print_board(console: Console, board: Board) -> None:
    """Print the board; each part says what there is, and nothing where there is nothing."""
    if not board.counts.queries:
        console.print("No query is configured.")
        return
    _print_queries(console, board)
    console.print()
    _print_runs(console, board.runs, board.now)
    _print_schedule(console, board.schedule, board.now)
    _print_changes(console, board.changes, board.now)
    if board.lag.alert is not None:
        behind = _span(timedelta(seconds=board.lag.seconds))
        text = f"{board.lag.alert}: what is shown is {behind} behind the log"
        console.print(Text.assemble((text, "bold yellow"), " → sealbook project --follow"))
    if board.grid.rows:
        print_grid(console, board.grid)


def _print_queries(console: Console, board: Board) -> None:
    several = len({asset.source for asset in board.counts.queries}) > 1
    rows = [
        (str(asset) if several else asset.query_name, each) for asset, each in board.counts.queries.items()
    ]
    if len(rows) > 1:
        rows.append(("all", board.total))
    texts = [[name, *(_shown(field, each, board.now) for field in _COLUMNS)] for name, each in rows]
    heads = ["query", *(head for head, _ in _COLUMNS.values())]
    widths = _widths(heads, texts)
    above = False
    if not _fit(widths, console):  # headings of two words take two lines
        upper = [head.rpartition(" ")[0] for head in heads]
        heads = [head.rpartition(" ")[2] for head in heads]
        widths = _widths(heads, [upper, *texts])
        above = not _fit(widths, console)  # names stand above their figures
        if above:
            widths[0] = len(heads[0])
        console.print(_row(upper, widths, ["bold"] * len(upper)), soft_wrap=True)
    console.print(_row(heads, widths, ["bold"] * len(heads)), soft_wrap=True)
    for text, (_, each) in zip(texts, rows, strict=True):
        styles = [style if getattr(each, field) else "dim" for field, (_, style) in _COLUMNS.items()]
        if above:
            console.print(text[0], soft_wrap=True)
            text[0] = ""
        console.print(_row(text, widths, ["", *styles]), soft_wrap=True)


def _shown(field: str, counts: QueryCounts, now: datetime) -> str:
    value: int | date | None = getattr(counts, field)
    if isinstance(value, int):
        return f"{value:,}"
    if value is None:
        return "none"
    return f"{value:%m-%d}" if value.year == now.year else f"{value}"


def _widths(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(heads, *rows, strict=True)]


def _fit(widths: Sequence[int], console: Console) -> bool:
    return sum(widths) + 2 * (len(widths) - 1) <= console.width


def _row(texts: Sequence[str], widths: Sequence[int], styles: Sequence[str]) -> Text:
    line = Text()
    for place, (text, width, style) in enumerate(zip(texts, widths, styles, strict=True)):
        line.append(text.rjust(width) if place else text.ljust(width), style)
        line.append("  ")
    line.rstrip()
    return line


def _print_runs(console: Console, runs: Runs, now: datetime) -> None:
    if runs.last is None and not runs.unended:
        console.print("There is no run yet.")
        return
    if runs.last is not None:
        status = runs.last.status.value
        ended = "" if runs.last.completed_at is None else f" ended {_moment(runs.last.completed_at, now)},"
        console.print(
            Text.assemble(f"last run {runs.last.run_id}{ended} ", (status, _RUN_STYLES.get(status, ""))),
            soft_wrap=True,
        )
    for run in runs.unended:
        name = run.snapshot.run_id
        if run.stalled:
            text = f"stalled: {name}, no sign of life for {_span(run.quiet)}"
            console.print(Text(text, "yellow"), soft_wrap=True)
            for command in run.ways:
                console.print(Text(f"  {command}", "cyan"), soft_wrap=True)
        else:
            begun = run.snapshot.started_at
            since = "" if begun is None else f", begun {_moment(begun, now)}"
            console.print(Text(f"running: {name}{since}", "cyan"), soft_wrap=True)


def _print_schedule(console: Console, schedule: Schedule, now: datetime) -> None:
    """Print how much is open, and what is paused; nothing where nothing is."""
    total = schedule.total
    if sum(total):
        line = Text("open work: ")
        found = [(word, style, getattr(total, word)) for word, style in _OPEN.items()]
        for place, (word, style, count) in enumerate(each for each in found if each[2]):
            line.append(", " if place else "").append(f"{count:,} {word}", style)
        if total.stopped:
            line.append(" → ").append("sealbook state terminal list", "cyan")
        console.print(line, soft_wrap=True)
    for pause in schedule.pauses:
        until = "" if pause.until is None else f" until {_moment(pause.until, now)}"
        text = f"paused: {pause.scope}{until}, by {pause.actor} ({pause.cause}): {pause.reason}"
        console.print(Text(cell(text), "yellow"), soft_wrap=True)


def _print_changes(console: Console, changes: Changes, now: datetime) -> None:
    since = f"cut {changes.since.token}" if isinstance(changes.since, Cut) else _moment(changes.since, now)
    line = Text(f"since {since}: ")
    found = [(kind, count) for kind, count in changes.counts.items() if count]
    for place, (kind, count) in enumerate(found):
        word, style = _CHANGES[kind]
        line.append(", " if place else "").append(f"{count:,} {word}", style)
    if not found:
        line.append("nothing published has changed")
    console.print(line)


def _moment(moment: datetime, now: datetime) -> str:
    """Return a time, without what goes without saying."""
    if moment.date() == now.date():
        return f"{moment:%H:%M}"
    if moment.year == now.year:
        return f"{moment:%m-%d %H:%M}"
    return f"{moment:%Y-%m-%d %H:%M}"


def _span(span: timedelta) -> str:
    minutes = int(span.total_seconds()) // 60
    if minutes < 1:
        return counted(int(span.total_seconds()), "second")
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else counted(minutes // 1440, "day")
