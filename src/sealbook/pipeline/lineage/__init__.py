"""OpenLineage: runs and their steps told to whoever collects lineage, from the log."""

from sealbook.pipeline.lineage.delivery import LineageSender

__all__ = ["LineageSender"]
