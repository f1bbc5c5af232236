"""Fixtures that any test may ask for; each support module says what it starts."""

import os

from hypothesis import settings

# What gRPC does when a process forks is heard in the child, which tests start to see what a command says.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

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
