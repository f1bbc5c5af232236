"""Sources are found by entry point: the known ones, an unknown one, and one that cannot be imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sealbook.errors import ConfigError, MissingExtra
from sealbook.extract.source import load_source
from sealbook.extract.sources.demo import DemoSource
from sealbook.extract.sources.google_ads import GoogleAdsSource


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path, for packages that a test installs."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def install(site: Path, entry_points: str) -> None:
    info = site / "acme_sources-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-sources\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[sealbook.sources]\n{entry_points}\n")


def test_the_sources_of_sealbook_are_found() -> None:
    assert isinstance(load_source("demo", {}), DemoSource)
    assert isinstance(load_source("google_ads", {}), GoogleAdsSource)


def test_an_unknown_source_is_refused_with_the_known_ones(site: Path) -> None:
    install(site, "acme = acme:Acme")
    with pytest.raises(ConfigError, match=r"'gogle_ads'; known are acme, demo, files, google_ads, http_json"):
        load_source("gogle_ads", {})


def test_a_source_whose_module_needs_another_names_it(site: Path) -> None:
    install(site, "acme = acme:Acme")
    (site / "acme.py").write_text("import a_driver_that_nobody_has\n")
    with pytest.raises(MissingExtra, match="acme needs the module a_driver_that_nobody_has") as caught:
        load_source("acme", {})
    assert "acme-sources" in str(caught.value.remedy)


def test_an_entry_point_that_names_no_class_is_refused(site: Path) -> None:
    install(site, "bare = bare_module:Missing")
    (site / "bare_module.py").write_text("")
    with pytest.raises(ConfigError, match="bare_module:Missing"):
        load_source("bare", {})


@pytest.mark.parametrize("missing", ["google.ads.googleads", "google.ads"])
def test_google_ads_without_its_extra_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "google.ads.googleads", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra) as caught:
        load_source("google_ads", {})
    assert caught.value.remedy == "pip install 'sealbook[google-ads]'"


def test_loading_a_source_imports_neither_its_client_nor_spark() -> None:
    script = (
        "import sys; from sealbook.extract.source import load_source;"
        "load_source('demo', {}); load_source('google_ads', {});"
        "load_source('files', {'url': 'x'}); load_source('http_json', {'url': 'https://x'});"
        "heavy = {'grpc', 'google.ads.googleads.client', 'google.auth', 'pyspark', 'pyarrow'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
