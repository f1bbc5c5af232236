"""`python -m bench.page`: take what was gathered into the documentation, and write its page of figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.__main__ import GATHERED
from bench.figures import Comparison, Figures, read, write
from bench.gathering import HERE, shown
from bench.harness import Result
from bench.scale import Scale

DOCS = HERE.parent / "docs"
FIGURES = DOCS / "figures.json"
PAGE = DOCS / "figures.md"

Cells = tuple[str, ...]

_SCALES = {
    Scale.SMALL: "`small`: fewer partitions and rounds than the bounds were set for, for a laptop",
    Scale.FULL: "`full`: the sizes that the bounds were set for",
}
_HEAD = """\
# Figures

What Sealbook takes, side by side with what others take for the same, on the same machine and in turn. Where a
bound is missed, this page says so.

**Read ratios, not times.** Times are those of one machine on one day. What else it did meanwhile slowed both
sides, though seldom evenly: a ratio near its bound may be on the other side of it next time.

`make bench` measures anew and writes this page; `make bench SCALE=full` takes the sizes that the bounds were
set for. `python -m bench NAME` makes one comparison again, and `python -m bench.page` writes the page from
what was gathered. Nobody edits it: it says what [figures.json](figures.json) says.
"""


def page(figures: Figures) -> str:
    """Return the page, as Markdown."""
    return "\n".join(_page(figures))


def _page(figures: Figures) -> Iterator[str]:
    yield _HEAD
    yield "## The machine"
    yield ""
    yield from _machine(figures)
    yield "## All at a glance"
    yield ""
    yield from _overview(figures)
    yield "## Missed"
    yield ""
    yield from _missed(figures)
    for each in figures.comparisons:
        yield from _section(each)


def _machine(figures: Figures) -> Iterator[str]:
    machine = figures.machine
    loads = [each.load for each in figures.comparisons]
    days = sorted({each.began_at.date().isoformat() for each in figures.comparisons})
    commits = sorted({each.commit for each in figures.comparisons})
    yield from _table(
        ("", ""),
        (
            ("machine", f"{machine.cores} cores, {machine.memory_gigabytes} GB of memory, {machine.system}"),
            ("versions", ", ".join(f"{name} {number}" for name, number in machine.versions.items())),
            ("measured", ", ".join(days)),
            ("commit", ", ".join(commits)),
            ("load", f"{min(loads):.1f} to {max(loads):.1f} when comparisons began{_busy(figures)}"),
            ("scale", _SCALES[figures.scale]),
        ),
    )


def _busy(figures: Figures) -> str:
    """Say so if others were at work: a comparison begins when the one before has ended."""
    highest = max(each.load for each in figures.comparisons)
    if highest <= figures.machine.cores:
        return ""
    return f": **others worked on these {figures.machine.cores} cores too, so ratios are noisy**"


def _overview(figures: Figures) -> Iterator[str]:
    yield from _table(
        ("comparison", "of what", "bounds held", "missed", "took"),
        (
            (
                f"[{each.name}](#{each.name})",
                each.about,
                str(len(each.held)),
                "**failed**" if each.failure is not None else _emphasized(len(each.missed)),
                shown(each.seconds),
            )
            for each in figures.comparisons
        ),
    )


def _emphasized(count: int) -> str:
    return f"**{count}**" if count else "0"


def _missed(figures: Figures) -> Iterator[str]:
    lines = [
        *(
            f"- **{each.name}** did not come to its end: {_safe(each.failure)}"
            for each in figures.comparisons
            if each.failure is not None
        ),
        *(
            f"- {each.name}: {_safe(result.name)}: **{_value(result)}**, bound {_bound(result)}."
            f" {result.why or 'Why is not known.'}"
            for each in figures.comparisons
            for result in each.missed
        ),
    ]
    yield from lines or ["No bound was missed."]
    yield ""


def _section(made: Comparison) -> Iterator[str]:
    yield f"## {made.name}"
    yield ""
    yield made.about
    yield ""
    if made.failure is not None:
        yield f"**It did not come to its end**: {_safe(made.failure)}"
        yield ""
        return
    yield from _table(
        ("what", "measured", "bound", "", "detail"),
        (
            (result.name, _value(result), _bound(result), _mark(result), result.detail)
            for result in made.results
        ),
    )


def _value(result: Result) -> str:
    digits = 0 if abs(result.value) >= 1_000 else 2
    return f"{result.value:,.{digits}f} {result.unit}".rstrip()


def _bound(result: Result) -> str:
    return result.bound.replace("<=", "≤").replace(">=", "≥")


def _mark(result: Result) -> str:
    if not result.is_bound:
        return ""
    return "held" if result.holds else "**missed**"


def _table(head: Cells, rows: Iterable[Cells]) -> Iterator[str]:
    yield _row(head)
    yield "|" + "---|" * len(head)
    for row in rows:
        yield _row(row)
    yield ""


def _row(cells: Cells) -> str:
    return f"| {' | '.join(map(_safe, cells))} |"


def _safe(text: str) -> str:
    """Keep text from being taken for the edge of a cell, or for a tag."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def main(gathered: Path = GATHERED) -> None:
    """Take what was gathered into the documentation."""
    figures = read(gathered)
    write(figures, FIGURES)
    PAGE.write_text(page(figures), "utf-8")
    print(f"{PAGE.relative_to(HERE.parent)} and {FIGURES.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
