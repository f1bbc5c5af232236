"""The source `http_json`: a JSON API over HTTP, page by page, as YAML describes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import count
from typing import Self

import msgspec

from sealbook.errors import Permanent, QuotaExceeded, SealbookError, Transient
from sealbook.extract.source import BadOption, Remark, Row, read_options
from sealbook.extract.sources.http_json_answers import Reading
from sealbook.extract.sources.http_json_client import Answer, HttpClient
from sealbook.extract.sources.http_json_options import HttpJsonOptions, Method, Request, header_of, value_of
from sealbook.extract.sources.http_json_paging import Asked, Page
from sealbook.extract.sources.query_texts import BadText, check_columns, check_texts, read_text
from sealbook.extract.sources.records import Way, row_of
from sealbook.extract.sources.templates import Template
from sealbook.model import PartitionKey
from sealbook.model.contract import Query

_TYPE = "http_json"
_RECORDS = msgspec.json.Decoder(list[msgspec.Raw])
_MOST_WAITS = 10
"""For one page."""


class HttpJsonSource:
    """Fetches the pages of a request one after the other. A page gives rows once all of it is there."""

    def __init__(self, options: HttpJsonOptions, *, sleep: Callable[[float], object] = time.sleep) -> None:
        """Take checked options; `sleep` waits where the API asks for it."""
        self._options = options
        self._sleep = sleep
        self._reading = Reading(options.statuses, options.rate_limit, options.quota_scope)
        self._client = HttpClient(
            {options.url.origin, *(each.origin for each in options.origins)},
            timeout_seconds=options.timeout_seconds,
            most_bytes=options.page_megabytes * 1024**2,
        )

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        """Make a source of the fields of HttpJsonOptions."""
        checked = read_options(_TYPE, HttpJsonOptions, options)
        for path, url in (
            (("url",), checked.url),
            *((("origins", n), u) for n, u in enumerate(checked.origins)),
        ):
            if url.is_readable_on_the_way and not checked.allow_http:
                raise BadOption(
                    f"options of source {_TYPE}: {url.origin} would be asked without encryption",
                    path,
                    remedy="Use https, or set `allow_http: true` if the network is trusted.",
                )
        return cls(checked)

    def check(self, queries: Sequence[Query]) -> None:
        """Read what queries ask for, and the variables that headers and parameters need. Asks nobody."""
        check_texts(queries, self._request)
        self._headers()
        self._params()

    def examine(self, queries: Sequence[Query], today: date) -> list[Remark]:  # noqa: ARG002
        """Ask for the path of `probe`, or for anything, and say what was answered."""
        probe, origin, params = self._options.probe, self._options.url.origin, self._params()
        answer = self._ask(Asked(self._options.url + (probe or ""), params, params))
        failure = self._reading.failure(answer, f"{probe} of {origin}" if probe else origin)
        if failure is not None and (probe is not None or isinstance(failure, Transient)):
            raise failure
        if probe is None:
            return [Remark(f"{origin} answers; with `probe` it would say whether it takes the credentials")]
        return [Remark(f"{origin} answers {probe} by {answer.status}")]

    def fetch(self, key: PartitionKey, query: Query) -> Iterator[Row]:
        """Give the records of one partition, page by page, as rows."""
        request = self._request(query)
        records = request.records or self._options.records
        paging = request.paging or self._options.paging
        asked = self._first(request, key)
        asked = asked if paging is None else paging.first(asked)
        seen: set[str] = set()
        for number in count(1):
            what = f"{key}: page {number} of {self._options.url.origin}"
            answer = self._page(asked, number, what)
            page = _page_of(answer, records, what, empty=self._reading.is_empty(answer))
            for record in page.records:
                yield row_of(record, request.columns)
            following = None if paging is None else paging.after(asked, page)
            if following is None:
                return
            seen.add(repr(asked))
            if repr(following) in seen:
                raise Permanent(f"{what} leads back to one before it", remedy="Correct `paging`.")
            if number == self._options.most_pages:
                raise Permanent(
                    f"{what} is not the last, and `most_pages` is {number}",
                    remedy="Ask for less, or for larger pages, or raise `most_pages`.",
                )
            self._pause(answer, what)
            asked = following

    def _request(self, query: Query) -> Request:
        request = read_text(query, Request, "path")
        check_columns(query, request.columns)
        texts = [request.path, *request.params.values()]
        try:
            texts += _templates(request.body)
        except ValueError as error:
            raise BadText(query, str(error), ("body",)) from None
        if not any(text.has_day for text in texts):
            raise BadText(
                query,
                "the request does not say where the day goes",
                remedy="Write {logical_date} into `path`, `params` or `body`: each day has rows of its own.",
            )
        return request

    def _first(self, request: Request, key: PartitionKey) -> Asked:
        always = self._params()
        own = {name: text.fill(key) for name, text in request.params.items()}
        body = request.body if request.body is not None or request.method is Method.GET else {}
        filled = None if body is None else {name: _filled(each, key) for name, each in body.items()}
        return Asked(self._options.url + request.path.fill(key), {**always, **own}, always, filled)

    def _page(self, asked: Asked, number: int, what: str) -> Answer:
        """Return the answer for a page. One after the first is waited for, if the API asks for a short wait.

        To start again would ask for all pages before it anew, and might so never get further.
        """
        for waits in count():
            try:
                answer = self._ask(asked)
            except SealbookError as error:
                raise _naming(what, error) from error
            failure = self._reading.failure(answer, what)
            if failure is None:
                return answer
            if number == 1 or waits == _MOST_WAITS or not isinstance(failure, QuotaExceeded):
                raise failure
            if failure.retry_after is None or failure.retry_after > self._options.longest_wait_seconds:
                raise failure
            self._sleep(failure.retry_after)
        raise AssertionError("count ends")

    def _pause(self, answer: Answer, what: str) -> None:
        """Wait before the next page, if it would be one too many now."""
        wait = self._reading.wait(answer)
        if wait > self._options.longest_wait_seconds:
            raise QuotaExceeded(
                f"{what} was the last that may be asked for now",
                scope=self._options.quota_scope,
                retry_after=wait,
            )
        if wait := max(wait, self._options.pause_seconds):
            self._sleep(wait)

    def _ask(self, asked: Asked) -> Answer:
        body = None if asked.body is None else msgspec.json.encode(asked.body)
        return self._client.ask(asked.full_url, self._headers(), body)

    def _headers(self) -> dict[str, str]:
        return {name: header_of(name, value) for name, value in self._options.headers.items()}

    def _params(self) -> dict[str, str]:
        return {name: value_of(f"parameter {name}", value) for name, value in self._options.params.items()}


def _page_of(answer: Answer, records: Way | None, what: str, *, empty: bool) -> Page:
    link = ", ".join(answer.headers.get_all("Link") or ()) or None
    if empty:
        return Page(answer.body, link, ())
    try:
        found = msgspec.json.decode(answer.body, type=msgspec.Raw)
    except msgspec.DecodeError:
        raise Transient(f"{what} is no JSON") from None
    if records is not None:
        inside = records.inside(found)
        if inside is None:
            raise Permanent(f"{what} has no {records}", remedy="Correct `records`.")
        found = inside
    if bytes(found) == b"null":
        return Page(answer.body, link, ())
    try:
        return Page(answer.body, link, _RECORDS.decode(found))
    except msgspec.ValidationError:
        where = "it" if records is None else records
        raise Permanent(f"{what}: {where} is no list of records", remedy="Correct `records`.") from None


def _naming(what: str, error: SealbookError) -> SealbookError:
    """Return an error of the same class that names what was asked for."""
    if isinstance(error, Transient):
        return Transient(f"{what}: {error}", retry_after=error.retry_after, remedy=error.remedy)
    return type(error)(f"{what}: {error}", remedy=error.remedy)


def _templates(value: object) -> Iterator[Template]:
    """Yield the texts in the body of a request; InvalidInput if one is no template."""
    match value:
        case str():
            yield Template(value)
        case dict():
            for each in value.values():
                yield from _templates(each)
        case list():
            for each in value:
                yield from _templates(each)


def _filled(value: object, key: PartitionKey) -> object:
    match value:
        case str():
            return Template(value).fill(key)
        case dict():
            return {name: _filled(each, key) for name, each in value.items()}
        case list():
            return [_filled(each, key) for each in value]
    return value
