"""The documented recipes for object stores, with exactly the packages that they name."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from copied_pair import CopiedPair, plain, write
from played_s3 import played_s3

from replicator.spark.archive_files.manifest import FOLDER

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spark.md"


def packages(store):
    """What the recipe of a store names, as the page has it."""
    (row,) = re.findall(rf"^\| {store} \|.*$", PAGE.read_text(), re.MULTILINE)
    (found,) = re.findall(r"spark\.jars\.packages=([\w.:,-]+)", row)
    return found


def command(*arguments, conf=(), env=None):
    """Runs a command in a process of its own; its exit code and what it said."""
    options = [part for name, value in dict(conf).items() for part in ("--conf", f"{name}={value}")]
    ran = subprocess.run(
        [sys.executable, "-m", "replicator", *map(str, arguments), *options],
        capture_output=True, text=True, timeout=400, check=False, env={**os.environ, **(env or {})},
    )  # fmt: skip
    return ran.returncode, ran.stdout + ran.stderr


def run_with(store, *arguments, conf=(), env=None):
    """The same with a store's packages; skipped where Maven does not give them."""
    code, said = command(
        *arguments, "--master", "local[2]",
        conf={"spark.jars.packages": packages(store), **dict(conf)}, env=env,
    )  # fmt: skip
    if "packages of spark.jars.packages cannot be fetched" in said:
        pytest.skip(f"{packages(store)} cannot be resolved here")
    return code, said


@pytest.mark.timeout(900)
def test_spark_writes_an_archive_to_s3_and_a_cluster_is_restored_from_it(
    tmp_path, east, west, unique
):
    pair = CopiedPair(tmp_path, unique, east, west)
    pair.apply(partitions=2)
    write(east, pair.topic, plain(400), 0)
    write(east, pair.topic, plain(200), 1)
    objects = {}
    with played_s3(objects) as endpoint:
        conf = {
            "spark.hadoop.fs.s3a.endpoint": f"http://{endpoint}",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        }
        env = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        place = ("--archive", "s3a://history/shop", "-f", pair.file)
        archive = ("archive", "--cluster", "east", "--topic", pair.topic, *place)
        code, said = run_with("MinIO", *archive, conf=conf, env=env)
        assert code == 0, said
        assert "Archived 600 records" in said
        kept = [name for name in objects if name.startswith("history/shop/data/")]
        files = [name for name in kept if not name.endswith("/")]  # the rest stand for folders
        assert files
        assert all(name.endswith(".parquet") for name in files), sorted(objects)
        assert any(name.startswith(f"history/shop/{FOLDER}/") for name in objects)
        code, said = run_with("MinIO", "restore", "--cluster", "west", *place, conf=conf, env=env)
        assert code == 0, said
        assert "600 records" in said
    for partition, count in enumerate((400, 200)):  # as the lanes would go on behind the archive
        ends = ((0, 0), (count - 1, count - 1))
        pair.checkpoint(copied_to=count, partition=partition, pairs=ends)
    code, said = command("verify", "-f", pair.file, "--flow", "east->west", "--master", "local[2]")
    assert code == 0, said
    assert "verify east->west: 600 records" in said


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("store", "url", "setting", "named"),
    [
        (
            "GCS",
            "gs://history/shop",
            "fs.gs.auth.type=APPLICATION_DEFAULT",
            "there are no credentials for the object store (IOException: Your default credentials were not found",
        ),
        (
            "Azure",
            "abfss://history@nowhere.dfs.core.windows.net/shop",
            "fs.azure.account.key.nowhere.dfs.core.windows.net=a2V5",
            "nowhere.dfs.core.windows.net",
        ),
    ],
)
def test_the_other_recipes_start_and_fail_at_the_store_with_one_sentence(
    copied_topic, store, url, setting, named
):
    name, _, value = setting.partition("=")
    began = time.monotonic()
    code, said = run_with(
        store, "archive", "--cluster", "east", "--topic", copied_topic.topic, "--archive", url,
        "-f", copied_topic.file, conf={f"spark.hadoop.{name}": value},
    )  # fmt: skip
    assert code == 1, said
    assert time.monotonic() - began < 150, "with the packages fetched and Spark started"
    assert "Traceback" not in said
    assert named in said
    assert len(said.strip().splitlines()) <= 3, said


@pytest.fixture
def copied_topic(tmp_path, east, west, unique):
    pair = CopiedPair(tmp_path, unique, east, west)
    east.create_topic(pair.topic)
    write(east, pair.topic, plain(5), 0)
    return pair
