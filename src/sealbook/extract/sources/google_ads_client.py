"""Opens the official Google Ads client: its API versions, and credentials by its own conventions.

The client is imported inside the functions: it takes more than a second, and an extra brings it. No secret
enters a message here, nor the chain of causes: a parser's error quotes the line that it could not read.
"""

from __future__ import annotations

import os
import pkgutil
import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import msgspec

from sealbook.config.documents import error_in
from sealbook.errors import ConfigError, Forbidden, MissingExtra, Transient
from sealbook.model.contract import Query

_PACKAGE = "google.ads.googleads"
SEARCH, CUSTOMERS = "GoogleAdsService", "CustomerService"
"""The services that are asked: for rows, and for which accounts there are."""

_MODULES = {SEARCH: "google_ads_service", CUSTOMERS: "customer_service"}
_VERSION = re.compile(r"v([0-9]+)")
_CREDENTIALS_REMEDY = (
    "Set `credentials_file` to a google-ads.yaml, or the GOOGLE_ADS_* variables, as the client's"
    " documentation describes. It insists on `use_proto_plus`; the value does not matter here."
)


class GoogleAdsOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a Google Ads source can be told. None of it is secret: credentials are read where they lie."""

    credentials_file: Path | None = None
    """A google-ads.yaml. Without it the GOOGLE_ADS_* variables serve, and then ~/google-ads.yaml."""
    login_customer_id: str | None = None
    """The manager account that asks; before the one that comes with the credentials."""
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] = 3600.0
    """The deadline of one stream, from the request to its last row."""
    horizon_months: Annotated[int, msgspec.Meta(ge=1, le=1200)] = 37
    """How many months back Google gives days. Older ones are not asked for."""
    endpoint: str | None = None
    """`host:port` of an emulator, for tests: a plain-text channel, so no credential is read or sent."""


def require_client() -> None:
    """Refuse to go on without the official client; does not import it."""
    try:
        found = find_spec(_PACKAGE) is not None
    except ModuleNotFoundError:  # a parent package is missing
        found = False
    if not found:
        raise MissingExtra(
            "source google_ads needs the official client, which is not installed",
            remedy="pip install 'sealbook[google-ads]'",
        )


def check_api_version(query: Query) -> str:
    """Return the API version that a query is asked in: one that its catalogue names and the client has."""
    known = api_versions()
    has = f"the installed Google Ads client has {', '.join(known)}"
    if query.api_version is None:
        raise error_in(
            query.file,
            ("queries", query.name),
            f"query {query.name} is asked in no api_version; {has}",
            remedy=f"Write `api_version: {known[-1]}` at the top of its catalogue.",
        )
    if query.api_version not in known:
        raise error_in(
            query.file,
            ("api_version",),
            f"api_version {query.api_version!r} of query {query.name}: {has}",
            remedy="Ask for one of these, or install another version of google-ads.",
        )
    return query.api_version


@cache
def api_versions() -> list[str]:
    """Return the API versions that the installed client has, the newest last."""
    modules = pkgutil.iter_modules(import_module(_PACKAGE).__path__)
    found = [match for match in (_VERSION.fullmatch(module.name) for module in modules) if match]
    return [match[0] for match in sorted(found, key=lambda match: int(match[1]))]


def open_service(options: GoogleAdsOptions, api_version: str, service: str = SEARCH) -> Any:
    """Connect a service that answers with plain protobuf messages; safe to share between threads."""
    if options.endpoint is not None:
        return _open_plain_service(options.endpoint, options.login_customer_id, api_version, service)
    from google.ads.googleads.client import GoogleAdsClient
    from google.auth.exceptions import GoogleAuthError, TransportError

    settings = _client_settings(options)
    try:
        return GoogleAdsClient.load_from_dict(settings, version=api_version).get_service(service)
    except TransportError as error:
        raise Transient("the server that grants access tokens could not be reached") from error
    except GoogleAuthError as error:
        problem = f"the Google Ads credentials were refused ({type(error).__name__})"
        if error.retryable:
            raise Transient(problem) from error
        raise Forbidden(problem, remedy=_CREDENTIALS_REMEDY) from error
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the Google Ads credentials cannot be used ({type(error).__name__})", remedy=_CREDENTIALS_REMEDY
        ) from None


def _client_settings(options: GoogleAdsOptions) -> dict[str, Any]:
    """Read the client's settings with the client's own reader."""
    import yaml
    from google.ads.googleads import config

    try:
        if options.credentials_file is not None:
            settings = config.load_from_yaml_file(str(options.credentials_file))
        elif any(name.startswith("GOOGLE_ADS_") for name in os.environ):
            settings = config.load_from_env()
        else:
            settings = config.load_from_yaml_file()
    except FileNotFoundError as error:
        raise ConfigError(
            f"there are no Google Ads credentials at {error.filename}", remedy=_CREDENTIALS_REMEDY
        ) from error
    except OSError as error:
        raise ConfigError(
            f"the Google Ads credentials at {error.filename} cannot be read: {error.strerror}"
        ) from error
    except (ValueError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise ConfigError(
            f"the Google Ads credentials are not in the client's format ({type(error).__name__})",
            remedy=_CREDENTIALS_REMEDY,
        ) from None
    if options.login_customer_id is not None:
        settings["login_customer_id"] = options.login_customer_id
    return {**settings, "use_proto_plus": False}


def _open_plain_service(endpoint: str, login_customer_id: str | None, api_version: str, service: str) -> Any:
    import grpc
    from google.ads.googleads.interceptors import ExceptionInterceptor, MetadataInterceptor
    from grpc.experimental import ChannelOptions

    services = import_module(f"{_PACKAGE}.{api_version}.services.services.{_MODULES[service]}")
    client = getattr(services, f"{service}Client")
    channel = grpc.insecure_channel(
        endpoint,
        options=[
            ("grpc.max_receive_message_length", 64 * 1024 * 1024),
            ("grpc.enable_http_proxy", 0),
            (ChannelOptions.SingleThreadedUnaryStream, 1),
        ],
    )
    channel = grpc.intercept_channel(
        channel,
        MetadataInterceptor(login_customer_id=login_customer_id),
        ExceptionInterceptor(api_version, use_proto_plus=False),
    )
    return client(transport=client.get_transport_class("grpc")(channel=channel))
