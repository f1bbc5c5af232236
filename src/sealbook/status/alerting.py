"""Alerts are sent: in order, in batches, each once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sealbook.ledger.alerts import AlertTurn
from sealbook.model.alerts import Notice
from sealbook.status.receivers import Receiver

BATCH = 1_000
"""Notices that a receiver gets at once: an outage of thousands of partitions is a few calls."""


def send_notices(turn: AlertTurn, receiver: Receiver) -> int:
    """Send all that waits, and return how much; what the receiver does not take waits on."""
    sent = 0
    while waiting := turn.waiting(BATCH):
        receiver.take(encode_notices(waiting))
        turn.mark_sent(waiting)
        sent += len(waiting)
    return sent


def encode_notices(notices: Iterable[Notice]) -> bytes:
    """Return the JSON list that a receiver gets."""
    return msgspec.json.encode([each.to_dict() for each in notices])
