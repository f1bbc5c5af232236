"""Judging sealed runs: contracts held against raw partitions on Spark, verdicts with evidence."""

from sealbook.validate.contracts import validator_version
from sealbook.validate.plan import Plan, Selection
from sealbook.validate.results import Judged, NotJudged, Result, Tally
from sealbook.validate.validator import Validator

__all__ = ["Judged", "NotJudged", "Plan", "Result", "Selection", "Tally", "Validator", "validator_version"]
