"""Fixtures that any test may ask for; each support module says what it starts."""

from hypothesis import settings

pytest_plugins = [
    "tests.support.ledger",
    "tests.support.s3",
    "tests.support.google_ads",
    "tests.support.http_api",
    "tests.support.spark",
    "tests.support.cluster",
    "tests.support.browser",
]

# A property does not become false because the machine is busy.
settings.register_profile("sealbook", deadline=None)
settings.load_profile("sealbook")
