"""Staging in a task: sealed payloads become artifacts, each a pure function of its payload (R-WH-2).

It is idempotent, so a task may be repeated, and two loads may stage the same at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate, islice
from math import ceil

from sealbook.errors import NotFound, SealbookError, Transient
from sealbook.load.drifting import DriftComparer, Replaced
from sealbook.model import RunId
from sealbook.model.artifacts import FIRST_FORMAT, FORMAT, Artifact, StoredArtifact
from sealbook.model.contract import Contract
from sealbook.model.drift import Drift
from sealbook.model.failures import ErrorClass
from sealbook.model.words import counted
from sealbook.raw import RawReader
from sealbook.rows.blocks import BLOCK_BYTES, Part
from sealbook.rows.offending import JSON, TYPES
from sealbook.rows.parser import RowParser
from sealbook.rows.problems import (
    CorruptMetadata,
    CorruptPayload,
    Defect,
    OtherVersion,
    Problem,
    Unreadable,
)
from sealbook.rows.units import Digest, Reading, Slice, Unit, UnitReader
from sealbook.spark.tasks import attempt_number
from sealbook.warehouse.encoding import digest_of, stamp_of, to_parquet
from sealbook.warehouse.layout import location_of, part_path, part_paths
from sealbook.warehouse.part_files import PartFiles
from sealbook.warehouse.store import ArtifactStore

PART_BYTES = 64 * 1024 * 1024
"""A payload is split at the first line that begins at each multiple of this: every piece is one part."""


@dataclass(frozen=True, slots=True)
class Placing:
    """How an artifact is written: in which format, as which copy. `kept` is what should be there already.

    `files_run_id` is the run that it is written for, if that is another one with the same payload.
    """

    format: int = FORMAT
    copy: int = 0
    kept: StoredArtifact | None = None
    files_run_id: RunId | None = None


_FIRST = Placing()


@dataclass(frozen=True, slots=True)
class StagingTask:
    """Payloads of one contract, or pieces of large ones. `placings` says of which not the usual holds.

    `replaced` are the published runs that whole ones are compared with.
    """

    contract: Contract
    units: tuple[Unit, ...]
    placings: Mapping[int, Placing] = field(default_factory=dict)
    replaced: Mapping[int, Replaced] = field(default_factory=dict)

    def placing(self, unit: Unit) -> Placing:
        """Return how the artifact of a unit is written."""
        return self.placings.get(unit.ordinal, _FIRST)

    def halves(self) -> Sequence[StagingTask]:
        """Return the task as two, to find out which unit kills its worker; none, if it is of one unit."""
        half = len(self.units) // 2
        return [replace(self, units=units) for units in (self.units[:half], self.units[half:]) if half]


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """One part file of an artifact."""

    number: int
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Written:
    """What came of a unit: the parts that it was written to. That of a digest has none.

    `drift` is how its rows differ from those of the run that it is to replace.
    """

    ordinal: int
    parts: tuple[WrittenPart, ...] = ()
    drift: Drift | None = None


@dataclass(frozen=True, slots=True)
class Intact:
    """The artifact of an earlier load was there, intact, and was left alone."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class NotStaged:
    """The unit cannot be staged, at least not now; `unwritable` if the warehouse did not take it."""

    ordinal: int
    reason: str
    error_class: ErrorClass = ErrorClass.PERMANENT
    unwritable: bool = False


StagingResult = Written | Intact | NotStaged


def piece_count(payload_bytes: int, part_bytes: int = PART_BYTES) -> int:
    """Return into how many pieces a payload is split."""
    return max(ceil(payload_bytes / part_bytes), 1)


@dataclass(frozen=True)
class Stager:
    """All that a worker needs to stage. It holds no way to publish anything."""

    raw: RawReader
    artifacts: ArtifactStore
    tries: int = 1
    part_bytes: int = PART_BYTES
    block_bytes: int = BLOCK_BYTES

    def __call__(self, task: StagingTask) -> list[StagingResult]:
        """Stage the units of a task; what fails is a result like the others. All is on disk at the end."""
        owners: dict[str, int] = {}
        results = list(self._stage(task, owners))
        lost = {owners[path]: error for path, error in self.artifacts.sync().items() if path in owners}
        return [
            _not_written(each.ordinal, lost[each.ordinal])
            if isinstance(each, Written) and each.ordinal in lost
            else each
            for each in results
        ]

    def _stage(self, task: StagingTask, owners: dict[str, int]) -> Iterator[StagingResult]:
        version = task.contract.schema_version
        wanted = []
        for unit in task.units:
            if self._is_intact(task.placing(unit).kept):
                yield Intact(unit.ordinal)
            else:
                wanted.append(unit)
        parser = RowParser(task.contract.columns)
        gathered: list[_Texts] = []
        size = 0
        for reading in UnitReader(self.raw, version, self.tries).read_all(wanted, attempt_number()):
            if reading.problem is not None:
                yield _not_staged(reading.unit, reading.problem, version)
            elif isinstance(reading.unit, Digest):
                yield Written(reading.unit.ordinal)
            else:
                gathered.append(_Texts(reading.unit, self._pieces(reading), reading.lines))
                size += len(reading.data)
            if size >= self.block_bytes:
                yield from self._written(task, parser, gathered, owners)
                gathered, size = [], 0
        if gathered:
            yield from self._written(task, parser, gathered, owners)

    def _is_intact(self, kept: StoredArtifact | None) -> bool:
        """Look whether the artifact of an earlier load is there, as it was recorded."""
        if kept is None:
            return False
        try:
            return digest_of([self.artifacts.sha256(path) for path in part_paths(kept)]) == kept.digest
        except NotFound:
            return False

    @cached_property
    def _comparer(self) -> DriftComparer:
        return DriftComparer(PartFiles(self.artifacts.url))

    def _pieces(self, reading: Reading) -> list[bytes]:
        """Split a payload that was read whole just as it would be split into slices."""
        data = reading.data
        if isinstance(reading.unit, Slice) or len(data) <= self.part_bytes:
            return [data]
        cuts = [0]
        for boundary in range(self.part_bytes, len(data), self.part_bytes):
            # A line that begins right at the boundary has the newline of the one before it there.
            newline = data.find(b"\n", boundary - 1)
            cuts.append(newline + 1 if newline >= 0 else len(data))
        return [data[start:end] for start, end in zip(cuts, [*cuts[1:], len(data)], strict=True)]

    def _written(
        self, task: StagingTask, parser: RowParser, texts: Sequence[_Texts], owners: dict[str, int]
    ) -> Iterator[StagingResult]:
        """Write texts; whatever one of them does to our code, its neighbours are staged."""
        try:
            results = list(self._write(task, parser, texts, owners))
        except Transient:
            raise  # the storage may take it when Spark tries the task again
        except Exception as error:  # noqa: BLE001 - one text at a time tells which it is
            if len(texts) > 1:
                results = [result for each in texts for result in self._written(task, parser, [each], owners)]
            else:
                results = [NotStaged(texts[0].unit.ordinal, Defect.of(error).reason)]
        yield from results

    def _write(
        self, task: StagingTask, parser: RowParser, texts: Sequence[_Texts], owners: dict[str, int]
    ) -> Iterator[StagingResult]:
        """Parse texts as one block, and write each as a part; note whose part each path is."""
        version = task.contract.schema_version
        pieces = [piece for each in texts for piece in each.pieces]
        counted = [lines for each in texts for lines in each.counted]
        block = parser.parse(pieces, counted)
        parts = zip(block.parts, accumulate(part.rows for part in block.parts), strict=True)
        files: dict[str, bytes] = {}
        results: list[StagingResult] = []
        for each in texts:
            own = list(islice(parts, len(each.pieces)))
            flawed = next((part for part, _ in own if part.rows != part.lines), None)
            if flawed is not None:
                results.append(NotStaged(each.unit.ordinal, _flaw(flawed, version)))
                continue
            placing = task.placing(each.unit)
            artifact = Artifact(each.unit.key, placing.files_run_id or each.unit.run_id, version)
            written = []
            for number, (part, end) in enumerate(own, start=each.unit.piece):
                stamp = None if placing.format == FIRST_FORMAT else stamp_of(artifact, number)
                data = to_parquet(block.table.slice(end - part.rows, part.rows), stamp)
                digest = sha256(data).hexdigest()
                path = part_path(location_of(artifact), number, digest, placing.copy)
                files[path], owners[path] = data, each.unit.ordinal
                written.append(WrittenPart(number, part.rows, len(data), digest))
            replaced = task.replaced.get(each.unit.ordinal)
            first, last = own[0], own[-1]
            rows = block.table.slice(first[1] - first[0].rows, last[1] - first[1] + first[0].rows)
            drift = None if replaced is None else self._comparer(task.contract, replaced, rows)
            results.append(Written(each.unit.ordinal, tuple(written), drift))
        refused = {owners[path]: error for path, error in self.artifacts.put_all(files).items()}
        for error in refused.values():
            if isinstance(error, Transient) and attempt_number() + 1 < self.tries:
                raise error
        for result in results:
            refusal = refused.get(result.ordinal)
            yield result if refusal is None else _not_written(result.ordinal, refusal)


@dataclass(frozen=True, slots=True)
class _Texts:
    """What was read of a unit, in as many pieces as there will be parts."""

    unit: Unit
    pieces: Sequence[bytes]
    lines: int | None

    @property
    def counted(self) -> Sequence[int | None]:
        """How many lines each piece has, if that is known."""
        return [self.lines] if len(self.pieces) == 1 else [None] * len(self.pieces)


def _not_written(ordinal: int, error: SealbookError) -> NotStaged:
    return NotStaged(ordinal, str(error), ErrorClass.of(error), unwritable=True)


def _not_staged(unit: Unit, problem: Problem, schema_version: str) -> NotStaged:
    """Say why a payload cannot be staged."""
    match problem:
        case CorruptPayload(size=None):
            return NotStaged(unit.ordinal, "its raw payload is missing")
        case CorruptPayload():
            return NotStaged(unit.ordinal, "its raw payload is not what was sealed")
        case OtherVersion(schema_version=sealed):
            reason = f"it was accepted as schema_version {schema_version}, but sealed as {sealed}"
            return NotStaged(unit.ordinal, reason)
        case CorruptMetadata(reason=reason) | Defect(reason=reason):
            return NotStaged(unit.ordinal, reason)
        case Unreadable(reason=reason):
            return NotStaged(unit.ordinal, reason, ErrorClass.TRANSIENT)


def _flaw(part: Part, schema_version: str) -> str:
    offending = [part.offending[problem] for problem in (JSON, TYPES) if problem in part.offending]
    reasons = "; ".join(dict.fromkeys(reason for each in offending for reason in each.reasons))
    lost = part.lines - part.rows
    said = counted(lost, "line", "is no row", "are no rows")
    return f"{said} by the contract of schema_version {schema_version}: {reasons}"
