"""Objects on a folder or an object store: what raw partitions and artifacts both lie on."""

from sealbook.storage.objects import Medium, Writer, reported, translated
from sealbook.storage.opening import open_medium

__all__ = ["Medium", "Writer", "open_medium", "reported", "translated"]
