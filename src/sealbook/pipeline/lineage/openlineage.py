"""What the log tells, as events of OpenLineage: made by its own library, so that they are as it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sealbook.model import Attempt, Severity
from sealbook.model.contract import Query
from sealbook.model.partition_events import PartitionFact, PartitionJudged, Stage
from sealbook.model.wire import format_time
from sealbook.pipeline.lineage.told import FetchEvents, Moment, Told, Work, failures, work_by_query

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent
    from openlineage.client.facet_v2 import DatasetFacet, InputDatasetFacet, JobFacet, RunFacet

    from sealbook.model import PartitionKey

PRODUCER = f"urn:sealbook:{version('sealbook')}"
_RUN = "run"


@dataclass(frozen=True)
class LineageEvents:
    """Makes events of what the log tells of the runs of a book."""

    namespace: str
    raw: str
    warehouse: str
    queries: Mapping[tuple[str, str], Query]
    fetch_events: FetchEvents
    judgements: Callable[[Collection[PartitionKey]], list[Attempt]]

    def event(self, told: Told) -> str:
        """Return the event as JSON."""
        from openlineage.client.serde import Serde

        return Serde.to_json(self._event(told))

    def _event(self, told: Told) -> RunEvent:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState

        ended = told.stage is not None and told.moment is not Moment.START
        facts = told.facts(self.fetch_events) if ended else []
        at = told.event.emitted_at or told.event.persisted_at
        assert at is not None  # every stored event has the latter
        return RunEvent(
            eventType=RunState[told.moment.value],
            eventTime=format_time(at),
            run=Run(told.uuid, facets=self._run_facets(told, facts)),
            job=Job(self.namespace, _job(told.stage), facets=_job_facets(told.stage)),
            inputs=self._inputs(told.stage, facts),
            outputs=self._outputs(told.stage, facts),
            producer=PRODUCER,
        )

    def _run_facets(self, told: Told, facts: Iterable[PartitionFact]) -> dict[str, RunFacet]:
        from openlineage.client.facet_v2 import error_message_run, parent_run

        facets: dict[str, RunFacet] = {}
        if told.stage is not None:
            facets["parent"] = parent_run.ParentRunFacet(
                run=parent_run.Run(told.run_uuid),
                job=parent_run.Job(self.namespace, _RUN),
                producer=PRODUCER,
            )
        wrong = told.error or failures(facts)
        if wrong is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
                message=wrong, programmingLanguage="Python", producer=PRODUCER
            )
        return facets

    def _inputs(self, stage: Stage | None, facts: list[PartitionFact]) -> list[InputDataset]:
        from openlineage.client.event_v2 import InputDataset

        found = []
        for name, work in work_by_query(facts).items():
            place = name if stage is Stage.EXTRACT else _place(self.raw, name)
            found.append(
                InputDataset(
                    *place,
                    facets=self._schema(name, work),
                    inputFacets=self._assertions(name, facts) if stage is Stage.VALIDATE else {},
                )
            )
        return found

    def _outputs(self, stage: Stage | None, facts: list[PartitionFact]) -> list[OutputDataset]:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.facet_v2 import output_statistics_output_dataset as statistics

        root = {Stage.EXTRACT: self.raw, Stage.LOAD: self.warehouse}.get(stage or Stage.VALIDATE)
        if root is None:
            return []
        return [
            OutputDataset(
                *_place(root, name),
                facets=self._schema(name, work),
                outputFacets={
                    "outputStatistics": statistics.OutputStatisticsOutputDatasetFacet(
                        rowCount=work.rows, size=work.bytes, fileCount=work.files, producer=PRODUCER
                    )
                },
            )
            for name, work in work_by_query(facts).items()
        ]

    def _schema(self, name: tuple[str, str], work: Work) -> dict[str, DatasetFacet]:
        """Return the columns by the contract of a version; nothing if that is not configured any more."""
        from openlineage.client.facet_v2 import schema_dataset

        query = self.queries.get(name)
        contract = None if query is None else query.contracts.get(work.schema_version or "")
        if contract is None:
            return {}
        fields = [
            schema_dataset.SchemaDatasetFacetFields(name=column.name, type=str(column.type))
            for column in contract.columns
        ]
        return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields, producer=PRODUCER)}

    def _assertions(
        self, name: tuple[str, str], facts: Iterable[PartitionFact]
    ) -> dict[str, InputDatasetFacet]:
        """Return each check of the step's judgements of a query, and whether it held of all partitions."""
        from openlineage.client.facet_v2 import data_quality_assertions_dataset as quality

        judged = {
            (fact.key, fact.attempt)
            for fact in facts
            if isinstance(fact, PartitionJudged) and (fact.key.source, fact.key.query_name) == name
        }
        found: dict[str, quality.Assertion] = {}
        violations: dict[str, int] = {}
        for attempt in self.judgements([key for key, _ in judged]):
            if (attempt.key, str(attempt.attempt)) not in judged:
                continue
            for check in attempt.checks:
                level = "error" if check.severity is Severity.ERROR else "warn"
                known = found.setdefault(
                    check.name, quality.Assertion(assertion=check.name, success=True, severity=level)
                )
                known.success = known.success and check.passed
                violations[check.name] = violations.get(check.name, 0) + check.violations
        for each, number in violations.items():
            found[each].actual = str(number)
        facet = quality.DataQualityAssertionsDatasetFacet(assertions=list(found.values()), producer=PRODUCER)
        return {"dataQualityAssertions": facet} if found else {}


def _job(stage: Stage | None) -> str:
    return _RUN if stage is None else f"{_RUN}.{stage}"


def _job_facets(stage: Stage | None) -> dict[str, JobFacet]:
    from openlineage.client.facet_v2 import job_type_job

    kind = "RUN" if stage is None else "STAGE"
    return {
        "jobType": job_type_job.JobTypeJobFacet(
            processingType="BATCH", integration="SEALBOOK", jobType=kind, producer=PRODUCER
        )
    }


def _place(root: str, name: tuple[str, str]) -> tuple[str, str]:
    """Return namespace and name of the dataset of a query below a root, as OpenLineage names places."""
    below = "/".join(name)
    parts = urlsplit(root)
    if not parts.scheme:
        return "file", f"{root}/{below}"
    prefix = parts.path.strip("/")
    return f"{parts.scheme}://{parts.hostname}", f"{prefix}/{below}" if prefix else below
