"""`/healthz` and `/metrics`, for whoever supervises the console."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sealbook.console.answers import Answer
from sealbook.console.console import Console
from sealbook.control.metrics import HELP, Sample, kind_of, schedule_samples, status_samples
from sealbook.errors import SealbookError
from sealbook.model.selection import Selection

_LASTS_SECONDS = 15


async def _healthz(request: Request) -> Response:
    """Say whether the ledger answers; nothing of what is in it."""
    console: Console = request.app.state.console
    try:
        await run_in_threadpool(console.positions.now)
    except SealbookError:
        return PlainTextResponse("the ledger does not answer\n", 503)
    return PlainTextResponse("ok\n")


async def _metrics(request: Request) -> Response:
    """Give the metrics of the book, however many ask gathered once in a while."""
    console: Console = request.app.state.console
    text = await run_in_threadpool(_metrics_text, console)
    return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _metrics_text(console: Console) -> bytes:
    def gather() -> Answer:
        counts = console.book.ledger.statuses.counts(console.book.expectations(), Selection())
        samples = [*schedule_samples(console.book.ledger, console.book.settings), *status_samples(counts)]
        registry = CollectorRegistry()
        registry.register(_Samples(samples))
        return Answer(generate_latest(registry), "")

    text: bytes = console.gathered("/metrics", gather, lasts=_LASTS_SECONDS).answer.content
    return text


class _Samples(Collector):
    """Samples as Prometheus' own client takes them."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = list(samples)

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with its samples."""
        families: dict[str, Metric] = {}
        for name, labels, value in self._samples:
            if name not in families:
                family = CounterMetricFamily if kind_of(name) == "counter" else GaugeMetricFamily
                families[name] = family(name, HELP[name])
            families[name].add_sample(name, labels, value)
        yield from families.values()


routes = [Route("/healthz", _healthz), Route("/metrics", _metrics)]
