"""The source http_json against a server: pages, records, limits, and where it goes and does not."""

from __future__ import annotations

import gzip
import json
import socket
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec
import pytest

from sealbook.errors import ConfigError, Permanent, QuotaExceeded, QuotaScope, SealbookError, Transient
from sealbook.extract.source import read_options
from sealbook.extract.sources.http_json import HttpJsonSource
from sealbook.extract.sources.http_json_options import HttpJsonOptions
from sealbook.model.contract import Query
from tests.support.http_api import Asked, HttpApi, Reply
from tests.support.sources import described, key_of

KEY = key_of("http_json")
PATH = "/orders"
HEADERS = {"Authorization": "Bearer hunter2"}


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def query(**text: object) -> Query:
    """Return a query of one path, with whatever else its text says."""
    columns = dict.fromkeys(("id", "order_id", "price", "city", "dotted", "none"), "json")
    return described("http_json", {"path": PATH, "params": {"day": "{logical_date}"}, **text}, **columns)


def fetched(api: HttpApi, asked: Query | None = None, **options: object) -> list[Any]:
    """Return the rows of a partition, as their JSON says them."""
    source = HttpJsonSource.from_options({"url": api.origin, **options})
    return [
        json.loads(row if isinstance(row, bytes) else msgspec.json.encode(row))
        for row in source.fetch(KEY, asked or query())
    ]


def failure(api: HttpApi, asked: Query | None = None, **options: object) -> SealbookError:
    with pytest.raises(SealbookError) as caught:
        fetched(api, asked, **options)
    return caught.value


def numbered(ids: range) -> list[dict[str, int]]:
    return [{"id": each} for each in ids]


def slices(total: int, page: Callable[[Asked], tuple[int, int]]) -> Callable[[Asked], Reply]:
    """Return a route that has so many records, of which a request gets a slice."""

    def answer(asked: Asked) -> Reply:
        begin, size = page(asked)
        return Reply(numbered(range(total))[begin : begin + size])

    return answer


@pytest.mark.parametrize("total", [0, 1, 2, 3, 4, 5])
class TestPages:
    """However many records there are, each comes once and in order; and nothing is asked for in vain."""

    def test_by_number(self, http_api: HttpApi, total: int) -> None:
        http_api.routes[PATH] = slices(total, lambda asked: ((int(asked.params["p"]) - 1) * 2, 2))
        paging = {"by": "page", "param": "p", "size": 2, "size_param": "n"}
        assert fetched(http_api, query(paging=paging)) == numbered(range(total))
        assert len(http_api.requests) == total // 2 + 1
        assert {asked.params["n"] for asked in http_api.requests} == {"2"}

    def test_by_number_until_a_page_is_empty(self, http_api: HttpApi, total: int) -> None:
        http_api.routes[PATH] = slices(total, lambda asked: (int(asked.params["page"]) * 2, 2))
        paging = {"by": "page", "first_page": 0}
        assert fetched(http_api, query(paging=paging)) == numbered(range(total))

    def test_by_offset(self, http_api: HttpApi, total: int) -> None:
        http_api.routes[PATH] = slices(
            total, lambda asked: (int(asked.params["offset"]), int(asked.params["limit"]))
        )
        assert fetched(http_api, paging={"by": "offset", "size": 2}) == numbered(range(total))

    def test_by_offset_in_the_body_of_a_post(self, http_api: HttpApi, total: int) -> None:
        def page(asked: Asked) -> tuple[int, int]:
            assert isinstance(asked.body, dict)
            assert asked.body["where"] == {"days": ["2026-01-01", "2026-01-02"], "open": True}
            return asked.body["offset"], asked.body["limit"]

        http_api.routes[PATH] = slices(total, page)
        where = {"days": ["{logical_date}", "{logical_date+1}"], "open": True}
        asked = query(params={}, method="POST", body={"where": where}, paging={"by": "offset", "size": 2})
        assert fetched(http_api, asked) == numbered(range(total))
        assert {each.method for each in http_api.requests} == {"POST"}

    @pytest.mark.parametrize("way", ["path", "record"])
    def test_by_cursor(self, http_api: HttpApi, total: int, way: str) -> None:
        def answer(asked: Asked) -> Reply:
            begin = int(asked.params.get("after", "-1")) + 1
            rows = numbered(range(total))[begin : begin + 2]
            more = begin + 2 < total
            return Reply({"rows": rows, "meta": {"next": begin + 1 if more else None, "more": more}})

        http_api.routes[PATH] = answer
        cursor = {"path": "meta.next"} if way == "path" else {"record": "id", "more": "meta.more"}
        asked = query(records="rows", paging={"by": "cursor", "param": "after", **cursor})
        assert fetched(http_api, asked) == numbered(range(total))

    @pytest.mark.parametrize("way", ["header", "page"])
    def test_by_link(self, http_api: HttpApi, total: int, way: str) -> None:
        """A key goes along that the link leaves out, and other links are not followed."""

        def answer(asked: Asked) -> Reply:
            assert asked.params["key"] == "k 1"
            begin = int(asked.params.get("from", "0"))
            rows = numbered(range(total))[begin : begin + 2]
            link = f"{PATH}?from={begin + 2}" if begin + 2 < total else None
            headers = {
                "Link": '</>; rel="first"' + (f', <{link}>; title="x"; rel="last next"' if link else "")
            }
            return Reply({"rows": rows, "next": link}, headers=headers if way == "header" else {})

        http_api.routes[PATH] = answer
        paging = {"by": "link"} if way == "header" else {"by": "link", "path": "next"}
        asked = query(records="rows", paging=paging)
        assert fetched(http_api, asked, params={"key": "k 1"}) == numbered(range(total))


def test_records_keep_their_digits_and_columns_are_found_by_their_way(http_api: HttpApi) -> None:
    record = b'{"id": 12345678901234567890, "price":  19.90,\n"to": {"city": "K\xc3\xb6ln"}, "a.b": 1}'
    http_api.reply(PATH, Reply(b'{"data": [' + record + b', 7, {"id": null}]}', packed=True))
    source = HttpJsonSource.from_options({"url": http_api.origin, "records": "data"})
    whole = list(source.fetch(KEY, query()))
    assert whole == [record.replace(b" ", b"").replace(b"\n", b""), b"7", b'{"id":null}']
    columns = {"order_id": "id", "price": "price", "city": "to.city", "dotted": "a.b", "none": "to.zip"}
    rows = [
        row if isinstance(row, bytes) else msgspec.json.encode(row)
        for row in source.fetch(KEY, query(columns=columns))
    ]
    assert rows == [
        '{"order_id":12345678901234567890,"price":19.90,"city":"Köln","dotted":1}'.encode(),
        b"7",
        b'{"order_id":null}',
    ]


def test_parameters_may_be_numbers_and_are_written_as_a_url_wants_them(http_api: HttpApi) -> None:
    http_api.routes["/a%20b/%C3%B6"] = lambda _: Reply([])
    fetched(http_api, query(path="/a b/ö", params={"n": 100, "q": "&=#{logical_date}é"}))
    assert http_api.requests[0].params == {"n": "100", "q": "&=#2026-01-01é"}


def test_a_plain_text_is_the_path(http_api: HttpApi) -> None:
    http_api.reply("/v1/acme/2026-01-01", Reply(numbered(range(2))))
    source = HttpJsonSource.from_options({"url": f"{http_api.origin}/v1/"})
    assert len(list(source.fetch(KEY, described("http_json", "/{customer_id}/{logical_date}")))) == 2


@pytest.mark.parametrize("reply", [Reply(b"", status=204), Reply(None), Reply({"x": 1}, status=404)])
def test_a_day_without_rows(http_api: HttpApi, reply: Reply) -> None:
    http_api.reply(PATH, reply)
    assert fetched(http_api, statuses={"empty": [404]}) == []


STORED = gzip.compress(b"[]" + b" " * 99, 0, mtime=0)
"""What is whole JSON also if its end is lost."""
SOON = format_datetime(datetime.now(UTC) + timedelta(hours=2), usegmt=True)


@pytest.mark.parametrize(
    ("reply", "kind", "least", "most"),
    [
        (Reply(status=429), QuotaExceeded, None, None),
        (Reply(status=429, headers={"Retry-After": "7.5"}), QuotaExceeded, 7.5, 7.5),
        (Reply(status=429, headers={"Retry-After": SOON}), QuotaExceeded, 6000, 7200),
        (Reply(status=429, headers={"Retry-After": "soon"}), QuotaExceeded, None, None),
        (Reply(status=429, headers={"X-RateLimit-Reset": "90"}), QuotaExceeded, 90, 90),
        (Reply(status=429, headers={"X-RateLimit-Reset": "1"}), QuotaExceeded, 1, 1),
        (Reply(status=429, headers={"X-RateLimit-Reset": "1000000001"}), QuotaExceeded, 0, 0),
        (Reply(status=429, headers={"X-RateLimit-Reset": "9" * 400}), QuotaExceeded, None, None),
        (Reply(status=403, headers={"X-RateLimit-Remaining": "0"}), QuotaExceeded, None, None),
        (Reply(status=403, headers={"X-RateLimit-Remaining": "1"}), Permanent, None, None),
        (Reply(status=500), Transient, None, None),
        (Reply(status=503, headers={"Retry-After": "3"}), Transient, 3, 3),
        (Reply(status=599), Transient, None, None),
        (Reply(status=408), Transient, None, None),
        (Reply(status=400), Permanent, None, None),
        (Reply(status=401), Permanent, None, None),
        (Reply(status=404), Permanent, None, None),
        (Reply(status=304), Permanent, None, None),
        (Reply(b"<html>", 200), Transient, None, None),
        (Reply(b"", 200), Transient, None, None),
        (Reply(b'[{"id": 1}', 200), Transient, None, None),
        (Reply(b"[]" + b" " * 99, cut=True), Transient, None, None),
        (Reply(STORED[:-9], headers={"Content-Encoding": "gzip"}), Transient, None, None),
        (Reply(b"no gzip", headers={"Content-Encoding": "gzip"}), Transient, None, None),
        (Reply([], headers={"Content-Encoding": "br"}), Permanent, None, None),
        (Reply({"rows": []}), Permanent, None, None),
    ],
)
def test_failures_by_what_is_answered(
    http_api: HttpApi, reply: Reply, kind: type[SealbookError], least: float | None, most: float | None
) -> None:
    http_api.reply(PATH, reply)
    error = failure(http_api)
    assert type(error) is kind
    assert str(KEY) in str(error)
    if isinstance(error, Transient):
        assert (error.retry_after is None) is (least is None)
        assert least is None or most is None or least <= (error.retry_after or 0) <= most


def test_what_a_status_means_can_be_said(http_api: HttpApi) -> None:
    for given, status, kind in (
        ({"transient": [404]}, 404, Transient),
        ({"quota": [420]}, 420, QuotaExceeded),
        ({"permanent": [500]}, 500, Permanent),
        ({"transient": [429]}, 429, Transient),
        ({"permanent": [200]}, 200, Permanent),
    ):
        http_api.reply(PATH, Reply([], status=status))
        assert type(failure(http_api, statuses=given)) is kind


def test_whose_quota_it_is_can_be_said(http_api: HttpApi) -> None:
    http_api.reply(PATH, Reply(status=429, headers={"Wait": "5"}))
    error = failure(http_api, quota_scope="account", rate_limit={"retry_after": "Wait"})
    assert isinstance(error, QuotaExceeded)
    assert (error.scope, error.retry_after) == (QuotaScope.ACCOUNT, 5)
    error = failure(http_api)
    assert isinstance(error, QuotaExceeded)
    assert error.scope is QuotaScope.SOURCE


class TestWaits:
    """Between pages a short wait is waited for, or a partition of many pages would never end."""

    def source(self, api: HttpApi, slept: list[float], **options: object) -> HttpJsonSource:
        given = {"url": api.origin, "paging": {"by": "page"}, "longest_wait_seconds": 60, **options}
        return HttpJsonSource(read_options("http_json", HttpJsonOptions, given), sleep=slept.append)

    def test_a_quota_that_is_soon_there_again(self, http_api: HttpApi) -> None:
        http_api.reply(
            PATH,
            Reply([1]),
            Reply(status=429, headers={"Retry-After": "9"}),
            Reply(status=429, headers={"Retry-After": "60"}),
            Reply([2]),
            Reply([]),
        )
        slept: list[float] = []
        assert list(self.source(http_api, slept).fetch(KEY, query())) == [b"1", b"2"]
        assert slept == [9, 60]

    @pytest.mark.parametrize("headers", [{"Retry-After": "61"}, {}])
    def test_one_that_is_not(self, http_api: HttpApi, headers: dict[str, str]) -> None:
        http_api.reply(PATH, Reply([1]), Reply(status=429, headers=headers))
        slept: list[float] = []
        with pytest.raises(QuotaExceeded):
            list(self.source(http_api, slept).fetch(KEY, query()))
        assert slept == []

    def test_one_that_never_is(self, http_api: HttpApi) -> None:
        http_api.reply(PATH, Reply([1]), Reply(status=429, headers={"Retry-After": "1"}))
        slept: list[float] = []
        with pytest.raises(QuotaExceeded):
            list(self.source(http_api, slept).fetch(KEY, query()))
        assert len(slept) == 10

    def test_the_first_page_is_for_the_caller_to_wait_for(self, http_api: HttpApi) -> None:
        """It has more to do meanwhile, and tells the others of the quota."""
        http_api.reply(PATH, Reply(status=429, headers={"Retry-After": "1"}), Reply([]))
        slept: list[float] = []
        with pytest.raises(QuotaExceeded):
            list(self.source(http_api, slept).fetch(KEY, query()))
        assert slept == []

    def test_a_quota_that_a_page_has_used_up(self, http_api: HttpApi) -> None:
        used_up = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}
        http_api.reply(PATH, Reply([1], headers=used_up), Reply([2]), Reply([], headers=used_up))
        slept: list[float] = []
        assert len(list(self.source(http_api, slept, pause_seconds=2).fetch(KEY, query()))) == 2
        assert slept == [30, 2], "and none after the last page"

    def test_one_that_is_long_used_up(self, http_api: HttpApi) -> None:
        used_up = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3600"}
        http_api.reply(PATH, Reply([1], headers=used_up))
        with pytest.raises(QuotaExceeded) as caught:
            list(self.source(http_api, []).fetch(KEY, query()))
        assert caught.value.retry_after == 3600


class TestWhereItGoes:
    """Credentials go to the host that was named, and to no other."""

    def test_a_redirection_on_the_same_host_is_followed(self, http_api: HttpApi) -> None:
        http_api.reply(PATH, Reply(status=307, headers={"Location": "/elsewhere?day=x"}))
        http_api.reply("/elsewhere", Reply([1]))
        assert fetched(http_api, headers=HEADERS) == [1]
        [asked] = http_api.asked("/elsewhere")
        assert asked.headers["Authorization"] == "Bearer hunter2"

    @pytest.mark.parametrize("way", ["redirection", "header", "page"])
    def test_another_host_is_not_asked_unless_it_is_allowed(self, http_api: HttpApi, way: str) -> None:
        with HttpApi() as other:
            other.reply("/more", Reply({"rows": [2]}))
            url = f"{other.origin}/more?token=hunter2"
            replies = {
                "redirection": Reply(status=302, headers={"Location": url}),
                "header": Reply({"rows": [1]}, headers={"Link": f"<{url}>; rel=next"}),
                "page": Reply({"rows": [1], "next": url}),
            }
            http_api.reply(PATH, replies[way])
            paging = {"by": "link", "path": "next"} if way == "page" else {"by": "link"}
            given: dict[str, Any] = {"headers": HEADERS, "records": "rows", "paging": paging}
            error = failure(http_api, **given)
            assert isinstance(error, Permanent)
            assert other.origin in str(error)
            assert "hunter2" not in f"{error} {error.remedy}"
            assert other.requests == []
            fetched(http_api, **given, origins=[other.origin])
            assert len(other.requests) == 1

    def test_redirections_that_do_not_end(self, http_api: HttpApi) -> None:
        http_api.reply(PATH, Reply(status=302, headers={"Location": PATH}))
        assert isinstance(failure(http_api), Permanent)
        assert len(http_api.requests) == 6

    def test_pages_that_go_round_in_a_circle(self, http_api: HttpApi) -> None:
        http_api.reply(PATH, Reply([1], headers={"Link": f"<{PATH}>; rel=next"}))
        error = failure(http_api, paging={"by": "link"})
        assert isinstance(error, Permanent)
        assert "leads back" in str(error)
        assert len(http_api.requests) == 2

    def test_pages_that_do_not_end(self, http_api: HttpApi) -> None:
        http_api.reply(PATH, Reply([1]))
        error = failure(http_api, paging={"by": "page"}, most_pages=5)
        assert isinstance(error, Permanent)
        assert "`most_pages` is 5" in str(error)
        assert len(http_api.requests) == 5

    def test_a_small_page_that_would_grow_large_does_not(self, http_api: HttpApi) -> None:
        http_api.reply(
            PATH, Reply(gzip.compress(bytes(64 * 1024**2), 9), headers={"Content-Encoding": "gzip"})
        )
        tracemalloc.start()
        try:
            error = failure(http_api, page_megabytes=1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert "more than 1 MB" in str(error)
        assert peak < 16 * 1024**2

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_page_that_is_too_large(self, http_api: HttpApi, packed: bool) -> None:
        http_api.reply(PATH, Reply(["x" * 1024**2], packed=packed))
        error = failure(http_api, page_megabytes=1)
        assert isinstance(error, Permanent)
        assert "more than 1 MB" in str(error)

    def test_a_server_that_says_nothing_is_left(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            source = HttpJsonSource.from_options({"url": url, "timeout_seconds": 0.05})
            with pytest.raises(Transient, match="did not answer: timed out"):
                list(source.fetch(KEY, query()))

    def test_nobody_answers(self) -> None:
        source = HttpJsonSource.from_options({"url": "http://127.0.0.1:1"})
        with pytest.raises(Transient, match=r"127\.0\.0\.1:1 did not answer"):
            list(source.fetch(KEY, query()))


HOST = "https://api.example.com"


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({}, "url: the field is missing"),
        ({"url": "api.example.com"}, "url: expected a URL"),
        ({"url": "ftp://api.example.com"}, "url: expected a URL"),
        ({"url": "https://ann:hunter2@host"}, "url: expected a URL without user"),
        ({"url": f"{HOST}?key=hunter2"}, "url: expected a URL without user"),
        ({"url": "https://[hunter2"}, "url: expected a URL"),
        ({"url": "http://api.example.com"}, "http://api.example.com would be asked without encryption"),
        ({"url": HOST, "origins": [HOST, "http://x"]}, "http://x would be asked without encryption"),
        ({"url": HOST, "headers": {"A": {"envir": "hunter2"}}}, "headers"),
        ({"url": HOST, "headers": {"A": 5}}, "headers"),
        ({"url": HOST, "paging": {"by": "magic"}}, "paging"),
        ({"url": HOST, "paging": {"by": "cursor", "param": "c"}}, "paging: either `path` or `record`"),
        ({"url": HOST, "paging": {"by": "offset", "size": 0}}, "paging.size"),
        ({"url": HOST, "records": "a..b"}, "records: path 'a..b'"),
        ({"url": HOST, "statuses": {"empty": [42]}}, r"statuses.empty\[0\]"),
        ({"url": HOST, "quota_scope": "everybody"}, "quota_scope: 'everybody' is not one of account, source"),
        ({"url": HOST, "timeout_seconds": 0}, "timeout_seconds"),
    ],
    ids=str,
)
def test_wrong_options_are_named(options: dict[str, object], path: str) -> None:
    with pytest.raises(ConfigError, match=f"options of source http_json: {path}") as caught:
        HttpJsonSource.from_options(options)
    assert "hunter2" not in f"{caught.value!r} {caught.value.remedy}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ({"path": "/x"}, "text: the request does not say where the day goes"),
        ("/orders/{customer_id}", "text: the request does not say where the day goes"),
        ("orders/{logical_date}", "text: a path begins with /"),
        ("/{day}", "text: template '{day}'"),
        ({"path": "/{logical_date}", "parms": {}}, "text.parms: there is no such field"),
        ({"params": {}}, "text.path: the field is missing"),
        ({"path": "/x", "params": {"d": "{logical_day}"}}, "text.params"),
        ({"path": "/{logical_date}", "body": {}}, "text: a body is sent by `method: POST` alone"),
        ({"path": "/x", "method": "PUT"}, "text.method"),
        ({"path": "/x", "method": "POST", "body": {"a": ["{b}"]}}, "text.body: template '{b}'"),
        ({"path": "/{logical_date}", "columns": {"id": "b."}}, "text.columns"),
        ({"path": "/{logical_date}", "columns": {"ido": "b"}}, "text.columns.ido: no contract of the query"),
        ({"path": "/{logical_date}", "params": {"open": True}}, "text.params: expected text"),
    ],
    ids=str,
)
def test_wrong_texts_are_named(text: object, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        HttpJsonSource.from_options({"url": HOST}).check([described("http_json", text)])
    assert f"query orders: {said}" in str(caught.value)


def test_options_do_not_show_what_may_be_secret() -> None:
    given = {"url": f"{HOST}/hunter2", "headers": {"A": "hunter2"}, "params": {"key": "hunter2"}}
    options = read_options("http_json", HttpJsonOptions, given)
    assert "hunter2" not in f"{options!r} {options} {HttpJsonSource(options)!r}"


@pytest.mark.parametrize("value", ["hunter2\nX: y", "hunter2é\u2028"])
def test_a_header_that_cannot_be_sent_is_not_quoted(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("SHOP_TOKEN", value)
    for header in (value, {"env": "SHOP_TOKEN"}):
        source = HttpJsonSource.from_options({"url": HOST, "headers": {"Authorization": header}})
        with pytest.raises(ConfigError, match="header 'Authorization' cannot be sent") as caught:
            source.check([query()])
        assert "hunter2" not in f"{caught.value!r} {caught.value.remedy}"


def test_a_variable_that_is_not_set_where_rows_are_fetched(http_api: HttpApi) -> None:
    error = failure(http_api, headers={"Authorization": {"env": "NO_SUCH_VARIABLE"}})
    assert isinstance(error, ConfigError)
    assert "NO_SUCH_VARIABLE, for header Authorization, is not set" in str(error)
    assert "spark.executorEnv.NO_SUCH_VARIABLE" in str(error.remedy)
    assert http_api.requests == []


def test_doctor_hears_what_the_probe_says(http_api: HttpApi) -> None:
    def examined(**options: object) -> str:
        source = HttpJsonSource.from_options({"url": http_api.origin, "params": {"key": "k"}, **options})
        [remark] = source.examine([query()], KEY.logical_date)
        assert remark.remedy is None
        return remark.text

    assert examined().startswith(f"{http_api.origin} answers; with `probe`")
    http_api.reply("/me", Reply({"name": "ann"}))
    assert examined(probe="/me") == f"{http_api.origin} answers /me by 200"
    assert http_api.requests[-1].params == {"key": "k"}
    http_api.reply("/me", Reply(status=401))
    with pytest.raises(Permanent, match=r"/me of http.* was answered by 401"):
        examined(probe="/me")
    http_api.reply("/", Reply(status=503))
    http_api.reply("", Reply(status=503))
    with pytest.raises(Transient):
        examined()
