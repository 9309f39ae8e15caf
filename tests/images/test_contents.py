"""What is in the images, and what is not."""

import json
import subprocess

import pytest

from replicator import __version__

USERS = {"own": "10001:10001", "any": "1000690000:0"}
MOST_MEGABYTES = {"worker": 360, "spark": 1600}
"""Sizes with every layer, unpacked; an image that grows past this has taken in something it should not."""


@pytest.fixture(params=["worker", "spark"])
def image(request):
    return request.param


def shell(engine, image, script, *, user="10001:10001"):
    return engine.confined(
        f"replicator/{image}:{__version__}", "-c", script, user=user, flags=("--entrypoint=sh",)
    ).stdout


def test_nothing_that_builds_is_in_it(images, image):
    tools = "gcc cc make pip pip3 /opt/replicator/bin/pip mvn javac"
    found = shell(images, image, f"command -v {tools} || true")
    assert not found
    modules = shell(
        images, image, "python -c 'import importlib.util as u; print([n for n in (\"pip\", \"setuptools\", \"hatchling\", \"cyclonedx\") if u.find_spec(n)])'"
    )  # fmt: skip
    assert modules.strip() == "[]"


def test_it_says_where_it_comes_from_and_how_big_it_is(images, image, request):
    about = images.inspect(f"replicator/{image}:{__version__}")
    labels = about["Config"]["Labels"]
    revision = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert labels["org.opencontainers.image.version"] == __version__
    assert labels["org.opencontainers.image.revision"] == revision
    assert labels["org.opencontainers.image.created"].endswith("Z")
    assert about["Config"]["User"] == "10001:10001"
    megabytes = round(about["Size"] / 1_000_000)
    request.node.user_properties.append(("megabytes", megabytes))
    assert megabytes < MOST_MEGABYTES[image]


def test_its_list_of_packages_is_what_is_installed(images, image):
    listed = json.loads(shell(images, image, "cat /opt/replicator/share/sbom.cdx.json"))
    assert listed["bomFormat"] == "CycloneDX"
    names = {each["name"].lower().replace("_", "-") for each in listed["components"]}
    installed = shell(
        images, image, "python -c 'import importlib.metadata as m; print(*sorted(d.name for d in m.distributions(path=[p for p in __import__(\"sys\").path if p.startswith(\"/opt\")])))'"
    )  # fmt: skip
    assert names == {each.lower().replace("_", "-") for each in installed.split()}
    assert {"replicator", "confluent-kafka"} <= names
    assert ("pyspark" in names) == (image == "spark")
    assert ("deltalake" in names) == (image == "spark")


@pytest.mark.parametrize("user", USERS)
def test_any_user_has_a_name_and_a_home_to_write_to(images, image, user):
    said = shell(
        images, image, "python -c 'from replicator.cli.operation.pause import operator; print(operator())' && echo x > ~/x && cat ~/x",
        user=USERS[user],
    )  # fmt: skip
    assert said.startswith("replicator@")
    assert said.splitlines()[-1] == "x"


@pytest.mark.parametrize("user", USERS)
def test_java_knows_who_runs_it(images, user):
    """Hadoop needs the user's name, and Ivy, which fetches jars of S3, a home."""
    properties = shell(
        images, "spark",
        # What the entry point does before the program, and Java instead of the program.
        "sed 's/replicator \"$@\"/java -XshowSettings:properties -version/' /opt/replicator/bin/spark-entrypoint > /tmp/entry && sh /tmp/entry 2>&1",
        user=USERS[user],
    )  # fmt: skip
    assert "user.name = replicator" in properties
    assert "user.home = /tmp" in properties
