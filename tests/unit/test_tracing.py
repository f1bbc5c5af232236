"""Stages of runs are spans of OpenTelemetry where its API is installed, and nothing where it is not."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry import trace

from sealbook.errors import Transient
from sealbook.ledger import open_ledger
from sealbook.model.partition_events import Stage
from sealbook.pipeline.steps import steps_of
from sealbook.tracing import traced


@dataclass
class Span:
    """What was told of a span."""

    name: str
    attributes: dict[str, Any]
    status: tuple[trace.StatusCode, str | None] | None = None
    ended: bool = False

    def set_status(self, status: trace.StatusCode, description: str | None = None) -> None:
        self.status = status, description

    def end(self) -> None:
        self.ended = True


@dataclass
class Tracer:
    """Keeps what is traced."""

    spans: list[Span] = field(default_factory=list)

    def start_span(self, name: str, attributes: dict[str, Any]) -> Span:
        self.spans.append(Span(name, attributes))
        return self.spans[-1]


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> Tracer:
    kept = Tracer()
    monkeypatch.setattr(trace, "get_tracer", lambda _name: kept)
    return kept


def test_a_stage_is_a_span_that_names_its_runs(tracer: Tracer) -> None:
    with open_ledger("sqlite://") as ledger:
        run_id = ledger.open_run()
        with steps_of(ledger, Stage.EXTRACT, [run_id]):
            [span] = tracer.spans
            assert not span.ended
    assert (span.name, span.ended, span.status) == ("sealbook extract", True, None)
    assert span.attributes == {"sealbook.stage": "extract", "sealbook.runs": [run_id]}


def test_what_breaks_off_ends_its_span_as_an_error_without_its_text(tracer: Tracer) -> None:
    with pytest.raises(Transient), traced("load", []):
        raise Transient("what a server said")
    [span] = tracer.spans
    assert (span.ended, span.status) == (True, (trace.StatusCode.ERROR, "Transient"))


def test_without_the_api_nothing_is_traced(tracer: Tracer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with traced("load", []):
        pass
    assert tracer.spans == []
