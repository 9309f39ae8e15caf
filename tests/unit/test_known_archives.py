"""What an archive lacks is known before Spark starts, in a folder and in an object store alike."""

import time

import pytest
from played_s3 import played_s3
from topology_files import active_passive, write_topology

from replicator.cli.main import run_command
from replicator.errors import InputError
from replicator.spark.archive_files.local import known_archive
from replicator.spark.archive_files.manifest import (
    ArchivedRange,
    ArchivedTopic,
    Commit,
    manifest_name,
)

MADE = Commit(
    1, "append", 0, "east", "id", (ArchivedRange("orders", 0, 0, 1, 1),),
    topics=(ArchivedTopic("orders", "id", 1, {}),),
)  # fmt: skip
OBJECTS = {f"history/shop/_manifest/{manifest_name(1)}": MADE.to_json().encode()}


def settings(endpoint):
    return {
        "spark.hadoop.fs.s3a.endpoint": f"http://{endpoint}",
        "spark.hadoop.fs.s3a.access.key": "key",
        "spark.hadoop.fs.s3a.secret.key": "secret",
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
    }


def test_an_archive_in_an_object_store_is_read_without_spark():
    with played_s3(OBJECTS) as endpoint:
        found = known_archive("s3a://history/shop", settings(endpoint))
        assert found is not None
        assert list(found.topics) == ["orders"]
        with pytest.raises(InputError, match="no archive here"):
            known_archive("s3a://history/shoq/", settings(endpoint))


def test_a_store_that_does_not_answer_is_left_to_spark():
    began = time.monotonic()
    assert known_archive("s3a://history/shop", settings("127.0.0.1:9")) is None
    assert known_archive("hdfs://somewhere/shop", {}) is None
    assert time.monotonic() - began < 10


def test_a_restore_names_what_the_store_lacks_before_spark_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # with it Spark cannot start
    clusters = {
        alias: {"bootstrapServers": [f"{alias}.invalid:9092"]} for alias in ("east", "west")
    }
    file = write_topology(tmp_path / "t.yaml", "shop", clusters, [active_passive(["orders"])])
    with played_s3(OBJECTS) as endpoint:
        conf = [part for pair in settings(endpoint).items() for part in ("--conf", "=".join(pair))]
        base = ["restore", "-f", str(file), "--cluster", "west", *conf, "--archive"]
        assert run_command([*base, "s3a://history/nothing"]) == 2
        assert "there is no archive here" in capsys.readouterr().err
        assert run_command([*base, "s3a://history/shop", "--topic", "nope"]) == 2
        assert "the archive has no topic nope" in capsys.readouterr().err
