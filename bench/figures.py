"""What a run of all comparisons has found, and on what machine: one JSON file."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import msgspec

from bench.harness import Result
from bench.scale import Scale


@dataclass(frozen=True, slots=True)
class Machine:
    """What the comparisons ran on: their times mean nothing without it."""

    system: str
    cores: int
    memory_gigabytes: int
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one comparison went; `failure` says why it did not come to its end."""

    name: str
    about: str
    began_at: datetime
    commit: str
    load: float
    seconds: float
    results: tuple[Result, ...] = ()
    failure: str | None = None

    @property
    def held(self) -> tuple[Result, ...]:
        """The results that are within their bounds."""
        return tuple(result for result in self.results if result.holds and result.is_bound)

    @property
    def missed(self) -> tuple[Result, ...]:
        """The results that are beyond their bounds."""
        return tuple(result for result in self.results if not result.holds)


@dataclass(frozen=True, slots=True)
class Figures:
    """All comparisons of one scale on one machine, by name."""

    scale: Scale
    machine: Machine
    comparisons: tuple[Comparison, ...] = ()

    def including(self, new: Comparison) -> Figures:
        """Return the same with a comparison in the place of the last one of its name."""
        others = [each for each in self.comparisons if each.name != new.name]
        return replace(self, comparisons=tuple(sorted([*others, new], key=lambda each: each.name)))


def read(file: Path) -> Figures:
    """Return the figures of a file."""
    return msgspec.json.decode(file.read_bytes(), type=Figures)


def write(figures: Figures, file: Path) -> None:
    """Write figures to a file, in one step."""
    content = msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n"
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(".draft")
    draft.write_bytes(content)
    draft.replace(file)


def continued(file: Path, scale: Scale, machine: Machine, names: Collection[str]) -> Figures:
    """Return the figures of a file to add to, of comparisons that there are still.

    There are none yet if those of the file are of another machine or scale: they cannot stand side by side.
    """
    if file.exists():
        figures = read(file)
        if (figures.scale, figures.machine) == (scale, machine):
            kept = tuple(each for each in figures.comparisons if each.name in names)
            return replace(figures, comparisons=kept)
    return Figures(scale, machine)
