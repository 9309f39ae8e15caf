"""Flows between secured clusters through a whole worker: every way to log in, and what is told when
it fails. A secret shows up nowhere but in the file the user keeps it in.
"""

import pytest
from lane_lab import LaneLab

from replicator.identifiers import lane_transactional_id
from replicator.testing import LocalCluster, SecuritySetup, start_all

SECRET = "s3cret-of-tests"
OTHER_SECRET = "an0ther-of-tests"
USERS = {"admin": "admin-pass-of-tests", "replicator": SECRET}
FLOW = "east->west"


def sasl(mechanism: str, *, tls: bool = False, authorizer: bool = False) -> SecuritySetup:
    return SecuritySetup.sasl(mechanism, tls=tls, users=USERS, authorizer=authorizer)


def boot(source: SecuritySetup | None, target: SecuritySetup | None):
    pair = (LocalCluster("east", security=source), LocalCluster("west", security=target))
    start_all(pair)
    return pair


@pytest.mark.parametrize("engine", ["records", pytest.param("batches", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(SecuritySetup.tls(), SecuritySetup.mutual_tls(), id="TLS to mutual TLS"),
        pytest.param(sasl("PLAIN"), sasl("SCRAM-SHA-256"), id="PLAIN to SCRAM-256"),
        pytest.param(
            sasl("SCRAM-SHA-512", tls=True), sasl("PLAIN", tls=True), id="SCRAM-512 to PLAIN, TLS"
        ),
    ],
)
def test_a_flow_runs_between_secured_clusters_and_shows_no_secret(worker, source, target, engine):
    east, west = boot(source, target)
    try:
        lab = LaneLab(east, west, name=worker.name)
        topic = lab.topic(on_target=False)
        lab.numbered(topic, range(100))
        for cluster in (east, west):
            named = cluster.name == "west" or source.users
            worker.cluster(cluster, user="replicator" if named else None)
        worker.link("secured", "east", "west", [topic], engine=engine)
        worker.start()
        worker.until(
            lambda: worker.url() and len(_values(lab, topic)) == 100, "the records on the target"
        )

        assert _values(lab, topic) == [b"%d" % n for n in range(100)]
        assert worker.secrets_shown(SECRET, "admin-pass-of-tests", "PRIVATE KEY") == []
    finally:
        for cluster in (east, west):
            cluster.stop()


def test_a_password_is_changed_in_place_and_the_flow_goes_on(worker):
    east, west = boot(sasl("SCRAM-SHA-256"), sasl("SCRAM-SHA-512"))
    try:
        lab = LaneLab(east, west, name=worker.name)
        topic = lab.topic(on_target=False)
        lab.numbered(topic, range(10))
        for cluster in (east, west):
            worker.cluster(cluster, user="replicator")
        worker.link("secured", "east", "west", [topic])
        worker.start()
        worker.until(lambda: len(_values(lab, topic)) == 10, "the first records")
        for cluster in (east, west):
            cluster.rotate_password("replicator", OTHER_SECRET)
        for cluster in (east, west):
            cluster.restart()  # no connection of before outlives this
        lab.numbered(topic, range(10, 20))
        worker.until(lambda: len(_values(lab, topic)) == 20, "the records after the change")

        assert _values(lab, topic) == [b"%d" % n for n in range(20)]
        assert worker.secrets_shown(SECRET, OTHER_SECRET) == []
    finally:
        for cluster in (east, west):
            cluster.stop()


@pytest.mark.slow
def test_a_wrong_password_and_missing_rights_are_named_with_a_remedy_and_hurt_no_other_flow(
    worker, central
):
    east, west = boot(None, sasl("SCRAM-SHA-256", authorizer=True))
    try:
        lab = LaneLab(east, west, name=worker.name)
        topic = lab.topic(on_target=False)
        lab.numbered(topic, range(10))
        worker.cluster(east)
        worker.cluster(west, user="replicator")
        worker.cluster(central)
        worker.link("refused", "east", "west", [topic])
        worker.link("fine", "east", "central", [topic])
        worker.start()
        elsewhere = LaneLab(east, central, name=worker.name)
        worker.until(lambda: len(_values(elsewhere, topic)) == 10, "the other flow's records")
        found = worker.until(lambda: worker.problems(FLOW).get("NOT_AUTHORIZED"), "the problem")
        assert found["remedy"]

        for resource, name in (("cluster", "kafka-cluster"), ("group", "*"), ("topic", "*")):
            west.allow("replicator", ["ALL"], resource=resource, name=name)

        def lacks_transactional_id() -> bool:
            found = worker.problems(FLOW).get("NOT_AUTHORIZED", {"detail": "", "remedy": ""})
            return "transactional" in (found["detail"] + found["remedy"]).lower()

        worker.until(lacks_transactional_id, "the missing right to the transactional id")
        west.allow(
            "replicator", ["ALL"], resource="transactional-id",
            name=lane_transactional_id(worker.name, "east", "west", 0).rpartition(".")[0],
            prefixed=True,
        )  # fmt: skip
        worker.until(lambda: len(_values(lab, topic)) == 10, "the records, once it may")
        worker.until(lambda: not worker.problems(FLOW), "the problems to go")

        west.add_user("replicator", OTHER_SECRET)
        worker.stop()
        worker.clusters["west"]["security"]["password"] = {"file": str(_wrong(worker))}
        worker.start()
        found = worker.until(
            lambda: worker.problems(FLOW).get("AUTHENTICATION_FAILED"), "the wrong password"
        )
        assert found["remedy"]
        lab.numbered(topic, range(10, 20))
        worker.until(lambda: len(_values(elsewhere, topic)) == 20, "the other flow's records")
        assert worker.secrets_shown(SECRET, OTHER_SECRET, "not-the-password") == []
    finally:
        for cluster in (east, west):
            cluster.stop()


def _wrong(worker):
    path = worker.file.with_name("wrong")
    path.write_text("not-the-password")
    return path


def _values(lab: LaneLab, topic: str) -> list[bytes | None]:
    """What is on the target, read behind its security; nothing before the topic exists."""
    from confluent_kafka.admin import AdminClient

    admin: AdminClient = lab.target.admin()
    if topic not in admin.list_topics(timeout=20).topics:
        return []
    return [seen.value for seen in lab.read(lab.target, topic)]
