"""A nightly job: send the day's outcomes; on an alarm, train a challenger from decisions, and compare it in shadow.

    python nightly_feedback.py churn@live outcomes.csv

It can be run again after a failure. A person promotes the challenger. Exit code 7: look at the output."""

import sys

import rankwright

alias, outcomes = sys.argv[1:3]
name, label = alias.split("@")
client = rankwright.Client()

received = client.send_outcomes(outcomes)
print(f"{received.rows} outcomes, {received.duplicates} of them known before")

monitor = client.models.monitor(name, label)
alarms = [alarm for alarm in monitor.alarms if alarm.acknowledged_at is None]
for alarm in alarms:
    print(f"{alarm.id} {alarm.period_start[:10]}: {alarm.words}")

settings = client.models.read_feedback(name, label)
if alarms and settings.shadow is None:
    first = alarms[-1]  # the oldest one, after whose beginning the relation has changed
    rows = client.dataset_from_decisions(
        alias, name=f"{name}-decisions", since=first.period_start, idempotency_key=first.id
    )
    job = client.train(rows, "logitboost", name=name, idempotency_key=f"{first.id}-challenger")
    keep = ("keep", "features", "days", "explore", "outcome", "monitor")
    kept = {key: value for key, value in settings.to_json().items() if key in keep}
    challenger = job.wait()
    client.models.set_feedback(name, label, **kept, shadow=challenger.id)
    print(f"{challenger.name}:{challenger.version} is compared in shadow")

found = client.models.shadow(name, label).comparison
if found and found.winner == "challenger":
    print(f"the challenger ranks better by {found.difference:.3f}: promote it with a reason")
    sys.exit(7)
sys.exit(7 if alarms else 0)
