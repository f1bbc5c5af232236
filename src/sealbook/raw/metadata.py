"""`metadata.json`, the seal of a raw partition (R-RAW-3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime

import msgspec

from sealbook.errors import Corrupt, InvalidInput
from sealbook.model import PartitionKey, RunId
from sealbook.model.contract import check_schema_version
from sealbook.model.keys import parse_date
from sealbook.model.partition_events import PartitionSealed
from sealbook.model.sealed_day import SealedDay
from sealbook.model.wire import as_utc
from sealbook.raw.layout import PAYLOAD, PAYLOAD_NAME

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawMetadata:
    """What a seal says of its partition. Fields that Sealbook does not know are kept in `extra`.

    `payload_name` is the file that was sealed. Each write has one of its own, so a writer can tell its own
    seal from a rival's by it.
    """

    source: str
    customer_id: str
    query_name: str
    logical_date: date
    run_id: RunId
    extracted_at: datetime
    schema_version: str
    record_count: int
    api_version: str | None
    query_hash: str
    payload_name: str = PAYLOAD
    payload_bytes: int
    payload_sha256: str
    extra: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        PartitionKey(self.source, self.customer_id, self.query_name, self.logical_date)
        object.__setattr__(self, "run_id", RunId(self.run_id))
        object.__setattr__(self, "extracted_at", as_utc("extracted_at", self.extracted_at))
        check_schema_version(self.schema_version)
        _check_count("record_count", self.record_count)
        if self.api_version is not None:
            _check_text("api_version", self.api_version)
        _check_text("query_hash", self.query_hash)
        _check_payload_name(self.payload_name)
        _check_count("payload_bytes", self.payload_bytes)
        _check_sha256("payload_sha256", self.payload_sha256)
        for name in self.extra:
            if name in _KNOWN:
                raise InvalidInput.of("extra", name, "a name that is no field of the metadata itself")

    @property
    def key(self) -> PartitionKey:
        """The partition that was sealed."""
        return PartitionKey(self.source, self.customer_id, self.query_name, self.logical_date)

    @property
    def day(self) -> SealedDay | None:
        """When the day was, in the time zone of its account, if that was sealed too."""
        return SealedDay.from_fields(self.extra)

    @property
    def fact(self) -> PartitionSealed:
        """What the log is told of the seal."""
        return PartitionSealed(
            key=self.key,
            run_id=self.run_id,
            schema_version=self.schema_version,
            record_count=self.record_count,
            payload_bytes=self.payload_bytes,
            payload_sha256=self.payload_sha256,
            query_hash=self.query_hash,
            extracted_at=self.extracted_at,
        )

    def is_of(self, key: PartitionKey) -> bool:
        """Say whether this is the partition that was sealed; cheaper than to make its key and compare."""
        return (
            self.logical_date == key.logical_date
            and self.customer_id == key.customer_id
            and self.query_name == key.query_name
            and self.source == key.source
        )

    def to_json(self) -> bytes:
        """Return the text of `metadata.json`."""
        # msgspec encodes a str, but no subclass of it.
        values = {name: getattr(self, name) for name in _KNOWN} | {"run_id": str(self.run_id)}
        return msgspec.json.format(msgspec.json.encode({**values, **self.extra}), indent=2) + b"\n"

    @classmethod
    def from_json(cls, data: bytes, path: str) -> RawMetadata:
        """Read the text of a `metadata.json`, or raise Corrupt naming its path and the field."""
        try:
            found = _DECODER.decode(data)
        # msgspec lets the last two through as they are.
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Corrupt(f"{path} is not a JSON object: {error}") from error
        values = {name: found.pop(name) for name in _KNOWN if name in found}
        for name in _REQUIRED:
            if name not in values:
                raise Corrupt(f"{path} has no field {name}")
        try:
            values["logical_date"] = parse_date("logical_date", values["logical_date"])
            values["extracted_at"] = _parse_time("extracted_at", values["extracted_at"])
            return cls(**values, extra=found)  # type: ignore[arg-type]  # __post_init__ checks each
        except InvalidInput as error:
            raise Corrupt(f"{path}: {error}") from error


_KNOWN = tuple(item.name for item in fields(RawMetadata) if item.name != "extra")
_REQUIRED = tuple(name for name in _KNOWN if name != "payload_name")
_DECODER = msgspec.json.Decoder(dict[str, object])


def _parse_time(name: str, text: object) -> datetime:
    try:
        return msgspec.convert(text, datetime)
    except msgspec.ValidationError as error:
        raise InvalidInput.of(name, text, "an RFC 3339 time with its zone") from error


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidInput.of(name, value, "a whole number from 0")


def _check_payload_name(value: object) -> None:
    # Nothing else: the name must not lead out of the run's directory, and a listing must know a payload.
    if not isinstance(value, str) or PAYLOAD_NAME.fullmatch(value) is None:
        raise InvalidInput.of("payload_name", value, "payload.jsonl or payload-….jsonl")


def _check_sha256(name: str, value: object) -> None:
    if not isinstance(value, str) or _SHA256.fullmatch(value) is None:
        raise InvalidInput.of(name, value, "64 hexadecimal digits, lower case")


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput.of(name, value, "text that is not empty")
