"""The validator's version: what a verdict was made by (R-VER-2)."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from sealbook.model.contract import Rule
from sealbook.validate import contracts
from sealbook.validate.contracts import validator_version
from tests.support.validation import CONTRACT


def test_the_version_changes_with_the_contract_and_with_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    version = validator_version(CONTRACT)
    assert version == validator_version(replace(CONTRACT))
    assert version != validator_version(replace(CONTRACT, allow_empty=True))
    assert version != validator_version(replace(CONTRACT, rules=(*CONTRACT.rules, Rule("more", "true"))))

    monkeypatch.setattr(contracts, "CHECKS_VERSION", "another")
    assert version != validator_version(CONTRACT)


def test_the_version_is_the_same_in_every_process() -> None:
    code = (
        "from sealbook.validate.contracts import validator_version;"
        " from tests.support.validation import CONTRACT; print(validator_version(CONTRACT))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == validator_version(CONTRACT)


def test_asking_for_a_version_needs_no_spark() -> None:
    code = (
        "import sys, sealbook.validate.contracts; print('pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.split() == ["False", "False"]
