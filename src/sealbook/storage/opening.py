"""From a URL to the storage that it names; credentials come from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from sealbook.errors import ConfigError, first_line, shown_url
from sealbook.storage.folder import Folder
from sealbook.storage.objects import Storage

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

_REMEDY = "Use a folder, file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix."
_NONE: Mapping[str, str] = MappingProxyType({})
_BUCKETS = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
_BUCKET = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
# In the order in which obstore prefers them.
_S3_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")

# A large payload takes as long as it takes; what must not happen is that nothing moves at all.
_CLIENT: ClientConfig = {
    "connect_timeout": timedelta(seconds=10),
    "read_timeout": timedelta(minutes=1),
    "timeout": timedelta(hours=1),
}
# Rides out throttling and a restart, and still tells a person within half a minute that nobody answers.
_RETRY: RetryConfig = {"max_retries": 8, "backoff": {"max_backoff": timedelta(seconds=5)}}


def open_storage(what: str, url: str, options: Mapping[str, str] = _NONE) -> tuple[str, Storage]:
    """Return the storage that a URL names, and the URL in its absolute form; errors say what it is for."""
    named = _named(what, url)
    if isinstance(named, Path):
        return _open_folder(what, named, options)
    return _open_bucket(what, named, options)


def missing_folder(what: str, url: str) -> Path | None:
    """Return the folder that a URL names if it is not there, and is made when it is opened; else None."""
    named = _named(what, url)
    return named if isinstance(named, Path) and not named.exists() else None


def _named(what: str, url: str) -> Path | SplitResult:
    """Return the folder that a URL names, or else the parts of the URL of a bucket."""
    scheme, separator, _ = url.partition("://")
    if not separator:
        if not url or url.partition(":")[0] in _BUCKETS:
            raise ConfigError(f"{what} {shown_url(url)!r} is not a folder or URL", remedy=_REMEDY)
        return Path(url).expanduser()
    try:
        parts = urlsplit(url)
    except ValueError:  # without what it says: it may quote the password
        raise ConfigError(f"{what} {shown_url(url)!r} is not a URL", remedy=_REMEDY) from None
    if scheme == "file":
        return _folder_of(what, parts)
    if scheme in _BUCKETS:
        return parts
    raise ConfigError(f"{what} {_shown(parts)}: there is no storage of that kind", remedy=_REMEDY)


def _shown(parts: SplitResult) -> str:
    """Write a URL as it was given: `s3://` is one, of which `geturl` leaves a piece out."""
    return shown_url(f"{parts.scheme}://{parts.netloc}{parts.path}")


def _folder_of(what: str, parts: SplitResult) -> Path:
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or not parts.path:
        raise ConfigError(f"{what} {_shown(parts)} does not name a folder of this machine", remedy=_REMEDY)
    return Path(unquote(parts.path))


def _open_folder(what: str, folder: Path, options: Mapping[str, str]) -> tuple[str, Storage]:
    if options:
        raise ConfigError(f"{what} {folder}: a folder takes no options, but got {', '.join(options)}")
    root = folder.resolve()
    try:
        root.mkdir(parents=True, exist_ok=True)
        return root.as_uri(), Folder(root)
    except (OSError, BaseError) as error:
        raise ConfigError(
            f"{what} {root} is not a folder that can be used: {error}",
            remedy="Name a folder that exists, or that may be created.",
        ) from error


def _open_bucket(what: str, parts: SplitResult, options: Mapping[str, str]) -> tuple[str, Storage]:
    if _BUCKET.fullmatch(parts.netloc) is None or parts.query or parts.fragment:
        raise ConfigError(f"{what} {_shown(parts)} does not name a bucket and prefix", remedy=_REMEDY)
    prefix = parts.path.strip("/")
    kind: Any = _BUCKETS[parts.scheme]
    client = dict(_CLIENT)
    try:
        if parts.scheme == "s3":
            client["allow_http"] = may_use_http(options)
        store = kind(
            parts.netloc,
            prefix=prefix or None,
            config=dict(options),
            client_options=client,
            retry_config=_RETRY,
        )
    except (BaseError, ValueError, TypeError) as error:
        raise ConfigError(
            f"{what} {_shown(parts)} cannot be opened: {first_line(error)}",
            remedy="Check the URL, the options and the AWS_*, GOOGLE_* or AZURE_* environment.",
        ) from error
    url = f"{parts.scheme}://{parts.netloc}/{prefix}".rstrip("/")
    return url, Storage(store, url)


def s3_endpoint() -> str | None:
    """Return the S3 server that the environment names; None for that of AWS."""
    return next(filter(None, map(os.environ.get, _S3_ENDPOINTS)), None)


def may_use_http(options: Mapping[str, str] = _NONE) -> bool:
    """Say whether a server is to be reached without TLS: on this machine, or where AWS_ALLOW_HTTP says so."""
    endpoint = options.get("endpoint") or s3_endpoint() or ""
    if urlsplit(endpoint).scheme != "http":
        return False
    allowed = os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"
    if allowed or _is_loopback(urlsplit(endpoint).hostname or ""):
        return True
    raise ConfigError(
        f"the S3 endpoint {shown_url(endpoint)} would be reached without encryption",
        remedy="Use https, or set AWS_ALLOW_HTTP=true if the network is trusted.",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
