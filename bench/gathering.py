"""Makes comparisons one after the other, each in a process of its own, and gathers what they found."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals

import msgspec
from rich.console import Console

from bench.figures import Comparison
from bench.harness import Result
from bench.machine import commit
from bench.scale import VARIABLE, Scale
from sealbook.clock import utc_now

HERE = Path(__file__).parent
_PREFIX = "compare_"
_TICK_SECONDS = 1.0


def names() -> list[str]:
    """Return the comparisons that there are."""
    return sorted(file.stem.removeprefix(_PREFIX) for file in HERE.glob(f"{_PREFIX}*.py"))


def about(name: str) -> str:
    """Return what is compared with what: the first line of the comparison's own words.

    It is read and not imported: to import a comparison is to import Spark and its peers.
    """
    said = ast.get_docstring(ast.parse((HERE / f"{_PREFIX}{name}.py").read_text("utf-8")))
    return (said or "").partition("\n")[0]


@dataclass(frozen=True, slots=True)
class Gatherer:
    """Makes comparisons of a scale, and says on a console how far it is.

    What one prints is in `folder`, as a log of its name. Whether it fails or dies, it comes back as a
    comparison, with what is known of its end. `command` is given the name, and where results are wanted.
    """

    scale: Scale
    folder: Path
    console: Console
    command: Sequence[str] = (sys.executable, "-m", "bench.one")

    def make(self, name: str, place: str = "") -> Comparison:
        """Make one comparison, and wait for it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log, found = self.folder / f"{name}.log", self.folder / f"{name}.json"
        found.unlink(missing_ok=True)
        began_at, load, at_commit = utc_now(), os.getloadavg()[0], commit()
        self._say(f"{place}{name}: {about(name)}")
        began = time.perf_counter()
        code = self._wait([*self.command, name, str(found)], log, name)
        seconds = time.perf_counter() - began
        failure = _failure(code, log) if code or not found.exists() else None
        made = Comparison(
            name=name,
            about=about(name),
            began_at=began_at,
            commit=at_commit,
            load=round(load, 1),
            seconds=round(seconds, 1),
            results=_results(found) if failure is None else (),
            failure=failure,
        )
        self._say(f"{place}{name}: {_summary(made)}")
        return made

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _wait(self, command: Sequence[str], log: Path, name: str) -> int:
        env = {**os.environ, VARIABLE: self.scale}
        began = time.perf_counter()
        with (
            log.open("wb") as said,
            subprocess.Popen(
                command, env=env, stdout=said, stderr=subprocess.STDOUT, cwd=HERE.parent
            ) as work,
            self.console.status(name) as status,
        ):
            while True:
                try:
                    return work.wait(_TICK_SECONDS)
                except subprocess.TimeoutExpired:
                    status.update(f"{name}, {shown(time.perf_counter() - began)}")


def shown(seconds: float) -> str:
    """Show a span as minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def _results(file: Path) -> tuple[Result, ...]:
    return msgspec.json.decode(file.read_bytes(), type=tuple[Result, ...])


def _failure(code: int, log: Path) -> str:
    """Say how a comparison ended: its last words, or the signal that ended it."""
    if code == 0:
        return "it wrote no results"
    if code < 0:
        return f"killed by {Signals(-code).name}"
    words = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return words[-1].strip() if words else f"exit code {code}"


def _summary(made: Comparison) -> str:
    after = f"after {shown(made.seconds)}"
    if made.failure is not None:
        return f"FAILED {after}: {made.failure}"
    return f"{len(made.held)} bounds held, {len(made.missed)} missed {after}"
