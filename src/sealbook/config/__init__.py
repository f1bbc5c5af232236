"""Settings from files: `sealbook.yaml` and the catalogues that it names."""

from sealbook.config.accounts import find_zone
from sealbook.config.control import ControlSettings
from sealbook.config.loading import FILE_NAME, find_settings, load_settings
from sealbook.config.settings import (
    SOURCE_ENTRY_POINTS,
    Limits,
    LineageSettings,
    MirrorFormat,
    MirrorSettings,
    RetentionSettings,
    Settings,
    SourceOptions,
    SourceSettings,
    SparkSettings,
    check_accounts,
    check_selection,
    configured,
    find_query,
)

__all__ = [
    "FILE_NAME",
    "SOURCE_ENTRY_POINTS",
    "ControlSettings",
    "Limits",
    "LineageSettings",
    "MirrorFormat",
    "MirrorSettings",
    "RetentionSettings",
    "Settings",
    "SourceOptions",
    "SourceSettings",
    "SparkSettings",
    "check_accounts",
    "check_selection",
    "configured",
    "find_query",
    "find_settings",
    "find_zone",
    "load_settings",
]
