"""`due: auto` in the configuration: what it means, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from sealbook.config import Settings, load_settings
from sealbook.errors import ConfigError
from sealbook.model.auto_due import AutoDue
from sealbook.model.freshness import Freshness
from tests.support.published import write_book


def settings_of(folder: Path, freshness: dict[str, Any], customer: object = "c0") -> Settings:
    file = write_book(folder) / "sealbook.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["sources"]["demo"] |= {"freshness": freshness, "customers": [customer]}
    file.write_text(yaml.safe_dump(settings))
    return load_settings(folder)


def policy(folder: Path, **freshness: Any) -> Freshness:
    found = settings_of(folder, freshness).sources["demo"].freshness
    assert found is not None
    return found


def test_what_is_not_said_is_as_usual(tmp_path: Path) -> None:
    found = policy(tmp_path, due="auto", max_lag="2h")
    assert (found.auto, found.max_lag) == (AutoDue(), timedelta(hours=2))
    assert found == Freshness.learned(AutoDue(), timedelta(hours=2))


def test_what_is_said(tmp_path: Path) -> None:
    found = policy(tmp_path, due="auto", within="7d", at_most=2, tolerance="2.5%")
    assert found.auto == AutoDue(timedelta(days=7), 2, 0.025)
    assert found.due == (timedelta(hours=6), timedelta(days=3))


@pytest.mark.parametrize(
    ("freshness", "field", "says"),
    [
        ({"due": "soon"}, "due", "due is 'soon'"),
        ({"due": ["6h"], "within": "9d"}, "within", "for due points that are learned"),
        ({"due": ["6h"], "tolerance": "1%"}, "tolerance", "for due points that are learned"),
        ({"due": "auto", "within": "2h"}, "within", "at least 6h"),
        ({"due": "auto", "at_most": 0}, "at_most", "expected `int` >= 1"),
        ({"due": "auto", "tolerance": "0.1"}, "tolerance", "a share in percent"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, freshness: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings_of(tmp_path, freshness)
    assert f"sources.demo.freshness.{field}: " in str(error.value)
    assert says in str(error.value)


def test_a_class_of_accounts(tmp_path: Path) -> None:
    account = (
        settings_of(tmp_path, {"due": "auto"}, {"id": "c0", "class": "large"}).sources["demo"].accounts["c0"]
    )
    assert account.account_class == "large"
    with pytest.raises(ConfigError, match=r"customers\[0\]\.class"):
        settings_of(tmp_path, {"due": "auto"}, {"id": "c0", "class": "Very large"})
