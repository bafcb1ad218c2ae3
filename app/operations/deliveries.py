"""The delivery of events to webhooks, in a thread of each dispatcher: claims, attempts, retries, automatic disabling.

Once a second, one look into an index finds out whether anything is due. The libraries that send are imported when
something is. Each attempt has a thread of its own, so that a receiver that is slow holds up no other: their number is
limited in total, for each webhook and for each owner.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from app.platform import audit, failpoints, outbox
from app.platform.audit import Outcome as Recorded
from app.platform.database import Database
from app.platform.encryption import BadKeys, Cipher, Undecryptable
from app.platform.errors import Unavailable
from app.platform.outbox import ClaimedDelivery
from app.platform.settings import Settings
from app.platform.sql import Session
from app.platform.tables import WebhookDisabled
from app.webhooks import delivery_repository as rows
from app.webhooks.delivery_repository import DueTarget, Target
from app.webhooks.payloads import body_of
from app.webhooks.secrets import signing_secrets

if TYPE_CHECKING:
    from app.webhooks.sending import Outcome, Sender

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Time between two looks for due deliveries."""
UNTARGETED_SECONDS = 60.0
"""Shortest time between two searches for due deliveries without a webhook."""
MAX_ATTEMPTS_AT_ONCE = 32
"""Attempts of one dispatcher at once. An owner may have at most as many as are free."""
MAX_OF_WEBHOOK = 4
"""Attempts at one webhook at once in one dispatcher; one if the last attempt failed."""
LEASE_SECONDS = 60.0
"""Time after which another dispatcher sends a delivery whose sender has died. An attempt takes at most 10 s."""
STOP_SECONDS = 6.0
"""How long a stopping dispatcher waits for attempts. Those that it leaves are repeated when their lease ends."""
RETRY_SECONDS = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
"""Time from each failed attempt to the next, about three days in all. After the last one the delivery has failed."""
JITTER = 0.1
"""Largest share by which such a time is made longer or shorter, so that receivers do not get all at once."""
MAX_RETRY_AFTER_SECONDS = 3600.0
"""The longest that a receiver can delay the next attempt by Retry-After, if that is later than planned."""
FAILING_SECONDS = 5 * 86_400.0
"""A webhook whose attempts have all failed for so long is disabled."""
GONE = 410
_DISABLED = "disabled webhook"
"""The action of an audit entry."""
_AWAKE_SECONDS = 0.05


class Courier:
    """Delivers what is due. Any number of them can run at once, in one dispatcher each."""

    def __init__(self, db: Database, settings: Settings, sender: Sender | None = None) -> None:
        self._db = db
        self._settings = settings
        if sender is not None:
            self._sender = sender
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()
        """Attempts now, by webhook."""
        self._busy_owners: Counter[str] = Counter()
        self._has_room = True
        """Whether an attempt has ended since the last look."""
        self._untargeted_at = 0.0
        self._unwritten = 0
        """Attempts whose outcome is not written yet."""
        self._all_written = threading.Condition(self._lock)
        self._is_over = threading.Event()

    @cached_property
    def _sender(self) -> Sender:
        from app.webhooks.sending import Sender

        return Sender(self._settings.networks_of_webhooks, self._settings.proxy_of_webhooks)

    @cached_property
    def _cipher(self) -> Cipher | None:
        """What decrypts secrets; None without keys, which is logged once."""
        try:
            keys = self._settings.read_secrets_keys()
        except BadKeys as error:
            log.error("no webhook can be signed: %s", error)
            return None
        if not keys:
            log.error("no webhook can be signed: RANKWRIGHT_SECRETS_KEYS_FILE is not set")
        return Cipher(keys) if keys else None

    def run(self, stop: threading.Event) -> None:
        """After an error the next round starts as usual."""
        look_at = 0.0
        while not stop.wait(_AWAKE_SECONDS if self._unwritten else LOOK_SECONDS):
            if time.monotonic() < look_at and not self._has_room:
                continue
            look_at = time.monotonic() + LOOK_SECONDS
            try:
                self.start_due()
            except Unavailable:
                pass  # `Database` logs it
            except Exception:
                log.exception("deliveries of webhooks continue after an error")
        self.wait(STOP_SECONDS)
        self._is_over.set()  # nothing is written afterwards

    def wait(self, seconds: float) -> bool:
        """Wait until all attempts are written; returns False after `seconds`."""
        with self._lock:
            return self._all_written.wait_for(lambda: not self._unwritten, seconds)

    def start_due(self) -> int:
        """Start attempts at due deliveries, up to the limits."""
        self._has_room = False
        if not self._db.reading(outbox.is_any_due):
            return 0
        if time.monotonic() >= self._untargeted_at:
            self._untargeted_at = time.monotonic() + UNTARGETED_SECONDS
            if count := self._db.writing(rows.fail_untargeted):
                log.info("%d deliveries to disabled or deleted webhooks have failed", count)
        due = self._db.reading(rows.due_targets)
        shares = self._shares(due)
        claimed = self._db.writing(self._claim, shares) if shares else []
        if not claimed:
            return 0
        failpoints.reach("delivery_claimed")
        targets = self._db.reading(rows.find_targets, {each.target for each in claimed})
        for each in claimed:
            self._start(each, targets.get(each.target))
        return len(claimed)

    def _shares(self, due: Sequence[DueTarget]) -> Counter[str]:
        """Return how many deliveries of each webhook may start. Owners, then webhooks, with fewest attempts first."""
        shares: Counter[str] = Counter()
        due = random.sample(due, len(due))  # whoever comes first in the database has no advantage
        with self._lock:
            busy, owners = self._busy.copy(), self._busy_owners.copy()
        limits = {each.id: 1 if each.is_failing else MAX_OF_WEBHOOK for each in due}
        free = MAX_ATTEMPTS_AT_ONCE - busy.total()
        while free > 0:
            open_ = [
                each
                for each in due
                if busy[each.id] < limits[each.id] and owners[each.owner] < free
            ]
            if not open_:
                break
            found = min(open_, key=lambda each: (owners[each.owner], busy[each.id]))
            shares[found.id] += 1
            busy[found.id] += 1
            owners[found.owner] += 1
            free -= 1
        return shares

    def _claim(self, session: Session, shares: Counter[str]) -> list[ClaimedDelivery]:
        # in order, so that two dispatchers do not wait for each other
        claimed = [
            each
            for target, limit in sorted(shares.items())
            for each in outbox.claim(session, target, limit, LEASE_SECONDS)
        ]
        if claimed:
            failpoints.reach("delivery_claim")
        return claimed

    def _start(self, delivery: ClaimedDelivery, target: Target | None) -> None:
        """Make an attempt in a thread, unless the target was disabled meanwhile."""
        if target is None:
            return
        thread = threading.Thread(
            # a daemon: an attempt that is not waited for must not keep the process
            target=self._attempt,
            args=(delivery, target),
            name="webhook",
            daemon=True,
        )
        with self._lock:
            self._busy[target.id] += 1
            self._busy_owners[target.owner] += 1
            self._unwritten += 1
        try:
            thread.start()
        except BaseException:  # no thread can be started: the delivery is repeated after its lease
            self._written()
            self._leave(target)
            raise

    def _attempt(self, delivery: ClaimedDelivery, target: Target) -> None:
        """Send a delivery and write the outcome."""
        lookup = None
        try:
            started = time.monotonic()
            lookup, outcome = self._send(delivery, target)
            failpoints.reach("delivery_sent")
            self._write(delivery, target, outcome, time.monotonic() - started)
        except Exception:
            log.exception("the delivery of %s to %s is repeated", delivery.event_id, target.id)
        finally:
            self._written()
            # A resolver that does not answer is part of what an owner's receivers occupy.
            if lookup is not None:
                lookup.join()
            self._leave(target)

    def _written(self) -> None:
        with self._lock:
            self._unwritten -= 1
            self._all_written.notify_all()

    def _leave(self, target: Target) -> None:
        with self._lock:
            for counter, name in ((self._busy, target.id), (self._busy_owners, target.owner)):
                counter[name] -= 1
                if not counter[name]:
                    del counter[name]
            self._has_room = True

    def _send(
        self, delivery: ClaimedDelivery, target: Target
    ) -> tuple[threading.Thread | None, Outcome]:
        from app.webhooks.sending import Outcome, SendError

        try:
            if self._cipher is None:
                raise Undecryptable
            secrets = signing_secrets(
                self._cipher,
                target.secret,
                target.previous_secret,
                previous_is_valid=target.previous_is_valid,
            )
        except Undecryptable:
            return None, Outcome(error=SendError.SECRET)
        body = body_of(delivery.type, delivery.at, delivery.data)
        attempt = self._sender.send(target.url, delivery.event_id, body, secrets)
        return attempt.lookup, attempt.outcome

    def _write(
        self, delivery: ClaimedDelivery, target: Target, outcome: Outcome, seconds: float
    ) -> None:
        """While the database is down, try until the lease ends."""
        until = time.monotonic() + LEASE_SECONDS - seconds
        while not self._is_over.is_set():
            try:
                disabled = self._db.writing(end_attempt, delivery, target, outcome, seconds)
                break
            except Unavailable:
                if time.monotonic() > until:
                    raise
                self._is_over.wait(LOOK_SECONDS)
        else:
            return
        if disabled is not None:
            log.warning("the webhook %s was disabled: %s", target.id, disabled)


def delay_seconds(attempt: int, retry_after: float | None) -> float | None:
    """Return the time until the next attempt; None if this one (from 1) was the last."""
    if attempt > len(RETRY_SECONDS):
        return None
    planned = RETRY_SECONDS[attempt - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - no secret
    return max(planned, min(retry_after or 0.0, MAX_RETRY_AFTER_SECONDS))


def end_attempt(
    session: Session, delivery: ClaimedDelivery, target: Target, outcome: Outcome, seconds: float
) -> WebhookDisabled | None:
    """Write the outcome, and disable a webhook that is gone or has failed for too long; returns why, if so."""
    disabled = None
    # Webhooks before deliveries, as those who disable and delete them do: otherwise two might wait for each other.
    if outcome.is_success:
        rows.note_success(session, target.id)
        outbox.succeed(session, delivery)
    else:
        rows.note_failure(session, target.id)
        delay = delay_seconds(delivery.attempt, outcome.retry_after)
        if outcome.status == GONE:
            disabled = WebhookDisabled.GONE
        elif rows.has_failed_for(session, target.id, FAILING_SECONDS):
            disabled = WebhookDisabled.FAILING
        if disabled is not None and not rows.disable(session, target.id, disabled):
            disabled = None  # it was already
        if delay is None or outcome.status == GONE:
            outbox.fail(session, delivery)
        else:
            outbox.retry(session, delivery, delay)
    if rows.exists(session, delivery.event_id, delivery.target):
        rows.log_attempt(
            session,
            delivery.event_id,
            delivery.target,
            delivery.number,
            seconds=seconds,
            status=outcome.status,
            error=outcome.error,
            response=outcome.response,
        )
    if disabled is not None:
        audit.record_of_service(
            session,
            _DISABLED,
            Recorded.DONE,
            f"Disabled the webhook {target.id}: {_WHY[disabled]}",
            owner=target.owner,
        )
    failpoints.reach("delivery_end")
    return disabled


_WHY = {
    WebhookDisabled.GONE: "its receiver answered with the status 410",
    WebhookDisabled.FAILING: f"all attempts have failed for {FAILING_SECONDS / 86_400:g} days",
}
