"""Spans of OpenTelemetry for the stages of runs, where its API is installed; else nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

_FEW = 10


@contextmanager
def traced(stage: str, runs: Collection[str]) -> Iterator[None]:
    """Trace the block as a span, below the one that the caller is in; what breaks it off ends it as an error.

    It is not made the current span: results are handed on from within, to those who are not part of it.
    """
    try:
        from opentelemetry import trace
    except ModuleNotFoundError:
        yield
        return
    named = {"sealbook.stage": stage, "sealbook.runs": sorted(runs)[-_FEW:]}
    span = trace.get_tracer("sealbook").start_span(f"sealbook {stage}", attributes=named)
    try:
        yield
    except BaseException as error:
        span.set_status(trace.StatusCode.ERROR, type(error).__name__)
        raise
    finally:
        span.end()
