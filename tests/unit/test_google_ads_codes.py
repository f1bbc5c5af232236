"""Codes of Google Ads are classed by name, and each that is listed is one that the client has (R-CTL-7)."""

from __future__ import annotations

from importlib import import_module

import pytest

from sealbook.errors import BadQuery, PastHorizon, Permanent, QuotaExceeded, SealbookError, Transient
from sealbook.extract.sources.google_ads_client import api_versions
from sealbook.extract.sources.google_ads_codes import CLASS_OF_CODE, REMEDIES, Code, class_of, remedy_of


def codes_of(api_version: str) -> set[Code]:
    errors = import_module(f"google.ads.googleads.{api_version}.errors.types.errors")
    kinds = errors.ErrorCode.pb().DESCRIPTOR.fields
    return {(kind.name, value.name) for kind in kinds for value in kind.enum_type.values}


def test_every_listed_code_is_in_a_version_of_the_installed_client() -> None:
    known = set().union(*map(codes_of, api_versions()))
    assert {*CLASS_OF_CODE, *REMEDIES} <= known


def test_all_codes_of_the_newest_version_are_classed() -> None:
    """2,500 codes; those that are not permanent are few, and each is known by name."""
    found: dict[type[SealbookError], set[Code]] = {}
    for code in codes_of(api_versions()[-1]):
        found.setdefault(class_of([code], "INVALID_ARGUMENT"), set()).add(code)
    assert {name for _, name in found[PastHorizon]} == {
        "REQUESTED_DATE_GRANULARITY_NOT_SUPPORTED", "EARLIER_THAN_MINIMUM_DATE", "START_DATE_TOO_OLD",
    }  # fmt: skip
    assert {name for _, name in found[Transient]} == {
        "INTERNAL_ERROR", "TRANSIENT_ERROR", "DEADLINE_EXCEEDED", "CONCURRENT_MODIFICATION",
        "DATA_CONSTRAINT_VIOLATION", "EXPIRED_PAGE_TOKEN",
    }  # fmt: skip
    assert {kind for kind, _ in found[QuotaExceeded]} == {"quota_error"}
    assert {kind for kind, _ in found[BadQuery]} == {"query_error"}
    assert ("quota_error", "ACCESS_PROHIBITED") in found[Permanent]
    assert len(found[Permanent]) > 2_000


@pytest.mark.parametrize("name", ["NOT_APPROVED_FOR_PRODUCTION", "NOT_UNDER_ORGANIZATION", "NOT_FOUND"])
def test_what_is_wrong_with_a_cloud_project_is_permanent_with_a_way_out(name: str) -> None:
    [code] = [each for each in codes_of("v26") if each[1] == f"CLOUD_PROJECT_{name}"]
    assert issubclass(class_of([code], "PERMISSION_DENIED"), Permanent)
    assert "Cloud project" in str(remedy_of([code]))


def test_no_way_out_speaks_of_a_developer_token() -> None:
    """They ended: access belongs to the Cloud project."""
    assert not [text for text in REMEDIES.values() if "token" in text]
    about = [remedy for code, remedy in REMEDIES.items() if "DEVELOPER_TOKEN" in code[1]]
    assert len(about) == 6
    assert all("Cloud project" in remedy for remedy in about)
