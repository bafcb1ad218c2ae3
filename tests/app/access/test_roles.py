"""Roles: the table of rules, the file that assigns them, and what a caller may change."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.access import repository
from app.access import service as keys
from app.platform.callers import Actor, Caller, Credential, acting_as, check_all_models, check_model
from app.platform.database import Database
from app.platform.errors import Forbidden, Malformed
from app.platform.json_files import BadFile
from app.platform.roles import (
    ROLES,
    Identity,
    RoleFile,
    Rule,
    caller_of,
    owners_of,
    read_rules,
)
from app.platform.settings import Settings
from app.platform.tables import ApiKey
from tests.raising import raises

ISSUER = "https://idp.example"
ENTRY = {"issuer": ISSUER, "group": "risk", "owner": "bank", "role": "trainer"}
ANN = Identity(ISSUER, "u1", "person", "Ann", frozenset({"risk", "fraud"}), 5.0)


def rule(role: str, group: str = "risk", owner: str = "bank", **models: Any) -> Rule:
    return Rule(ISSUER, group, owner, role, **models)


def act(caller: Caller, scope: str) -> Actor:
    return Actor(
        caller.owner,
        caller.principal_id,
        None,
        "PUT /x",
        lambda: "aud",
        None,
        scope=scope,
        caller=caller,
    )


def test_what_each_role_permits() -> None:
    """The whole table, written a second time."""
    rows = {
        "viewer": "read",
        "scorer": "read score outcomes",
        "trainer": "read score train",
        "approver": "read approve",
        "admin": "read score outcomes train approve admin",
    }
    assert {role: set(scopes.split()) for role, scopes in rows.items()} == ROLES
    assert set().union(*ROLES.values()) == set(keys.SCOPES) - {"operator"}


@pytest.mark.parametrize("role", ROLES)
def test_a_caller_has_the_scopes_of_its_role(role: str) -> None:
    caller = caller_of(ANN, "prn_1", [rule(role)])
    assert (caller.owner, caller.roles, caller.kind) == ("bank", (role,), "person")
    assert caller.scopes == ROLES[role]
    assert (caller.principal_id, caller.expires_at) == ("prn_1", 5.0)
    for scope in keys.SCOPES:
        assert caller.may_change(scope, "any") == (scope in ROLES[role])


def test_roles_add_up() -> None:
    both = caller_of(ANN, "p", [rule("approver"), rule("trainer", "fraud")])
    assert both.scopes == {"read", "score", "train", "approve"}
    assert both.roles == ("trainer", "approver")


def test_model_names_restrict_changes_and_not_reading() -> None:
    rules = [rule("trainer", models=("fraud-*", "aml")), rule("approver", "fraud")]
    caller = caller_of(ANN, "p", rules)
    assert caller.may_change("train", "fraud-eu")
    assert caller.may_change("train", "aml")
    for name in ("Fraud-eu", "fraud", "credit", "aml2", "x-fraud-y"):
        assert not caller.may_change("train", name)
        assert caller.may_change("approve", name)
    assert caller.models.keys() == {"train", "score"}
    alone = caller_of(ANN, "p", [*rules, rule("scorer", "fraud")])
    assert alone.models.keys() == {"train"}


def test_a_rule_for_all_models_lifts_the_restriction_of_another() -> None:
    rules = [rule("trainer", models=("fraud-*",)), rule("admin", "fraud")]
    caller = caller_of(ANN, "p", rules)
    assert caller.models == {}
    assert caller.may_change("train", "credit")


def test_restrictions_at_another_owner_do_not_count() -> None:
    rules = [rule("trainer", models=("fraud-*",)), rule("admin", owner="other")]
    caller = caller_of(ANN, "p", rules, "bank")
    assert not caller.may_change("train", "credit")
    assert "admin" not in caller.scopes


@pytest.mark.parametrize(
    "other",
    [
        Rule("https://evil.example", "risk", "bank", "admin"),
        Rule(ISSUER + "/", "risk", "bank", "admin"),
        Rule(ISSUER, "Risk", "bank", "admin"),
        Rule(ISSUER, "risk ", "bank", "admin"),
    ],
    ids=["issuer", "slash", "case", "space"],
)
def test_a_group_of_another_issuer_or_spelling_gives_nothing(other: Rule) -> None:
    with pytest.raises(Forbidden) as refused:
        caller_of(ANN, "p", [other])
    assert refused.value.code == "no_role"
    assert owners_of(ANN, [other]) == []


def test_an_owner_is_chosen_by_whoever_has_several() -> None:
    rules = [rule("viewer"), rule("admin", "fraud", "other")]
    assert owners_of(ANN, rules) == ["bank", "other"]
    with pytest.raises(Malformed) as refused:
        caller_of(ANN, "p", rules)
    assert refused.value.code == "owner_ambiguous"
    assert "bank, other" in refused.value.detail
    assert caller_of(ANN, "p", rules, "other").roles == ("admin",)
    with pytest.raises(Forbidden) as refused_too:
        caller_of(ANN, "p", rules, "third")
    assert refused_too.value.code == "no_role"


def test_a_change_of_another_model_is_refused() -> None:
    caller = caller_of(ANN, "p", [rule("trainer", models=("fraud-*",))])
    with acting_as(act(caller, "train")):
        check_model("fraud-eu")
        with pytest.raises(Forbidden) as refused:
            check_model("credit")
        with pytest.raises(Forbidden):
            check_all_models()
    assert refused.value.code == "model_not_allowed"
    assert "'credit'" in refused.value.detail
    check_model("credit")  # the service itself
    with acting_as(act(caller_of(ANN, "p", [rule("trainer")]), "train")):
        check_model("credit")
        check_all_models()


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_the_rules_of_a_file(tmp_path: Path) -> None:
    entries = [ENTRY, ENTRY | {"role": "approver", "models": ["fraud-*"]}]
    assert read_rules(write(tmp_path / "roles.json", entries)) == (
        Rule(ISSUER, "risk", "bank", "trainer"),
        Rule(ISSUER, "risk", "bank", "approver", ("fraud-*",)),
    )


BAD = {
    "not JSON": ("{", ["not valid JSON"]),
    "deep": ("[" * 200_000, ["not valid JSON"]),
    "an object": ({}, ["must be a list", "dict"]),
    "too many": ([ENTRY] * 10_001, ["10,000", "10,001"]),
    "too long": (" " * ((4 << 20) + 1), ["at most 4,194,304 bytes"]),
    "no object": ([ENTRY, 3], ["entry 2", "3"]),
    "an unknown field": ([ENTRY | {"grop": "x"}], ["entry 1", "'grop'"]),
    "no issuer": ([{**ENTRY, "issuer": ""}], ["issuer"]),
    "no group": ([{k: v for k, v in ENTRY.items() if k != "group"}], ["group", "nothing"]),
    "a list of groups": ([ENTRY | {"group": ["a"]}], ["group", "['a']"]),
    "no owner": ([ENTRY | {"owner": "Bank!"}], ["owner", "Bank!"]),
    "an unknown role": ([ENTRY | {"role": "root"}], ["role", "'root'", "viewer"]),
    "a role of other type": ([ENTRY | {"role": ["admin"]}], ["role"]),
    "models of an admin": ([ENTRY | {"role": "admin", "models": ["a"]}], ["models", "admin"]),
    "models of a viewer": ([ENTRY | {"role": "viewer", "models": ["a"]}], ["models", "viewer"]),
    "no models": ([ENTRY | {"models": []}], ["models", "[]"]),
    "models as text": ([ENTRY | {"models": "fraud-*"}], ["models", "fraud-*"]),
    "a number": ([ENTRY | {"models": [1]}], ["models", "[1]"]),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_cannot_be_used_stops_the_service(kind: str, tmp_path: Path) -> None:
    content, words = BAD[kind]
    file = write(tmp_path / "roles.json", content)
    with pytest.raises(BadFile) as refused:
        read_rules(file)
    assert all(word in str(refused.value) for word in [str(file), *words])
    assert len(str(refused.value)) < 1000
    with raises(ValueError, "roles_file"):
        Settings(roles_file=file)


def test_a_missing_file_stops_the_service(tmp_path: Path) -> None:
    with raises(ValueError, tmp_path / "none.json"):
        Settings(roles_file=tmp_path / "none.json")
    with raises(ValueError, tmp_path):
        Settings(roles_file=tmp_path)


def replace(file: Path, content: Any) -> None:
    """Replace a file as Kubernetes and careful editors do."""
    os.replace(write(file.with_suffix(".new"), content), file)


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.platform.json_files.CHECKED_EVERY", 0.0)
    file = write(tmp_path / "roles.json", [ENTRY])
    roles = RoleFile(file)
    assert [each.role for each in roles.content()] == ["trainer"]
    replace(file, [ENTRY | {"role": "viewer"}])
    assert [each.role for each in roles.content()] == ["viewer"]
    replace(file, [ENTRY | {"role": "root"}])
    assert [each.role for each in roles.content()] == ["viewer"]
    assert "'root'" in (roles.problem or "")
    file.unlink()
    assert [each.role for each in roles.content()] == ["viewer"]
    assert "cannot be read" in (roles.problem or "")
    write(file, [])
    assert list(roles.content()) == []
    assert roles.problem is None


def test_without_a_file_nobody_has_a_role() -> None:
    assert list(RoleFile(None).content()) == []


def test_a_key_counts_as_its_holder_and_whoever_created_it(db: Database) -> None:
    def create(name: str, by: Caller | None, holder: str | None = None) -> tuple[ApiKey, Caller]:
        return known(db.writing(keys.create, "ann", name, ["admin"], by=by, holder_id=holder))

    def known(made: tuple[ApiKey, str]) -> tuple[ApiKey, Caller]:
        found = db.reading(repository.find_caller, Credential.of("key", made[1]))
        assert found is not None
        return made[0], found

    def people(key: ApiKey) -> set[str]:
        return db.reading(repository.same_person, key.principal_id) & {
            first.principal_id,
            holder.principal_id,
            "prn_ann",
        }

    holder, _ = create("holder", None)
    first, of_first = create("first", None)
    second, of_second = create("second", of_first)
    third, _ = create("third", of_second, holder.principal_id)
    assert people(first) == people(second) == {first.principal_id}
    assert people(third) == {first.principal_id, holder.principal_id}
    own, _ = known(db.writing(keys.rotate, "ann", third.id, 0.0, of_second))
    assert (own.principal_id, own.holder_id) == (third.principal_id, holder.principal_id)
    # Who rotates the key of another person knows its new secret.
    ann = caller_of(ANN, "prn_ann", [rule("admin", owner="ann")])
    taken, _ = known(db.writing(keys.rotate, "ann", first.id, 60.0, ann))
    assert people(taken) == {first.principal_id, "prn_ann"}
    assert people(first) == {first.principal_id}
    again, _ = known(db.writing(keys.rotate, "ann", taken.id, 0.0, ann))
    assert again.principal_id == taken.principal_id


def test_no_role_concerns_all_owners(db: Database) -> None:
    """Owners without a key are not noticed by their keys."""
    here, there = rule("admin", owner="ann"), rule("viewer", owner="bob")
    person = caller_of(ANN, "prn_ann", [here])
    _, secret = db.writing(keys.create, "ann", "only", ["admin"])
    key = db.reading(repository.find_caller, Credential.of("key", secret))
    assert key is not None
    for rules in ([], [here], [here, there]):
        assert not db.reading(keys.administers_all, person, rules)
    assert db.reading(keys.administers_all, key, [])
    assert db.reading(keys.administers_all, key, [here])
    assert not db.reading(keys.administers_all, key, [here, there])
