"""Fixtures that any test may ask for; each support module says what it starts."""

pytest_plugins = [
    "tests.support.ledger",
    "tests.support.s3",
    "tests.support.google_ads",
    "tests.support.spark",
]
