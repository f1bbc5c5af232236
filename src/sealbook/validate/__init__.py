"""Judging sealed runs: contracts held against raw partitions on Spark, verdicts with evidence."""

from sealbook.validate.contracts import validator_version
from sealbook.validate.plan import ValidatePlan, Which
from sealbook.validate.results import Judged, NotJudged, Result, ValidateOutcome
from sealbook.validate.validator import Validator

__all__ = [
    "Judged",
    "NotJudged",
    "Result",
    "ValidateOutcome",
    "ValidatePlan",
    "Validator",
    "Which",
    "validator_version",
]
