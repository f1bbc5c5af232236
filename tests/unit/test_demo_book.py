"""The files of the demo book."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealbook.cli.demo_book import STRICTER, accounts_for, make_stricter, prepare_book
from sealbook.config import load_settings
from sealbook.errors import ConfigError


@pytest.mark.parametrize(
    ("partitions", "accounts"), [(None, 20), (1, 20), (1_800, 20), (1_801, 21), (5_000, 56)]
)
def test_so_many_partitions_are_so_many_accounts(
    partitions: int | None, accounts: int, tmp_path: Path
) -> None:
    prepare_book(tmp_path, partitions)
    customers = load_settings(tmp_path).sources["demo"].customers
    assert accounts_for(partitions) == accounts == len(set(customers))


def test_a_demo_begins_again_and_keeps_what_was_changed_by_hand(tmp_path: Path) -> None:
    prepare_book(tmp_path, None)
    settings, queries = tmp_path / "sealbook.yaml", tmp_path / "demo.yaml"
    settings.write_text(settings.read_text() + "# mine\n")
    before = queries.read_text()
    make_stricter(tmp_path)
    make_stricter(tmp_path)
    assert queries.read_text() == f"{before}        {STRICTER}\n"
    (tmp_path / "demo_source").mkdir()

    prepare_book(tmp_path, None)

    assert queries.read_text() == before
    assert settings.read_text().endswith("# mine\n")
    assert not (tmp_path / "demo_source").exists()


def test_only_the_contract_of_one_query_gets_stricter(tmp_path: Path) -> None:
    prepare_book(tmp_path, None)
    before = load_settings(tmp_path).sources["demo"].queries
    make_stricter(tmp_path)
    after = load_settings(tmp_path).sources["demo"].queries
    changed = [name for name in after if after[name].contracts["1"].hash != before[name].contracts["1"].hash]
    assert changed == ["device_daily"]


def test_a_book_of_another_size_is_left_alone(tmp_path: Path) -> None:
    prepare_book(tmp_path, None)
    with pytest.raises(ConfigError, match=r"has 20 accounts; the demo that was asked for has 56 accounts"):
        prepare_book(tmp_path, 5_000)
