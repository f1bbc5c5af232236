"""Where lineage goes: a file or an address, and nothing secret in what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sealbook.config import LineageSettings, load_settings
from tests.support.books import SETTINGS, refused, write_book

SECRET = "hunter2"
URL = {"url": "https://host"}


def book(folder: Path, lineage: dict[str, Any]) -> Path:
    return write_book(folder, {**SETTINGS, "lineage": lineage})


@pytest.mark.parametrize(
    ("lineage", "field", "says"),
    [
        ({}, "lineage", "expected a path or a url"),
        ({**URL, "path": "told.jsonl"}, "lineage", "expected a path or a url"),
        ({"path": ""}, "lineage.path", "expected"),
        ({"path": f"s3://{SECRET}@bucket"}, "lineage.path", "expected the path of a file on this machine"),
        ({"path": "told.jsonl", "headers": {"A": "b"}}, "lineage.headers", "a file gets no headers"),
        ({"url": f"ftp://host/{SECRET}"}, "lineage.url", "expected an http:// or https:// URL with a host"),
        ({**URL, "headers": {"A": f"{SECRET}\nB: c"}}, "lineage.headers.A", "this cannot be a header"),
        ({**URL, "namespace": ""}, "lineage.namespace", "expected"),
        ({**URL, "transport": "kafka"}, "lineage.transport", "there is no such field"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, lineage: dict[str, Any], field: str, says: str) -> None:
    error = str(refused(book(tmp_path, lineage)))
    assert error.startswith(f"{tmp_path}/sealbook.yaml: {field}")
    assert says in error
    assert SECRET not in error


def test_it_goes_nowhere_by_default(tmp_path: Path) -> None:
    assert load_settings(write_book(tmp_path)).lineage is None


def test_a_path_is_relative_to_the_book(tmp_path: Path) -> None:
    settings = load_settings(book(tmp_path, {"path": "told.jsonl", "namespace": "prod"}))
    assert settings.lineage == LineageSettings(tmp_path / "told.jsonl", namespace="prod")


def test_secrets_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINEAGE_KEY", SECRET)
    settings = load_settings(book(tmp_path, {**URL, "headers": {"Authorization": "Bearer ${LINEAGE_KEY}"}}))
    assert settings.lineage is not None
    assert settings.lineage.headers == {"Authorization": f"Bearer {SECRET}"}
    assert SECRET not in repr(settings)
