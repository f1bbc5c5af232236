"""From `sealbook.yaml` and the catalogues that it names to settings: what is wrong in them is found here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sealbook.config.accounts import Customer, read_accounts, read_days
from sealbook.config.alerts import AlertsSection, alert_settings
from sealbook.config.catalogue import load_catalogue
from sealbook.config.console import ConsoleSection, console_settings
from sealbook.config.control import ControlSection, control_settings
from sealbook.config.discovery import read_discovery
from sealbook.config.documents import Place, convert, error_in, read_document
from sealbook.config.lineage import LineageSection, lineage_settings
from sealbook.config.mirrors import mirror_settings
from sealbook.config.policies import FreshnessSection, read_freshness
from sealbook.config.settings import (
    Limits,
    RetentionSettings,
    Settings,
    SourceOptions,
    SourceSettings,
    SparkSettings,
)
from sealbook.config.urls import ledger_url, storage_url
from sealbook.errors import ConfigError, InvalidInput
from sealbook.model.keys import check_name
from sealbook.model.scope import DEFAULT
from sealbook.model.spans import parse_span
from sealbook.model.universe import Account, check_upstreams

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
    customers: Annotated[tuple[Customer, ...], msgspec.Meta(min_length=1)] | dict[str, Any]
    type: str | None = None
    time_zone: str = "UTC"
    first_day: str | None = None
    last_day: str | None = None
    freshness: FreshnessSection | None = None
    options: dict[str, Any] = {}
    limits: LimitsSection = LimitsSection()
    days_per_request: Annotated[int, msgspec.Meta(ge=1, le=366)] | None = None


class SparkSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`spark`."""

    master: str = "local[*]"
    config: dict[str, Any] = {}
    class_archive: bool = True
    ship_packages: bool = True


class RetentionSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`retention`."""

    events: str | None = None
    archive: str = "archive"


class SettingsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The top of `sealbook.yaml`."""

    ledger: str
    tenant: str = DEFAULT
    workspace: str = DEFAULT
    raw: str = "raw"
    warehouse: str = "warehouse"
    sources: dict[str, Any] = {}
    spark: SparkSection = SparkSection()
    retention: RetentionSection = RetentionSection()
    alerts: AlertsSection | None = None
    lineage: LineageSection | None = None
    control: ControlSection = ControlSection()
    console: ConsoleSection = ConsoleSection()
    mirrors: dict[str, Any] = {}


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
    for field in ("tenant", "workspace"):
        with (top / field).named():
            check_name(field, getattr(settings, field))
    sources = {
        name: _source(name, section, root, top / "sources" / name)
        for name, section in settings.sources.items()
    }
    _check_upstreams(sources)
    return Settings(
        root=root,
        ledger=ledger_url(settings.ledger, root, top / "ledger"),
        raw=raw,
        warehouse=warehouse,
        sources=sources,
        file=file,
        spark=SparkSettings(
            settings.spark.master,
            dict(_spark_config(settings.spark, top / "spark")),
            settings.spark.class_archive,
            ship_packages=settings.spark.ship_packages,
            sources=tuple(dict.fromkeys(source.type for source in sources.values())),
        ),
        retention=_retention(settings.retention, root, top / "retention", {raw, warehouse}),
        alerts=alert_settings(settings.alerts, top / "alerts"),
        lineage=lineage_settings(settings.lineage, root, top / "lineage"),
        control=control_settings(settings.control, sources, top / "control"),
        console=console_settings(settings.console, root, top / "console"),
        mirrors=mirror_settings(settings.mirrors, sources, root, top / "mirrors", raw, warehouse),
        tenant=settings.tenant,
        workspace=settings.workspace,
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
    if section.type is not None:
        with (place / "type").named():
            check_name("type", section.type)
    catalogue = root / section.queries
    if not catalogue.is_file():
        raise (place / "queries").error(
            f"there is no file {section.queries}",
            remedy=f"Correct the path, which is relative to {place.file.name}, or write the catalogue there.",
        )
    usual = read_days(Account("any"), section.time_zone, section.first_day, section.last_day, place)
    names = {name, section.type or name}
    accounts, discovery = {}, None
    if isinstance(section.customers, dict):
        discovery = read_discovery(names, section.customers, usual, place / "customers")
    else:
        listed = read_accounts(names, section.customers, usual, place / "customers")
        accounts = {account.customer_id: account for account in listed}
    return SourceSettings(
        name=name,
        customers=tuple(accounts),
        queries=load_catalogue(catalogue, name),
        options=SourceOptions(section.options, root),
        limits=Limits(**msgspec.structs.asdict(section.limits)),
        type=section.type or name,
        accounts=accounts,
        discovery=discovery,
        freshness=read_freshness(section.freshness, place / "freshness"),
        catalogue=catalogue,
        file=place.file,
        days_per_request=section.days_per_request,
    )


def _check_upstreams(sources: Mapping[str, SourceSettings]) -> None:
    """Refuse upstreams that are not there or go round in a circle, by the line of one of them."""
    try:
        check_upstreams(asset for source in sources.values() for asset in source.assets)
    except InvalidInput as error:
        below, above = error.value[:2]  # type: ignore[index]  # an asset, and an upstream of it
        query = sources[below.source].queries[below.query_name]
        index = [upstream.asset for upstream in query.upstreams].index(above)
        assert query.file is not None  # it was just read
        path = ("queries", query.name, "upstreams", index)
        raise error_in(query.file, path, str(error), remedy=error.remedy) from error


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
