"""What `plan` says of history that is still to be copied."""

from replicator.cli.file.plan import spark_text


def test_spark_is_named_only_where_its_start_is_shorter_than_what_it_saves():
    assert spark_text(12) == "Spark would not pay off: its start takes longer than it saves."
    said = spark_text(3_600)
    assert said.startswith("On Spark, with 4 times the workers' cores and no throttle: 15 min;")
    assert said.endswith("on the same cores it never pays off.")
