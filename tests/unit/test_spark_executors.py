"""What executors report is judged by name, and what ``--ship`` packs is what tasks import."""

import base64
import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import replicator
from replicator.cli.spark.spark_options import spark_settings
from replicator.errors import InputError
from replicator.spark.base.java_errors import spark_job_error
from replicator.spark.session.executors import problems, report
from replicator.spark.session.shipping import NEEDED, SITE, closure, pack_site
from replicator.topology.plan import AWS_SIGNER, ClusterPlan, SecurityPlan

HERE = report(NEEDED, ())


def test_an_executor_like_the_driver_has_no_problem():
    assert problems(HERE, [HERE, replace(HERE, place="b:/w", host="b")], NEEDED) == ()


def test_what_is_missing_or_other_is_named_once_with_its_hosts():
    old = dict(HERE.versions) | {"pyarrow": "17.1.0"}
    del old["orjson"]
    wrong = [
        replace(HERE, host=host, python="3.9", versions=tuple(old.items())) for host in ("a", "b")
    ]
    ours = dict(HERE.versions)["pyarrow"]
    assert problems(HERE, [*wrong, HERE], NEEDED) == (
        f"Python 3.9 instead of {HERE.python} (on a, b)",
        "no orjson (on a, b)",
        f"pyarrow 17.1.0 instead of {ours} (on a, b)",
    )


def test_another_patch_release_is_no_problem():
    patched = {name: ".".join((*v.split(".")[:2], "99")) for name, v in HERE.versions}
    assert problems(HERE, [replace(HERE, versions=tuple(patched.items()))], NEEDED) == ()


def test_a_user_module_that_cannot_be_imported_is_named():
    (text,) = problems(HERE, [report(NEEDED, ["no_such_masks"])], NEEDED)
    assert text.startswith("no_such_masks cannot be imported (ModuleNotFoundError")


@pytest.mark.slow
def test_the_shipped_archive_holds_all_that_tasks_import(tmp_path, monkeypatch):
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "__init__.py").write_text("")
    (tmp_path / "house" / "masks.py").write_text("RULES = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    archive = pack_site(tmp_path, ["house.masks"])
    site = tmp_path / SITE
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(site)
    assert (site / "house" / "masks.py").exists()
    import pyspark

    import replicator

    tasks = (
        "replicator.spark.bulk.run", "replicator.spark.stream.copy_source",
        "replicator.spark.source.data_source", "replicator.spark.sink.write_task",
        "replicator.spark.restore.run", "replicator.spark.compare.both_sides",
        "replicator.batches", "replicator.wire", "replicator.logins", "cramjam", "house.masks",
    )  # fmt: skip
    # As an executor has it: Spark's own packages, ours, and the archive; nothing that is installed.
    lines = [
        f"import sys, importlib; sys.path[:0] = [{str(site)!r}, {str(tmp_path / 'own')!r}]",
        *(f"importlib.import_module({name!r})" for name in tasks),
    ]
    own = tmp_path / "own"
    own.mkdir()
    for package in (pyspark, replicator):
        (own / package.__name__).symlink_to(package.__path__[0])
    import py4j

    (own / "py4j").symlink_to(py4j.__path__[0])
    done = subprocess.run(
        [sys._base_executable, "-I", "-S", "-c", "\n".join(lines)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_transform_that_is_not_here_cannot_be_shipped(tmp_path):
    with pytest.raises(InputError, match="no_such_masks"):
        pack_site(tmp_path, ["no_such_masks"])


def cluster(mechanism):
    return ClusterPlan(
        "east", ("a:1",), SecurityPlan("SASL_SSL", mechanism, aws_region="eu-west-1")
    )


def test_where_tasks_sign_for_aws_its_signer_is_asked_for_and_shipped():
    signed, other = cluster("AWS_MSK_IAM"), cluster("SCRAM-SHA-512")
    assert spark_settings(None, None, None, clusters=(other, signed)).modules == (AWS_SIGNER,)
    assert spark_settings(None, None, None, clusters=(other,)).modules == ()


@pytest.mark.slow
def test_with_what_is_shipped_a_task_signs_for_aws(tmp_path):
    site = tmp_path / SITE
    with zipfile.ZipFile(pack_site(tmp_path, [AWS_SIGNER])) as packed:
        packed.extractall(site)
    own = tmp_path / "own"
    own.mkdir()
    (own / "replicator").symlink_to(Path(replicator.__file__).parent)
    code = f"""
import sys; sys.path[:0] = [{str(site)!r}, {str(own)!r}]
import pickle
from replicator.logins.fetch_token import fetch_token
print(fetch_token(pickle.loads({pickle.dumps(cluster("AWS_MSK_IAM"))!r})).value)
"""
    done = subprocess.run(
        [sys._base_executable, "-I", "-S", "-c", code],
        capture_output=True, text=True, check=False,
        env={"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    padded = done.stdout.strip() + "=" * (-len(done.stdout.strip()) % 4)
    assert b"eu-west-1" in base64.urlsafe_b64decode(padded)


def test_spark_itself_is_never_shipped():
    assert not {"pyspark", "py4j", "replicator"} & set(closure([*NEEDED, "pyspark", "replicator"]))


def test_another_release_of_spark_is_named():
    text = "Caused by: java.io.InvalidClassException: org.apache.spark.rdd.RDD; local class incompatible"
    error = spark_job_error(text)
    assert "another release of Spark" in error.message
