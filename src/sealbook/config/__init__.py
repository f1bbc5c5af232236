"""Settings from files: `sealbook.yaml` and the catalogues that it names."""

from sealbook.config.control import ControlSettings
from sealbook.config.loading import FILE_NAME, find_settings, load_settings
from sealbook.config.settings import (
    SOURCE_ENTRY_POINTS,
    Limits,
    MirrorFormat,
    MirrorSettings,
    RetentionSettings,
    Settings,
    SourceOptions,
    SourceSettings,
    SparkSettings,
    check_selection,
    configured,
    find_query,
)

__all__ = [
    "FILE_NAME",
    "SOURCE_ENTRY_POINTS",
    "ControlSettings",
    "Limits",
    "MirrorFormat",
    "MirrorSettings",
    "RetentionSettings",
    "Settings",
    "SourceOptions",
    "SourceSettings",
    "SparkSettings",
    "check_selection",
    "configured",
    "find_query",
    "find_settings",
    "load_settings",
]
