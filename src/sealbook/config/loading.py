"""From `sealbook.yaml` and the catalogues that it names to settings: what is wrong in them is found here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sealbook.config.alerts import AlertsSection, alert_settings
from sealbook.config.catalogue import load_catalogue
from sealbook.config.documents import Place, convert, read_document
from sealbook.config.settings import (
    Limits,
    RetentionSettings,
    Settings,
    SourceOptions,
    SourceSettings,
    SparkSettings,
)
from sealbook.config.urls import ledger_url, storage_url
from sealbook.errors import ConfigError
from sealbook.model.keys import check_customer_id, check_name, normalise_customer_id
from sealbook.model.spans import parse_span

FILE_NAME = "sealbook.yaml"

_VARIABLE = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\}|\{)")

Rate = Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]


class LimitsSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sources.NAME.limits`."""

    requests_per_second: Rate | None = None
    requests_per_second_per_customer: Rate | None = None
    threads: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 8


class SourceSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`sources.NAME`."""

    queries: str
    customers: Annotated[tuple[str | int, ...], msgspec.Meta(min_length=1)]
    options: dict[str, Any] = {}
    limits: LimitsSection = LimitsSection()


class SparkSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`spark`."""

    master: str = "local[*]"
    config: dict[str, Any] = {}
    class_archive: bool = True


class RetentionSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`retention`."""

    events: str | None = None
    archive: str = "archive"


class SettingsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The top of `sealbook.yaml`."""

    ledger: str
    raw: str = "raw"
    warehouse: str = "warehouse"
    sources: dict[str, Any] = {}
    spark: SparkSection = SparkSection()
    retention: RetentionSection = RetentionSection()
    alerts: AlertsSection | None = None


def find_settings(path: str | os.PathLike[str] | None = None) -> Path:
    """Return the settings file: the one named, the one in the folder named, or the nearest one upwards."""
    remedy = "`sealbook init` writes one; `--config` or SEALBOOK_CONFIG names one elsewhere."
    if path is not None:
        named = Path(path).absolute()
        file = named / FILE_NAME if named.is_dir() else named
        if not file.is_file():
            raise ConfigError(f"there is no file {file}", remedy=remedy)
        return file
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FILE_NAME).is_file():
            return folder / FILE_NAME
    raise ConfigError(f"there is no {FILE_NAME} in {here} or above it", remedy=remedy)


def load_settings(path: str | os.PathLike[str] | None = None) -> Settings:
    """Read and check a `sealbook.yaml` and all the catalogues that it names."""
    file = find_settings(path)
    document, top = read_document(file)
    settings = convert(_expanded(document, os.environ, top), SettingsFile, top)
    root = file.parent
    raw = storage_url(settings.raw, root, top / "raw")
    warehouse = storage_url(settings.warehouse, root, top / "warehouse")
    if raw == warehouse:
        raise (top / "warehouse").error(
            "raw and warehouse are the same place", remedy="Give each a folder or prefix of its own."
        )
    return Settings(
        root=root,
        ledger=ledger_url(settings.ledger, root, top / "ledger"),
        raw=raw,
        warehouse=warehouse,
        sources={
            name: _source(name, section, root, top / "sources" / name)
            for name, section in settings.sources.items()
        },
        file=file,
        spark=SparkSettings(
            settings.spark.master,
            dict(_spark_config(settings.spark, top / "spark")),
            settings.spark.class_archive,
        ),
        retention=_retention(settings.retention, root, top / "retention", {raw, warehouse}),
        alerts=alert_settings(settings.alerts, top / "alerts"),
    )


def _retention(section: RetentionSection, root: Path, place: Place, taken: set[str]) -> RetentionSettings:
    archive = storage_url(section.archive, root, place / "archive")
    if archive in taken:
        raise (place / "archive").error(
            "the archive is where raw partitions or artifacts are",
            remedy="Give it a folder or prefix of its own.",
        )
    if section.events is None:
        return RetentionSettings(archive)
    with (place / "events").named():
        return RetentionSettings(archive, parse_span("events", section.events))


def _source(name: str, document: object, root: Path, place: Place) -> SourceSettings:
    section = convert(document, SourceSection, place)
    with place.named():
        check_name("source", name)
    catalogue = root / section.queries
    if not catalogue.is_file():
        raise (place / "queries").error(
            f"there is no file {section.queries}",
            remedy=f"Correct the path, which is relative to {place.file.name}, or write the catalogue there.",
        )
    return SourceSettings(
        name=name,
        customers=tuple(_customers(name, section.customers, place / "customers")),
        queries=load_catalogue(catalogue, name),
        options=SourceOptions(section.options, root),
        limits=Limits(**msgspec.structs.asdict(section.limits)),
        catalogue=catalogue,
        file=place.file,
    )


def _customers(source: str, listed: tuple[str | int, ...], place: Place) -> Iterator[str]:
    """Yield canonical customer ids: this is the edge at which hyphens go (R-KEY-2)."""
    seen = set()
    for index, each in enumerate(listed):
        customer_id = normalise_customer_id(str(each))
        with (place / index).named():
            check_customer_id(source, customer_id)
        if customer_id in seen:
            raise (place / index).error(
                f"customer {customer_id} is listed twice", remedy="Take one of the two out."
            )
        seen.add(customer_id)
        yield customer_id


def _spark_config(section: SparkSection, place: Place) -> Iterator[tuple[str, str]]:
    for name, value in section.config.items():
        if not isinstance(value, str | int):
            raise (place / "config" / name).error("expected text", remedy="Put it in quotes.")
        yield name, str(value).lower() if isinstance(value, bool) else str(value)


def _expanded(value: Any, environment: Mapping[str, str], place: Place) -> Any:
    """Put environment variables in for `${NAME}` in every text, so that secrets stay out of the file."""

    def variable(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        if match[1] is None:
            raise place.error("a ${ without a name and }", remedy="Write ${NAME}, or $$ for a dollar sign.")
        if match[1] not in environment:
            raise place.error(f"the environment variable {match[1]} is not set", remedy=f"Set {match[1]}.")
        return environment[match[1]]

    match value:
        case str():
            return _VARIABLE.sub(variable, value) if "$" in value else value
        case dict():
            return {name: _expanded(each, environment, place / name) for name, each in value.items()}
        case list():
            return [_expanded(each, environment, place / index) for index, each in enumerate(value)]
        case Decimal():
            return float(value)  # a rate, or an option that a source wants as Python has it
    return value
