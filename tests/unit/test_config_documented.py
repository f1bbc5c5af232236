"""Every setting is in docs/reference/configuration.md with its default, and the examples there are good."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import yaml

from sealbook.config import (
    accounts,
    alerts,
    catalogue,
    console,
    control,
    discovery,
    lineage,
    load_settings,
    loading,
    mirrors,
    policies,
)
from tests.support.books import write_book
from tests.support.pages import shown_default

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "configuration.md").read_text()
SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##+ |\Z)", PAGE, re.MULTILINE | re.DOTALL))

CONTRACT = "queries.NAME.contracts.VERSION"
PLACES: dict[type[msgspec.Struct], str] = {
    loading.SettingsFile: "top",
    loading.SourceSection: "sources.NAME",
    accounts.CustomerSection: "sources.NAME.customers",
    discovery.DiscoverySection: "sources.NAME.customers that are discovered",
    policies.FreshnessSection: "sources.NAME.freshness",
    loading.LimitsSection: "sources.NAME.limits",
    loading.SparkSection: "spark",
    loading.RetentionSection: "retention",
    alerts.AlertsSection: "alerts",
    lineage.LineageSection: "lineage",
    control.ControlSection: "control",
    control.SharesSection: "control.shares",
    control.RetriesSection: "control.retries",
    control.ControlSourceSection: "control.sources.NAME",
    console.ConsoleSection: "console",
    console.SqlSection: "console.sql",
    console.ProxySection: "console.proxy",
    console.LedgerRolesSection: "console.ledger_roles",
    mirrors.MirrorSection: "mirrors.NAME",
    catalogue.CatalogueFile: "catalogue",
    catalogue.QuerySection: "queries.NAME",
    policies.UpstreamSection: "queries.NAME.upstreams",
    catalogue.ContractSection: CONTRACT,
    catalogue.ColumnSection: f"{CONTRACT}.columns.NAME",
    catalogue.RuleSection: f"{CONTRACT}.rules",
    catalogue.RowCountSection: f"{CONTRACT}.row_count",
}


def test_every_struct_has_its_section() -> None:
    structs = {
        value
        for module in (
            loading,
            accounts,
            discovery,
            policies,
            alerts,
            lineage,
            control,
            console,
            catalogue,
            mirrors,
        )
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct)
    }
    assert structs == set(PLACES)
    assert list(SECTIONS) == list(PLACES.values())


@pytest.mark.parametrize("struct", PLACES)
def test_every_field_is_explained_with_its_default(struct: type[msgspec.Struct]) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| .+ \|$", SECTIONS[PLACES[struct]], re.MULTILINE)
    assert rows == [(field.encode_name, shown_default(field)) for field in msgspec.structs.fields(struct)]


def test_the_examples_are_a_book(tmp_path: Path) -> None:
    settings_text, customers_text, catalogue_text = re.findall(
        r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )
    settings = load_settings(write_book(tmp_path, settings_text, catalogue_text))
    assert list(settings.sources["google_ads"].queries) == ["campaign_daily"]
    document = yaml.safe_load(settings_text)
    document["sources"]["google_ads"]["customers"] = yaml.load(customers_text, yaml.BaseLoader)["customers"]
    found = load_settings(write_book(tmp_path, document, catalogue_text)).sources["google_ads"].discovery
    assert found is not None
    assert (found.root, found.labels) == ("1234567890", frozenset({"reporting"}))
