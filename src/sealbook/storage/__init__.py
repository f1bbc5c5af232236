"""Objects on a folder or an object store: what raw partitions and artifacts both lie on."""

from sealbook.storage.failures import Writer, reported, translated
from sealbook.storage.objects import Branch, Entry, Storage
from sealbook.storage.opening import may_use_http, missing_folder, open_storage, s3_endpoint

__all__ = [
    "Branch",
    "Entry",
    "Storage",
    "Writer",
    "may_use_http",
    "missing_folder",
    "open_storage",
    "reported",
    "s3_endpoint",
    "translated",
]
