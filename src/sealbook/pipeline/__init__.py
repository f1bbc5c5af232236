"""A run through the stages: opens it, records its steps, and ends it."""

from sealbook.pipeline.outcome import RunOutcome, StageBatch
from sealbook.pipeline.pipeline import Pipeline

__all__ = ["Pipeline", "RunOutcome", "StageBatch"]
