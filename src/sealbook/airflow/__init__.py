"""Sealbook from Airflow: wait for partitions, run the pipeline, and be woken by changes.

`PublishedSensor` and `RunOperator` are for tasks, `ChangesTrigger` is for an AssetWatcher.
"""

from __future__ import annotations

from sealbook.airflow.operators import RunOperator
from sealbook.airflow.sensors import PublishedSensor
from sealbook.airflow.triggers import ChangesTrigger, PublishedTrigger

__all__ = ["ChangesTrigger", "PublishedSensor", "PublishedTrigger", "RunOperator"]
