"""What a person can do in the console, a program can do through the client: each form has a method of its own."""

from __future__ import annotations

import pytest
import rankwright
from fastapi.routing import APIRoute
from rankwright import client, resources

from tests.app.live_service import Service, table

ACTIONS = {
    # Tables
    "/console/datasets": "Client.upload",
    "/console/datasets/check": "Datasets.check",
    "/console/datasets/sample": "Client.upload",
    "/console/datasets/{dataset_id}/versions": "Dataset.add_version",
    "/console/datasets/{dataset_id}/read": "Dataset.read_again",
    "/console/datasets/{dataset_id}/pairs": "Dataset.put_pairs",
    "/console/datasets/{dataset_id}/delete": "Dataset.delete",
    "/console/datasets/{dataset_id}/refresh": "Datasets.refresh",
    "/console/datasets/from-source": "Datasets.create",
    "/console/uploads/datasets": "Client.upload",
    "/console/uploads/datasets/validate": "Datasets.check",
    "/console/uploads/datasets/{dataset_id}/versions": "Dataset.add_version",
    "/console/uploads/datasets/{dataset_id}/pairs": "Dataset.put_pairs",
    # Training
    "/console/train": "Client.train",
    "/console/train/check": "Jobs.check",
    "/console/jobs/{job_id}/cancel": "Job.cancel",
    "/console/jobs/{job_id}/retry": "Job.retry",
    "/console/models/{ref}/bins": "Client.train",
    # Models
    "/console/models/{ref}": "Models.set_alias",
    "/console/models/{ref}/aliases": "Models.set_alias",
    "/console/models/{ref}/aliases/{alias}/restore": "Models.restore_alias",
    "/console/models/{ref}/aliases/{alias}/remove": "Models.delete_alias",
    "/console/models/{ref}/aliases/{alias}/protection": "Models.protect_alias",
    "/console/models/{ref}/aliases/{alias}/break-glass": "Models.start_break_glass",
    "/console/alias-requests/{alias_request_id}/approve": "AliasRequests.approve",
    "/console/alias-requests/{alias_request_id}/reject": "AliasRequests.reject",
    "/console/alias-requests/{alias_request_id}/withdraw": "AliasRequests.withdraw",
    "/console/models/{ref}/calibration": "Model.recalibrate",
    "/console/models/{ref}/calibration/restore": "Model.restore_calibration",
    "/console/models/{ref}/comments": "Model.add_comment",
    "/console/models/{ref}/comments/{comment_id}/delete": "Model.delete_comment",
    "/console/models/{ref}/score": "Model.score_row",
    "/console/models/{ref}/letters": "Models.set_reason_codes",
    "/console/models/{ref}/delete": "Model.delete",
    # Results
    "/console/batch-scores": "Client.score_batch",
    "/console/batch-scores/rows": "Client.score_batch",
    "/console/batch-scores/rows/check": "BatchScores.check",
    "/console/batch-scores/{batch_id}/delete": "BatchScore.delete",
    "/console/uploads/batch-scores": "Client.score_batch",
    "/console/uploads/batch-scores/validate": "BatchScores.check",
    "/console/evaluations": "Client.evaluate",
    "/console/evaluations/{evaluation_id}/delete": "Evaluation.delete",
    "/console/evaluations/{evaluation_id}/acknowledgement": "Evaluation.acknowledge",
    "/console/evaluations/{evaluation_id}/acknowledgement/withdraw": "Evaluation.withdraw_acknowledgement",
    "/console/comparisons": "Client.compare",
    "/console/comparisons/{comparison_id}/delete": "Comparison.delete",
    # Monitoring
    "/console/monitoring/{name}/{alias}/feedback": "Models.set_feedback",
    "/console/monitoring/{name}/{alias}/feedback/delete": "Models.delete_feedback",
    "/console/outcomes": "Client.send_outcomes",
    "/console/alarms/{alarm_id}/acknowledge": "Alarms.acknowledge",
    "/console/erasures": "Erasures.create",
    "/console/holds": "Holds.place",
    "/console/holds/{hold_id}/release": "Holds.release",
    # Lists and keys
    "/console/delete/{collection}": "Model.delete",  # one call for each, as for the other collections
    "/console/trash/{item_id}/restore": "Trash.restore",
    "/console/trash/{item_id}/delete": "Trash.delete",
    "/console/views": "Views.save",
    "/console/views/{of_list}/delete": "Views.delete",
    "/console/schedules": "Schedules.create",
    "/console/schedules/{schedule_id}": "Schedules.update",
    "/console/schedules/{schedule_id}/delete": "Schedules.delete",
    "/console/webhooks": "Webhooks.create",
    "/console/webhooks/{webhook_id}": "Webhooks.update",
    "/console/webhooks/{webhook_id}/rotate": "Webhooks.rotate",
    "/console/webhooks/{webhook_id}/ping": "Webhooks.ping",
    "/console/webhooks/{webhook_id}/deliveries/{event_id}/replay": "Webhooks.replay",
    "/console/webhooks/{webhook_id}/delete": "Webhooks.delete",
    "/console/keys": "Keys.create",
    "/console/keys/{key_id}/rotate": "Keys.rotate",
    "/console/keys/{key_id}/revoke": "Keys.revoke",
}
"""Each form of the console and the method of the client that does the same."""

OF_THE_BROWSER = {
    "/console/sign-in": "a session is a browser's credential; a program sends its key",
    "/console/sign-out": "as above",
    "/console/oidc/backchannel-logout": "sent by the identity provider, and ends sessions of browsers",
    "/console/owner": "the owner for which this browser's session acts; a program names it in each request",
    "/console/models/columns": "which columns of the list this browser shows, kept in a cookie",
    "/console/train/form": "draws the training form again with other fields, and changes nothing",
}
"""Forms that change nothing in the service, and why a program does not need them."""


def test_each_form_has_a_method_of_the_client(service: Service) -> None:
    forms = {
        each.path
        for each in service.app.routes
        if isinstance(each, APIRoute)
        and "POST" in each.methods
        and each.path.startswith("/console")
    }
    assert forms == ACTIONS.keys() | OF_THE_BROWSER.keys()
    assert not ACTIONS.keys() & OF_THE_BROWSER.keys()


@pytest.mark.parametrize("name", sorted(set(ACTIONS.values())))
def test_the_method_is_public_in_both_clients(name: str) -> None:
    of, _, method = name.partition(".")
    for kind in (of, f"Async{of}"):
        owner = getattr(client, kind, None) or getattr(resources, kind)
        assert callable(getattr(owner, method))
        assert getattr(owner, method).__doc__


def test_rows_are_checked_without_being_scored(service: Service) -> None:
    secret = service.key()
    model_id = service.train(api := service.client(secret), service.upload(api))["output"]["id"]
    with rankwright.Client(service.url, secret) as ours:
        found = ours.batch_scores.check(model_id, table(30).encode(), media_type="text/csv")
        assert (found.valid, found.rows, found.ignored) == (True, 30, ["left"])
        assert ours.batch_scores.check(model_id, [{"age": 1, "income": 2, "score 1": 3}]).rows == 1
        dataset = ours.datasets[next(iter(ours.datasets.list())).id]
        assert ours.batch_scores.check(ours.models[model_id], dataset).rows is None
        with pytest.raises(rankwright.errors.Invalid) as refused:
            ours.batch_scores.check(model_id, b"age\n1\n", media_type="text/csv")
        assert "income" in str(refused.value)
        assert list(ours.batch_scores.list()) == []
        with pytest.raises(rankwright.errors.NotFound):
            ours.batch_scores.check("mdl_none", b"age\n1\n", media_type="text/csv")
