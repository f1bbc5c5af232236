"""Every source of Sealbook keeps the contract of sources: one suite for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sealbook.errors import QuotaScope
from sealbook.extract.sources.demo import DemoSource
from sealbook.extract.sources.files import FilesSource
from sealbook.extract.sources.google_ads import GoogleAdsSource
from sealbook.extract.sources.http_json import HttpJsonSource
from sealbook.model.failures import ErrorClass
from sealbook.testing.source_contract import Known, Provoked, SourceContract
from tests.support.extraction import demo_keys, demo_queries
from tests.support.google_ads import Batch, Failure, GoogleAdsServer, google_ads_key, google_ads_query
from tests.support.http_api import Asked, HttpApi, Reply
from tests.support.sources import described, key_of

SECRET = "hunter2-in-a-header"
KEY_SECRET = "hunter2-in-the-url"


class TestDemo(SourceContract):
    source_class = DemoSource

    def options(self) -> Mapping[str, object]:
        return {
            "rows": 3,
            "faults": [
                {"kind": "transient", "customers": ["c2"], "after_rows": 2},
                {"kind": "quota", "customers": ["c3"], "scope": "source", "retry_after": 9},
                {"kind": "permanent", "customers": ["c4"]},
            ],
        }

    def partitions(self) -> Sequence[Known]:
        query = demo_queries()["campaign_daily"]
        return [
            Known(
                key,
                query,
                [json.loads(row) for row in DemoSource.from_options({"rows": 3}).fetch(key, query)],
            )
            for key in demo_keys(customers=2, days=1)
        ]

    def failures(self) -> Sequence[Provoked]:
        query = demo_queries()["campaign_daily"]
        _, _, broken, spent, refused = demo_keys(customers=5, days=1)
        return [
            Provoked("in the middle", broken, query, ErrorClass.TRANSIENT),
            Provoked("quota", spent, query, ErrorClass.QUOTA, QuotaScope.SOURCE, 9),
            Provoked("refused", refused, query, ErrorClass.PERMANENT),
        ]


class TestGoogleAds(SourceContract):
    source_class = GoogleAdsSource

    @pytest.fixture(autouse=True)
    def server(self, google_ads_server: GoogleAdsServer) -> None:
        self._server = google_ads_server
        for customer_id, first in (("1111111111", 1), ("2222222222", 5)):
            rows = [[{"campaign": {"id": first + 2 * page + row}} for row in range(2)] for page in range(2)]
            google_ads_server.reply(customer_id, [Batch(["campaign.id"], some) for some in rows])
        quota = {"error_code": {"quota_error": "RESOURCE_EXHAUSTED"}}
        denied = {"error_code": {"authorization_error": "USER_PERMISSION_DENIED"}}
        google_ads_server.reply(
            "3333333333", [Batch(["campaign.id"], [{"campaign": {"id": 1}}]), Failure("UNAVAILABLE")]
        )
        google_ads_server.reply("4444444444", [Failure("RESOURCE_EXHAUSTED", [quota])])
        google_ads_server.reply("5555555555", [Failure("PERMISSION_DENIED", [denied])])

    def options(self) -> Mapping[str, object]:
        return {"endpoint": self._server.endpoint}

    def partitions(self) -> Sequence[Known]:
        return [
            Known(google_ads_key(customer_id), google_ads_query(), [{"campaign_id": each} for each in ids])
            for customer_id, ids in (("1111111111", (1, 2, 3, 4)), ("2222222222", (5, 6, 7, 8)))
        ]

    def failures(self) -> Sequence[Provoked]:
        def failing(customer_id: str, error_class: ErrorClass) -> Provoked:
            return Provoked(customer_id, google_ads_key(customer_id), google_ads_query(), error_class)

        return [
            failing("3333333333", ErrorClass.TRANSIENT),
            failing("4444444444", ErrorClass.QUOTA),
            failing("5555555555", ErrorClass.PERMANENT),
        ]

    def held(self) -> int:
        return self._server.streaming


class TestHttpJson(SourceContract):
    source_class = HttpJsonSource
    secrets = (SECRET, KEY_SECRET)
    query = described("http_json", {"path": "/{customer_id}/orders", "params": {"day": "{logical_date}"}})

    @pytest.fixture(autouse=True)
    def api(self, http_api: HttpApi, monkeypatch: pytest.MonkeyPatch) -> None:
        self._api = http_api
        monkeypatch.setenv("SHOP_TOKEN", SECRET)
        monkeypatch.setenv("SHOP_KEY", KEY_SECRET)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        http_api.routes["/acme/orders"] = lambda asked: pages(asked, 3)
        http_api.routes["/globex/orders"] = lambda asked: pages(asked, 1)
        http_api.reply("/busy/orders", Reply(status=429, headers={"Retry-After": "240"}))
        http_api.reply("/down/orders", Reply(status=503, headers={"Retry-After": "7"}))
        http_api.reply("/broken/orders", Reply([{"id": 1}], cut=True))
        http_api.reply("/secret/orders", Reply({"error": SECRET}, status=401))
        http_api.reply("/away/orders", Reply(status=302, headers={"Location": "http://127.0.0.1:1/x"}))

    def options(self) -> Mapping[str, object]:
        return {
            "url": self._api.origin,
            "headers": {"Authorization": {"env": "SHOP_TOKEN", "prefix": "Bearer "}},
            "params": {"api_key": {"env": "SHOP_KEY"}},
            "paging": {"by": "link"},
        }

    def partitions(self) -> Sequence[Known]:
        return [
            Known(key_of("http_json", name), self.query, [{"id": page} for page in range(number)])
            for name, number in (("acme", 3), ("globex", 1))
        ]

    def failures(self) -> Sequence[Provoked]:
        def failing(name: str, error_class: ErrorClass, *more: object) -> Provoked:
            return Provoked(name, key_of("http_json", name), self.query, error_class, *more)  # type: ignore[arg-type]

        return [
            failing("busy", ErrorClass.QUOTA, QuotaScope.SOURCE, 240.0),
            failing("down", ErrorClass.TRANSIENT, None, 7.0),
            failing("broken", ErrorClass.TRANSIENT),
            failing("secret", ErrorClass.PERMANENT),
            failing("nobody", ErrorClass.PERMANENT),
            failing("away", ErrorClass.PERMANENT),
        ]

    def unusable(self) -> Mapping[str, object]:
        return {**self.options(), "headers": {"Authorization": {"env": "NO_SUCH_VARIABLE"}}}

    def held(self) -> int:
        return self._api.serving


def pages(asked: Asked, number: int) -> Reply:
    """Return one of so many pages, each of one record, with a link to the next."""
    page = int(asked.params.get("page", "0"))
    link = f'<{asked.path}?page={page + 1}&day={asked.params["day"]}>; rel="next"'
    return Reply([{"id": page}], headers={"Link": link} if page + 1 < number else {})


class TestFiles(SourceContract):
    source_class = FilesSource
    query = described("files", {"files": "{customer_id}/{logical_date}/*.csv"})

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self._folder = tmp_path
        drop(tmp_path, "acme", {"b.csv": "id\n3\n", "a.csv": "id\n1\n2\n", "_SUCCESS": ""})
        drop(tmp_path, "globex", {"a.csv": "id\n4\n", "_SUCCESS": ""})
        drop(tmp_path, "late", {"a.csv": "id\n4\n"})
        drop(tmp_path, "ragged", {"a.csv": "id\n1\n2,3\n", "_SUCCESS": ""})

    def options(self) -> Mapping[str, object]:
        return {"url": str(self._folder), "complete": {"marker": "_SUCCESS"}, "ask_again_seconds": 600}

    def partitions(self) -> Sequence[Known]:
        return [
            Known(key_of("files", name), self.query, [{"id": each} for each in ids])
            for name, ids in (("acme", (1, 2, 3)), ("globex", (4,)))
        ]

    def failures(self) -> Sequence[Provoked]:
        return [
            Provoked("late", key_of("files", "late"), self.query, ErrorClass.TRANSIENT, retry_after=600),
            Provoked("ragged", key_of("files", "ragged"), self.query, ErrorClass.PERMANENT),
        ]

    def unusable(self) -> Mapping[str, object]:
        return {**self.options(), "url": str(self._folder / "nowhere")}


def drop(root: Path, customer_id: str, files: Mapping[str, str]) -> None:
    """Put files into the folder of a customer's day."""
    folder = root / customer_id / "2026-01-01"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
