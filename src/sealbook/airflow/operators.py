"""An operator that runs the pipeline."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from typing import Any

import msgspec
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

_FAILED, _WRONG_USE, _IN_PART = 1, 2, 3


class RunOperator(BaseOperator):  # type: ignore[misc]  # whoever has no Airflow has no types of it
    """Takes partitions the whole way by `sealbook run`, and returns the run's summary.

    It is a process of its own, so `command` may be the `sealbook` of another environment, which has Spark.
    Partitions that were not published fail the task, unless `in_part` allows it; what was published stays. A
    retry is a new run. Wrong use or configuration fails the task for good.
    """

    template_fields: Sequence[str] = ("book", "keys", "sources", "customers", "queries", "since", "until")

    def __init__(
        self,
        *,
        book: str,
        keys: Sequence[str] = (),
        sources: Sequence[str] = (),
        customers: Sequence[str] = (),
        queries: Sequence[str] = (),
        since: str | None = None,
        until: str | None = None,
        in_part: bool = False,
        command: Sequence[str] = (sys.executable, "-m", "sealbook"),
        env: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.book = book
        self.keys = keys
        self.sources = sources
        self.customers = customers
        self.queries = queries
        self.since = since
        self.until = until
        self.in_part = in_part
        self.command = command
        self.env = env
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Any) -> dict[str, Any]:
        """Run, and pass on what is said on the way to the task's log."""
        del context
        with TemporaryFile("w+", encoding="utf-8") as answer:
            self._process = subprocess.Popen(
                self.arguments(), stdout=answer, stderr=subprocess.PIPE, text=True, env=self.env
            )
            with self._process as process:
                for line in process.stderr or ():
                    self.log.info("%s", line.rstrip())
            answer.seek(0)
            said = answer.read()
        self._check(process.returncode)
        summary: dict[str, Any] = msgspec.json.decode(said)
        return summary

    def on_kill(self) -> None:
        """Stop as by Ctrl-C: nothing is left half sealed or half published."""
        if self._process is not None:
            self._process.terminate()

    def arguments(self) -> list[str]:
        """Return the command that is given."""
        options = [("--source", self.sources), ("--customer", self.customers), ("--query", self.queries)]
        days = [("--since", self.since), ("--until", self.until)]
        named = [word for option, values in options for value in values for word in (option, value)]
        spanned = [word for option, value in days if value is not None for word in (option, value)]
        return [
            *self.command,
            "--config",
            self.book,
            "run",
            *self.keys,
            *named,
            *spanned,
            "--yes",
            "--format",
            "json",
        ]

    def _check(self, code: int) -> None:
        if code == 0 or (code == _IN_PART and self.in_part):
            return
        said = {
            _FAILED: "nothing was published",
            _WRONG_USE: "the command or the configuration is wrong",
            _IN_PART: "some partitions were not published",
        }.get(code, f"sealbook ended with {code}")
        raise (AirflowFailException if code == _WRONG_USE else AirflowException)(f"{said}; the log says why")
