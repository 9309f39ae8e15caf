"""The packages that the documentation names fit the Spark that is installed."""

import re
import zipfile
from pathlib import Path

import pyspark

DOCS = Path(__file__).resolve().parents[2] / "docs" / "spark.md"
JARS = Path(pyspark.__file__).parent / "jars"


def test_the_packages_for_object_stores_are_of_the_release_of_sparks_hadoop():
    (jar,) = JARS.glob("hadoop-client-api-*.jar")
    release = jar.stem.removeprefix("hadoop-client-api-")
    named = dict(re.findall(r"org\.apache\.hadoop:(hadoop-[a-z]+):([\d.]+\d)", DOCS.read_text()))
    assert {"hadoop-aws", "hadoop-azure", "hadoop-gcp"} == named.keys()
    assert set(named.values()) == {release}


def test_the_file_systems_of_the_recipes_are_those_that_sparks_hadoop_looks_for():
    """Of other connectors for `gs://` it does not know the class."""
    (jar,) = JARS.glob("hadoop-client-api-*.jar")
    defaults = zipfile.ZipFile(jar).read("core-default.xml").decode()
    for scheme, package in (("s3a", "s3a"), ("gs", "gs"), ("abfss", "azurebfs")):
        found = re.search(rf"<name>fs\.{scheme}\.impl</name>\s*<value>([\w.]+)<", defaults)
        assert found is not None
        assert found.group(1).startswith(f"org.apache.hadoop.fs.{package}.")
