"""The documented rights of those who look, pause and change roles: a missing one is named."""

import json

import pytest
from documented_rights import TOPICS, left_without, needs_of, rights_of
from limited_users import LimitedUsers, run, setup_users, user_names
from producing import produce
from role_changes import LINK

from replicator.testing import SecuritySetup, commit_positions, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

LOOKING, PAUSING, CHANGING = needs_of("looking"), needs_of("pausing"), needs_of("role changes")
NAMES = {who: user_names(who, needs_of(who)) for who in ("looking", "pausing", "role changes")}
USERS = setup_users(*NAMES.values(), ["ann", "blind"])
FLOW = "east->west"
LATER = {"DESCRIBE_CONFIGS"}
"""Only asked for where topics differ."""

COPYING = {"WRITE", "ALTER", "ALTER_CONFIGS"}
"""What `plan` says that one who only looks may not do."""


@pytest.fixture
def users(clusters, scene):
    """A flow that a worker copies, with a group and records, under an administrator's login."""
    setup = SecuritySetup.sasl("PLAIN", users=USERS, authorizer=True)
    scene.east, scene.west = clusters("east", "west", security=setup)
    fencing = {"method": "acl", "principals": ["User:ann"]}
    scene.active_passive(scene.east, scene.west, fencing=fencing)
    scene.worker()
    write(scene.east, scene.topic, 8)
    commit_positions(scene.east, "billing", {(scene.topic, 0): 1})
    wait_until(lambda: scene.lag() == 0, timeout_seconds=60, describe="the records to be copied")
    both = {"east": scene.east, "west": scene.west}
    return LimitedUsers(both, scene.directory, scene.topology(), scene.name, scene.topic)


def write(cluster, topic, count):
    records = ({"value": b"%d" % number, "partition": number % 4} for number in range(count))
    produce(cluster, topic, records, as_admin=True)


def looks(topic):
    """Every command that only looks."""
    place = ["--topic", topic, "--partition", "0", "--offset", "1"]
    return [
        ["status"], ["topics"], ["groups"], ["gaps"], ["plan"], ["history"], ["quarantine", "list"],
        ["offsets", "translate", "--flow", FLOW, *place],
        ["offsets", "trace", "--cluster", "west", *place],
    ]  # fmt: skip


def test_who_looks_reads_everything_and_a_missing_right_is_named(scene, users):
    first, *others = NAMES["looking"]
    file = users.granted(first, rights_of(LOOKING))
    for command in looks(scene.topic):
        ran = run(*command, "-f", file, "-o", "json")
        assert ran.code == 0, ran.said
        if command == ["plan"]:
            said = [each["detail"] for each in json.loads(ran.said)["problems"]]
            lacking = {word.strip(",") for each in said for word in each.split() if word.isupper()}
            assert lacking <= COPYING, said
        else:
            assert "our user" not in ran.said, ran.said
    named = {}
    for user, need in zip(others, LOOKING, strict=True):
        file = users.granted(user, left_without(rights_of(LOOKING), need.rights))
        told = {
            " ".join(command[:2]) for command in looks(scene.topic)
            if users.names(run(*command, "-f", file, "-o", "json").said, need)
        }  # fmt: skip
        named[need] = told - {"plan"} or told
    assert all(named.values()), named
    hidden = [right for right in rights_of(LOOKING) if right.name != TOPICS]
    ran = run("status", "-f", users.granted("blind", hidden), "-o", "json")
    assert "NOT_AUTHORIZED" in ran.said, "lag is not known, and why"
    assert "history" in named[LOOKING[2]], "a control topic that cannot be read is no empty history"


def test_who_pauses_needs_the_control_topics_alone(users):
    first, *others = NAMES["pausing"]
    for user, need in zip(others, PAUSING, strict=True):
        file = users.granted(user, left_without(rights_of(PAUSING), need.rights))
        ran = run("pause", "--flow", FLOW, "-f", file)
        assert ran.code != 0, need
        assert users.names(ran.said, need), ran.said
    file = users.granted(first, rights_of(PAUSING))
    for command in ("pause", "resume"):
        ran = run(command, "--flow", FLOW, "-f", file)
        assert ran.code == 0, ran.said
        assert "Nothing" not in ran.said


def test_a_role_change_without_a_right_of_our_own_stops_before_the_fence_and_names_it(users):
    """Rights on topics, ids and the cluster that a first change needs; what it began is rolled back."""
    first, *others = NAMES["role changes"]
    whole = users.granted(first, rights_of(CHANGING))
    begun = ["switchover", "--link", LINK, "--to", "west", "--drain-timeout", "10", "--yes", "-f"]
    asked = [
        (user, need) for user, need in zip(others, CHANGING, strict=True)
        if min(need.rights).name != TOPICS and min(need.rights).resource != "group"
        and min(need.rights).operation not in LATER
    ]  # fmt: skip
    unnamed = {}
    for user, need in sorted(asked, key=lambda each: min(each[1].rights).operation == "CREATE"):
        ran = run(*begun, users.granted(user, left_without(rights_of(CHANGING), need.rights)))
        if ran.code == 0 or not users.names(ran.said, need) or "fence ..." in ran.said:
            unnamed[str(need)] = ran
        if "still open" in ran.said:
            run("switchover", "--link", LINK, "--rollback", "--yes", "-f", whole)
    assert len(asked) == 5
    assert unnamed == {}
