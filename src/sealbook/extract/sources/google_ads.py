"""The Google Ads source: one SearchStream of the official client for each partition."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Self

import msgspec

from sealbook.config.documents import error_in
from sealbook.errors import ConfigError, InvalidInput
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
from sealbook.extract.sources.google_ads_rows import Columns, RowFlattener
from sealbook.model import PartitionKey
from sealbook.model.accounts import DiscoveredAccount
from sealbook.model.contract import Query
from sealbook.model.keys import GOOGLE_ADS, check_customer_id, normalise_customer_id
from sealbook.model.words import counted

_PLACEHOLDER = "{logical_date}"
_ANSWER_SECONDS = 30.0


class GoogleAdsSource:
    """Fetches the rows of a GAQL query for one account and day. Connects at the first fetch."""

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
            self._service(check_api_version(query.api_version))

    def examine(self, queries: Sequence[Query], today: date) -> list[Remark]:
        """Say which API versions end, and ask each once for the accounts there are: one operation."""
        versions = sorted({check_api_version(query.api_version) for query in queries})
        ends = [remark for version in versions if (remark := end_of(version, today)) is not None]
        return [*ends, *map(self._answer, versions)]

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
        versions = {check_api_version(query.api_version) for query in queries}
        api_version = max(versions, key=api_versions().index)
        tree = AccountTree(self._service(api_version), api_version, self._options.timeout_seconds)
        return tree.accounts(root)

    def fetch(self, key: PartitionKey, query: Query) -> Iterator[Columns]:
        """Stream the rows of one partition as flat columns."""
        text = bind_logical_date(query, key.logical_date)
        api_version = check_api_version(query.api_version)
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
                for row in answer.results:
                    yield flatten(row)
        except request_errors() as error:
            raise classed(error, key, api_version) from error
        finally:
            # A reader that stops early must not leave the server sending.
            if stream is not None:
                stream.cancel()

    def _service(self, api_version: str) -> Any:
        with self._lock:
            if api_version not in self._services:
                self._services[api_version] = open_service(self._options, api_version)
            return self._services[api_version]


def bind_logical_date(query: Query, day: date) -> str:
    """Put the day into the query's text; `{logical_date}` is the only placeholder, other braces stand."""
    if _PLACEHOLDER not in query.text:
        problem = f"the text of query {query.name} does not say where the day goes"
        remedy = f"Write WHERE segments.date = '{_PLACEHOLDER}'."
        if query.file is None:
            raise ConfigError(problem, remedy=remedy)
        raise error_in(query.file, ("queries", query.name, "text"), problem, remedy=remedy)
    return query.text.replace(_PLACEHOLDER, day.isoformat())
