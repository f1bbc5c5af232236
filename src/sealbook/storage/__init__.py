"""Objects on a folder or an object store: what raw partitions and artifacts both lie on."""

from sealbook.storage.objects import Storage, Writer, reported, translated
from sealbook.storage.opening import open_storage

__all__ = ["Storage", "Writer", "open_storage", "reported", "translated"]
