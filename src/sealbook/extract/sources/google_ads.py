"""The Google Ads source: one SearchStream of the official client for each partition, or range of days."""

from __future__ import annotations

import threading
from calendar import monthrange
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, timedelta
from typing import Any, Self

import msgspec

from sealbook.config.documents import error_in
from sealbook.errors import ConfigError, InvalidInput, Permanent
from sealbook.extract.source import BadOption, Remark, read_options
from sealbook.extract.sources.google_ads_accounts import AccountTree
from sealbook.extract.sources.google_ads_client import (
    CUSTOMERS,
    GoogleAdsOptions,
    api_versions,
    check_api_version,
    open_service,
    require_client,
)
from sealbook.extract.sources.google_ads_ends import end_of
from sealbook.extract.sources.google_ads_errors import classed, request_errors
from sealbook.extract.sources.google_ads_ranges import DAYS_PER_REQUEST, PLACEHOLDER, bind_range
from sealbook.extract.sources.google_ads_rows import Columns, RowFlattener
from sealbook.model import PartitionKey
from sealbook.model.accounts import DiscoveredAccount
from sealbook.model.contract import Query
from sealbook.model.keys import GOOGLE_ADS, check_customer_id, normalise_customer_id
from sealbook.model.words import counted

_ANSWER_SECONDS = 30.0


class GoogleAdsSource:
    """Fetches the rows of a GAQL query for one account and its days. Connects at the first fetch."""

    def __init__(self, options: GoogleAdsOptions) -> None:
        """Take checked options."""
        self._options = options
        self._services: dict[str, Any] = {}
        self._lock = threading.Lock()

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Self:
        """Make a Google Ads source of the fields of GoogleAdsOptions."""
        require_client()
        checked = read_options(GOOGLE_ADS, GoogleAdsOptions, options)
        if checked.login_customer_id is None:
            return cls(checked)
        login_customer_id = normalise_customer_id(checked.login_customer_id)
        try:
            check_customer_id(GOOGLE_ADS, login_customer_id)
        except InvalidInput as error:
            raise BadOption(
                f"options of source {GOOGLE_ADS}: login_{error}",
                ("login_customer_id",),
                remedy="Give the ten digits of the manager account, with or without hyphens.",
            ) from error
        return cls(msgspec.structs.replace(checked, login_customer_id=login_customer_id))

    def check(self, queries: Sequence[Query]) -> None:
        """Read the credentials and get access by them, which costs nothing of the API's quota."""
        for query in queries:
            bind_logical_date(query, date.min)
            self._service(check_api_version(query))

    def horizon(self, today: date) -> date:
        """Return the first day that Google still gives; a day more, as it is yesterday in some time zones."""
        months = today.year * 12 + today.month - 1 - self._options.horizon_months
        year, month = divmod(months, 12)
        last_of_month = monthrange(year, month + 1)[1]
        return date(year, month + 1, min(today.day, last_of_month)) - timedelta(days=1)

    def forewarn(self, queries: Sequence[Query], today: date) -> list[Remark]:
        """Say which API versions end soon."""
        ends = (end_of(version, today) for version in _versions(queries))
        return [remark for remark in ends if remark is not None]

    def examine(self, queries: Sequence[Query], today: date) -> list[Remark]:
        """Say which API versions end, and ask each once for the accounts there are: one operation."""
        return [*self.forewarn(queries, today), *map(self._answer, _versions(queries))]

    def _answer(self, api_version: str) -> Remark:
        asked = "ListAccessibleCustomers"
        service = open_service(self._options, api_version, CUSTOMERS)
        try:
            answer = service.list_accessible_customers(retry=None, timeout=_ANSWER_SECONDS)
        except request_errors() as error:
            raise classed(error, asked, api_version) from error
        accounts = len(answer.resource_names)
        if not accounts:
            return Remark(
                f"API {api_version} answers, and has no account for these credentials",
                "Give their user access to the account, or to a manager account above it.",
            )
        return Remark(f"API {api_version} answers: {counted(accounts, 'account')} directly accessible")

    def accounts(self, root: str, queries: Sequence[Query]) -> Iterator[DiscoveredAccount]:
        """Stream the account tree below a manager account, in the newest API version of the queries."""
        versions = {check_api_version(query) for query in queries}
        api_version = max(versions, key=api_versions().index)
        tree = AccountTree(self._service(api_version), api_version, self._options.timeout_seconds)
        return tree.accounts(root)

    def fetch(self, key: PartitionKey, query: Query) -> Iterator[Columns]:
        """Stream the rows of one partition as flat columns."""
        with closing(self._answers(key, query, bind_logical_date(query, key.logical_date), key)) as answers:
            for rows, flatten in answers:
                for row in rows:
                    yield flatten(row)

    def days_per_request(self, query: Query) -> int:
        """Return 31 where the text for one day can be made one for several that gives the same rows."""
        return 1 if bind_range(query.text, date.min, date.max) is None else DAYS_PER_REQUEST

    def fetch_range(self, keys: Sequence[PartitionKey], query: Query) -> Iterator[tuple[date, Columns]]:
        """Stream the rows of several days as flat columns, each with its day."""
        first, last = keys[0], keys[-1].logical_date
        text = bind_range(query.text, first.logical_date, last)
        if text is None:
            raise ConfigError(f"query {query.name} can be asked for one day at a time only")
        days = {key.logical_date.isoformat(): key.logical_date for key in keys}
        with closing(self._answers(first, query, text, f"{first} … {last}")) as answers:
            for rows, flatten in answers:
                for row in rows:
                    day = days.get(row.segments.date)
                    if day is None:
                        raise Permanent(f"{first} … {last}: a row of {row.segments.date!r} came")
                    yield day, flatten(row)

    def _answers(
        self, key: PartitionKey, query: Query, text: str, asked: object
    ) -> Generator[tuple[Sequence[Any], RowFlattener], None, None]:
        """Yield the messages of a stream: their rows, and what flattens them. `asked` is for errors."""
        api_version = check_api_version(query)
        service = self._service(api_version)
        stream = None
        try:
            stream = service.search_stream(
                customer_id=key.customer_id, query=text, retry=None, timeout=self._options.timeout_seconds
            )
            mask: list[str] | None = None
            for answer in stream:
                if not answer.results:
                    continue
                if mask != answer.field_mask.paths:
                    mask = list(answer.field_mask.paths)
                    flatten = RowFlattener(answer.results[0].DESCRIPTOR, mask)
                yield answer.results, flatten
        except request_errors() as error:
            raise classed(error, asked, api_version, text) from error
        finally:
            # A reader that stops early must not leave the server sending.
            if stream is not None:
                stream.cancel()

    def _service(self, api_version: str) -> Any:
        with self._lock:
            if api_version not in self._services:
                self._services[api_version] = open_service(self._options, api_version)
            return self._services[api_version]


def _versions(queries: Sequence[Query]) -> list[str]:
    return sorted({check_api_version(query) for query in queries})


def bind_logical_date(query: Query, day: date) -> str:
    """Put the day into the query's text; `{logical_date}` is the only placeholder, other braces stand."""
    if PLACEHOLDER not in query.text:
        raise error_in(
            query.file,
            ("queries", query.name, "text"),
            f"the text of query {query.name} does not say where the day goes",
            remedy=f"Write WHERE segments.date = '{PLACEHOLDER}'.",
        )
    return query.text.replace(PLACEHOLDER, day.isoformat())
