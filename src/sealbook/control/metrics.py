"""Metrics of a book: one source of samples for whoever serves them. No label names a customer or a day."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sealbook.config import Settings
from sealbook.ledger.reader import LedgerReader
from sealbook.model.status_line import QueryCounts, StatusCounts

Sample = tuple[str, dict[str, str], float]
"""The name of a metric, its labels, and its value now."""

HELP = {
    "sealbook_control_batches_total": "Batches of claims that were worked on.",
    "sealbook_control_batch_seconds_total": "Seconds spent on batches.",
    "sealbook_control_failures_total": "Batches and rounds that broke off by what may pass.",
    "sealbook_control_held_partitions": "Partitions that this loop is working on.",
    "sealbook_control_partitions_total": "Results of stages, by source and how they ended.",
    "sealbook_control_requests_total": "Requests that were sent, by source.",
    "sealbook_control_work": "Open work of the book, by lane and how it stands.",
    "sealbook_control_budget_used_requests": "Requests that count against the budget of a source, by lane.",
    "sealbook_control_budget_limit_requests": "Requests that a source may be asked in any 24 hours.",
    "sealbook_partitions": "Partitions that are due, by query and what became of them.",
}


def schedule_samples(reader: LedgerReader, settings: Settings) -> Iterator[Sample]:
    """Yield what control keeps: open work by lane, and what was asked of sources."""
    for lane, counts in reader.schedule.lanes().items():
        for standing, number in counts._asdict().items():
            yield "sealbook_control_work", {"lane": lane.value, "standing": standing}, number
    for (source, lane), number in sorted(reader.schedule.spent().items()):
        yield "sealbook_control_budget_used_requests", {"source": source, "lane": lane.value}, number
    for source, limit in settings.control.requests_per_day.items():
        yield "sealbook_control_budget_limit_requests", {"source": source}, limit


def status_samples(counts: StatusCounts) -> Iterator[Sample]:
    """Yield how the partitions of each query stand; one may count in several classes."""
    classes = [name for name in QueryCounts._fields if name != "newest_day"]
    for asset, found in sorted(counts.queries.items()):
        for name in classes:
            labels = {"source": asset.source, "query": asset.query_name, "class": name}
            yield "sealbook_partitions", labels, getattr(found, name)


def kind_of(name: str) -> str:
    """Return what Prometheus calls the kind of a metric."""
    return "counter" if name.endswith("_total") else "gauge"


def metrics_text(samples: Iterable[Sample]) -> str:
    """Return samples in the text format of Prometheus."""
    lines: list[str] = []
    said: set[str] = set()
    for name, labels, value in sorted(samples, key=lambda each: each[0]):
        if name not in said:
            lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} {kind_of(name)}"]
            said.add(name)
        named = ",".join(f'{label}="{text}"' for label, text in labels.items())
        lines.append(f"{name}{{{named}}} {value:g}" if named else f"{name} {value:g}")
    return "\n".join(lines) + "\n"
