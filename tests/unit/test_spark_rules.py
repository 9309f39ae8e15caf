"""Pure rules of the Spark room: ranges, settings, errors on their way out, what is compared."""

import subprocess
import sys
from dataclasses import replace

import pytest

from replicator.errors import InputError, NotFoundError
from replicator.offsets.index.runs import Pair
from replicator.policy.copies.provenance import Arrivals, parse_hops
from replicator.policy.values import LinkPolicy, Selection
from replicator.spark.archive.rounds import first_part, up_to
from replicator.spark.base.amounts import (
    Amount,
    closing_line,
    kafka_amount,
    progress_line,
    size_text,
)
from replicator.spark.base.failures import TaskError, as_replicator_error, task_errors
from replicator.spark.base.java_errors import errors_in_log
from replicator.spark.base.ranges import Range, packed, parse_offsets, ranges_between, split
from replicator.spark.compare.cases import CaseFacts, Rules, Side, belongs, make_case
from replicator.spark.compare.digests import content_digest, without_last_hop
from replicator.spark.compare.facts import foreign_records_allowed
from replicator.spark.compare.fingerprint import TargetFingerprints
from replicator.spark.session.java import SparkUnavailableError, require_java
from replicator.spark.session.settings import SparkSettings, parse_conf, spark_conf
from replicator.spark.source.scan import Scanned
from replicator.spark.source.stream_limits import limited
from replicator.spark.verify.details import differing_fields
from replicator.topology.plan import FlowPlan, LinkPlan, Plan


def test_small_ranges_share_a_task_and_large_ones_do_not():
    ranges = [Range("t", number, 0, size) for number, size in enumerate((500, 10, 20, 30, 0))]
    tasks = packed(ranges, most=50)
    assert [sum(one.size for one in task) for task in tasks] == [500, 30, 30]
    assert {one for task in tasks for one in task} == set(ranges)


def test_split_ranges_cover_the_same_offsets():
    parts = split([Range("t", 0, 5, 26)], 10)
    assert [(part.start, part.end) for part in parts] == [(5, 15), (15, 25), (25, 26)]


def test_empty_and_unknown_partitions_make_no_range():
    starts = {("t", 0): 5, ("t", 1): 5, ("t", 2): 0}
    ends = {("t", 0): 5, ("t", 1): 7}
    assert ranges_between(starts, ends) == [Range("t", 1, 5, 7)]


@pytest.mark.parametrize("text", ["x", "[]", '{"t": 3}', '{"t": {"a": 1}}', '{"t": {"0": "x"}}'])
def test_offsets_of_another_form_are_refused(text):
    with pytest.raises(InputError):
        parse_offsets(text, option="startingOffsets")


def test_a_limited_micro_batch_starves_no_partition():
    ends = limited({("t", 0): 0, ("t", 1): 10}, {("t", 0): 1_000_000, ("t", 1): 11}, 100)
    assert ends[("t", 1)] == 11
    assert 0 < ends[("t", 0)] <= 101


def test_settings_win_in_their_order(tmp_path):
    file = tmp_path / "spark.properties"
    file.write_text(
        "spark.master spark://far:7077\nspark.driver.memory=3g\nspark.ui.enabled true\n"
    )
    conf = spark_conf(SparkSettings(conf=(("spark.ui.enabled", "false"),), properties_file=file))
    assert conf["spark.master"] == "spark://far:7077"
    assert conf["spark.driver.memory"] == "3g"
    assert conf["spark.ui.enabled"] == "false"
    assert "spark.driver.host" not in conf
    assert spark_conf(SparkSettings(master="local[2]"))["spark.master"] == "local[2,4]"
    assert conf["spark.speculation"] == "false"


def test_what_the_installation_says_wins_over_our_defaults_only(tmp_path, monkeypatch):
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.master yarn\nspark.driver.memory 6g\nspark.eventLog.dir file:/logs\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    conf = spark_conf(SparkSettings())
    assert (conf["spark.master"], conf["spark.driver.memory"]) == ("yarn", "6g")
    assert conf["spark.eventLog.enabled"] == "true"
    assert "spark.ui.enabled" not in conf  # on, as Spark has it, where a cluster runs
    told = spark_conf(SparkSettings(master="local[2]", conf=(("spark.driver.memory", "2g"),)))
    assert (told["spark.master"], told["spark.driver.memory"]) == ("local[2,4]", "2g")
    assert told["spark.ui.enabled"] == "false"


def test_a_setting_of_another_form_is_named():
    with pytest.raises(InputError, match="'memory'"):
        parse_conf(["spark.a=b=c", "memory=3"])
    assert parse_conf(["spark.a=b=c"]) == (("spark.a", "b=c"),)


def test_a_missing_java_is_named_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError) as raised:
        require_java()
    assert "apt install openjdk-17" in raised.value.paragraph()


def test_a_java_that_is_too_old_is_named(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match="is 11"):
        require_java()


def test_an_error_of_a_task_arrives_as_it_was_raised():
    error = NotFoundError("no 'x' {here}", subject="cluster:east", remedy="Make it.")
    with pytest.raises(TaskError) as raised, task_errors():
        raise error
    text = f"Job aborted:\n Traceback\n  replicator.TaskError: {raised.value}\n at java.lang"
    found = as_replicator_error(text)
    assert found.paragraph() == error.paragraph()
    assert found.code == "NOT_FOUND"
    assert (
        "ZeroDivisionError: by zero"
        in as_replicator_error("x\nZeroDivisionError: by zero\n\tat").message
    )


def test_help_and_the_package_need_no_spark():
    code = (
        "import sys; sys.modules['pyspark'] = None; sys.modules['pyarrow'] = None\n"
        "from replicator.cli.main import build_app; build_app()\n"
        "assert not [name for name in sys.modules if name.startswith('replicator.spark')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


FACTS = CaseFacts(
    topic="t",
    target_topic="t",
    partition=0,
    source=Side(0, 100),
    target=Side(0, 120),
    rules=Rules("east", "west", "full", ("west",), Arrivals(), (), ()),
    copied_to=80,
)


def test_the_cut_is_the_checkpoint():
    case = make_case(0, FACTS)
    assert (case.mode, case.source_from, case.cut, case.source_to) == ("origin", 0, 80, 80)
    assert (case.target_from, case.target_to) == (0, 120)


def test_a_partition_that_was_never_copied_has_nothing_to_compare():
    case = make_case(0, replace(FACTS, copied_to=None))
    assert case.source_from == case.cut


def test_what_retention_took_from_the_target_is_not_judged():
    facts = replace(FACTS, target=Side(30, 120), oldest_copy=25)
    assert make_case(0, facts).source_from == 25
    assert make_case(0, replace(facts, oldest_copy=None)).source_from == 80


def test_what_the_targets_retention_cannot_have_deleted_is_judged():
    facts = replace(
        FACTS, target=Side(30, 120), oldest_copy=25, kept_from=10, expired_before_ms=1_000
    )
    case = make_case(0, facts)
    assert (case.source_from, case.head_to) == (10, 25)
    assert [case.expired(offset, at) for offset, at in ((20, 999), (20, 1_000), (25, 999))] == [
        True, False, False,
    ]  # fmt: skip
    assert case.outside() == {"lag": 20, "targetRetention": 10}
    nothing_left = make_case(0, replace(facts, oldest_copy=None))
    assert (nothing_left.source_from, nothing_left.head_to) == (10, 80)
    by_size = make_case(0, replace(facts, kept_from=None, expired_before_ms=None))
    assert by_size.source_from == 25


def test_offsets_outside_the_comparison_are_counted_by_their_reason():
    facts = replace(FACTS, source=Side(40, 100), oldest_copy=10)
    assert make_case(0, facts).outside() == {"lag": 20, "sourceRetention": 30}
    later = replace(FACTS, from_earliest=False, pairs=(Pair(40, 0),))
    assert make_case(0, later).outside() == {"lag": 20, "startFrom": 40}
    assert make_case(0, replace(facts, start_is_log=False)).outside() == {"lag": 20}


def test_the_fields_that_differ_are_named():
    header = {"key": "a", "value": b"1"}
    record = {"key": b"k", "value": b"v", "headers": [header], "timestamp": 5}
    hops = {"key": "replicator-hops", "value": b"east/t/0/1"}
    copy = {**record, "headers": [header, hops]}
    assert differing_fields(record, copy, timed=True) == ()
    other = {**copy, "value": None, "timestamp": 6}
    assert differing_fields(record, other, timed=True) == ("value", "timestamp")
    assert differing_fields(record, other, timed=False) == ("value",)


JAVA_ERRORS = {
    ": org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file "
    "file:///a/b.parquet.  SQLSTATE: KD001\n\tat x\nCaused by: java.lang.RuntimeException: "
    "it is not a Parquet file": "file:///a/b.parquet: the file cannot be read (RuntimeException: it is "
    "not a Parquet file). It is damaged: bring it back from a copy.",
    ": java.io.IOException: Mkdirs failed to create file:/proc/d/_temporary/0/x (exists=false)": (
        "file:/proc/d: the folder cannot be written. Name another folder, or permit this user to "
        "write there."
    ),
    ": org.apache.hadoop.fs.ParentNotDirectoryException: Parent path is not a directory: /etc/x": (
        "/etc/x: the folder cannot be written. Name another folder, or permit this user to write "
        "there."
    ),
    ": java.io.FileNotFoundException: /data/x/y (Permission denied)": (
        "/data/x/y: the folder cannot be written. Name another folder, or permit this user to write "
        "there."
    ),
    ": org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to "
    "file:/d. SQLSTATE: 58030\nCaused by: java.io.IOException: No space left on device": (
        "file:/d: no space is left on the disk. Free space there or name another folder; Spark's own "
        "files go to spark.local.dir."
    ),
    "Traceback\nModuleNotFoundError: No module named 'confluent_kafka'\n\tat org": (
        "the Python of Spark's tasks has no package 'confluent_kafka'. Install it where tasks run "
        "(docs/spark.md lists what they need), or name another Python with --conf "
        "spark.pyspark.python=PATH."
    ),
    ": java.io.IOException: Your default credentials were not found. To set up": (
        "there are no credentials for the object store (IOException: Your default credentials were not found. To set up). "
        "Name them as docs/spark.md says for this store ('In object stores')."
    ),
    ": java.nio.file.AccessDeniedException: s3a://h/x: getFileStatus on s3a://h/x: "
    "S3Exception: Forbidden (Service: S3, Status Code: 403, Request ID: 1)": (
        "the object store refuses our credentials (AccessDeniedException: s3a://h/x: getFileStatus on s3a://h/x: "
        "S3Exception: Forbidden (Service: S3, Status Code: 403, Request ID: 1)). Check them and what "
        "they permit: reading, writing, listing and deleting."
    ),
    ": java.net.UnknownHostException: nowhere.dfs.core.windows.net\n\tat x": (
        "there is no host 'nowhere.dfs.core.windows.net'. Check the name of the store, account or "
        "cluster, and that this machine can look it up."
    ),
    ": org.apache.spark.SparkException: Job 37 cancelled because SparkContext was shut down\n\tat x": (
        "Spark ended while a job ran, as it does where its driver has no memory left. Give it more with --conf "
        "spark.driver.memory=4g (or spark.executor.memory on a cluster)."
    ),
    "An error occurred while calling o1.x.\n: java.lang.A: outer\n\tat y\nCaused by: java.lang.B: in": (
        "a Spark job failed: B: in. Run it again with --debug for the details."
    ),
}


@pytest.mark.parametrize("text", JAVA_ERRORS)
def test_the_cause_of_a_java_error_is_one_sentence_with_a_remedy(text):
    assert as_replicator_error(text).paragraph() == JAVA_ERRORS[text]


def test_a_flow_that_began_later_is_judged_from_its_first_record():
    facts = replace(FACTS, from_earliest=False, pairs=(Pair(40, 0), Pair(60, 20)))
    assert make_case(0, facts).source_from == 40


def test_without_places_and_with_moving_lanes_the_newest_entry_of_the_map_is_the_cut():
    rules = replace(FACTS.rules, provenance="path")
    facts = replace(FACTS, rules=rules, pairs=(Pair(0, 0), Pair(60, 66)), quiet=False)
    case = make_case(0, facts)
    assert (case.mode, case.cut, case.target_to) == ("content", 61, 67)
    assert make_case(0, replace(facts, quiet=True)).cut == 80


def test_compacted_logs_are_read_to_their_end():
    case = make_case(0, replace(FACTS, source=Side(0, 100, compacted=True)))
    assert (case.mode, case.cut, case.source_to) == ("latest", 80, 100)


def test_hops_before_the_last_one_stay_and_foreign_headers_too():
    hops = ("replicator-hops", b"north/t/0/5 east/t/0/7")
    foreign = ("replicator-hops", b"\xff")
    kept, last = without_last_hop([foreign, ("a", b"1"), hops])
    assert kept == [foreign, ("a", b"1"), ("replicator-hops", b"north/t/0/5")]
    assert last == b"east/t/0/7"
    assert without_last_hop([("a", None)]) == ([("a", None)], None)


class Copy:
    """A record of the target as its reader sees it."""

    def offset(self):
        return 3

    def key(self):
        return b"k"

    def value(self):
        return b"v"

    def timestamp(self):
        return 1, 5


@pytest.mark.parametrize(
    "hops",
    [
        b"east/t/0/7", b"east/t/0/0", b"east/t/0/07", b"east/t/0/",
        b"east/t/1/7", b"east/t/0/7 ", b"north/x/0/1 east/t/0/7",
        b"east/t/0/1234567890123456789012", b"east/t/0/123456789012345678", None,
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", [[], [("a", b"1")]])
def test_the_short_way_to_a_copys_origin_leads_where_the_long_one_does(hops, before):
    case = make_case(0, replace(FACTS, source=Side(0, 2**62), copied_to=2**62))
    assert case.hop_prefix == b"east/t/0/"
    headers = [*before, ("replicator-hops", hops)]
    (row,) = TargetFingerprints(case).fingerprints(
        Scanned(Range("t", 0, 0, 9), [Copy()], [headers])
    )
    kept, last = without_last_hop(headers)
    found = parse_hops(last)
    ours = found is not None and belongs(found[-1], case)
    assert row.origin == (found[-1].offset if ours else -1)
    assert row.digest == content_digest(b"k", b"v", kept if ours else headers, 5)


def test_records_of_others_belong_on_a_passive_side_only_once_the_link_was_turned():
    flow = FlowPlan("link", "east", "west", LinkPolicy(Selection(("*",)), Selection()), ("west",))
    link = LinkPlan("link", "active-passive", ("east", "west"), "east", None, (flow,))
    plan = Plan("shop", (), (link,), "hash")
    assert not foreign_records_allowed(plan, flow)
    assert not foreign_records_allowed(
        plan, replace(flow, role_version=(0, 3))
    )  # begun, and taken back
    assert foreign_records_allowed(plan, replace(flow, role_version=(2, 0)))


def test_progress_without_a_terminal_is_a_line_with_an_estimate():
    assert progress_line("Copying", 0, 40, 15.2) == "Copying: 0 of 40 tasks after 15 s"
    assert progress_line("Copying", 10, 40, 60) == (
        "Copying: 10 of 40 tasks after 1 min 0 s, about 3 min 0 s left"
    )
    assert progress_line("Copying", 1_000, 1_000, 7_300) == (
        "Copying: 1,000 of 1,000 tasks after 2 h 1 min"
    )


def test_progress_is_shown_by_records_and_bytes_where_they_are_known():
    whole = Amount(4_000, 1_000_000)
    assert progress_line("Copying", 0, 2, 30, reached=whole.part(1_000), whole=whole) == (
        "Copying: 1,000 of 4,000 records, 250 kB of 1.0 MB after 30 s, about 1 min 30 s left"
    )
    assert progress_line("Copying", 0, 2, 30, reached=Amount(40), whole=Amount(4_000)) == (
        "Copying: 40 of 4,000 records after 30 s"
    )
    assert whole.part(9_000) == whole
    ranges = [Range("t", 0, 100, 150), Range("t", 1, 0, 10)]
    assert kafka_amount(ranges, {("t", 0): 1_000, ("t", 1): 70}, {("t", 0): 100, ("t", 1): 10}) == (
        Amount(60, 570)
    )
    assert kafka_amount(ranges, {("t", 0): 1_000}, {}).size == -1


def test_the_last_line_of_a_command_can_be_quoted():
    line = closing_line(
        "verify east->west", Amount(120_000, 11_520_000), unit="records", seconds=75,
        verdict="no differences", report="Report: /r/report.html",
    )  # fmt: skip
    assert line == (
        "verify east->west: 120,000 records, 11.5 MB in 1 min 15 s: no differences. "
        "Report: /r/report.html."
    )
    assert [size_text(each) for each in (7, 990, 1_500, 250_000)] == [
        "7 B", "990 B", "1.5 kB", "250 kB",
    ]  # fmt: skip


def test_a_commit_of_an_archive_takes_the_same_part_of_every_partition():
    ranges = (Range("a", 0, 0, 900), Range("a", 1, 50, 150))
    assert first_part(ranges, 100) == (Range("a", 0, 0, 90), Range("a", 1, 50, 60))
    assert first_part(ranges, 1_000) == ranges
    assert first_part((Range("a", 0, 0, 900), Range("b", 0, 5, 6)), 10)[1] == Range("b", 0, 5, 6)
    assert up_to(ranges, {("a", 0): 700, ("a", 1): 50}) == (Range("a", 0, 0, 700),)


def test_what_a_jvm_wrote_while_it_started_is_reduced_to_its_errors():
    text = """WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/23 08:21:54 WARN Utils: Your hostname resolves to a loopback address
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
26/11/23 08:21:59 ERROR SparkContext: Error initializing SparkContext.
java.net.ConnectException: Call From vm to localhost:9 failed on connection exception
\tat java.base/jdk.internal.reflect.Direct(Unknown Source)
"""
    assert errors_in_log(text) == (
        "Error initializing SparkContext. / "
        "java.net.ConnectException: Call From vm to localhost:9 failed on connection exception"
    )
    assert errors_in_log("Using Spark's default log4j profile: x") == ""


def test_a_package_that_cannot_be_fetched_is_named():
    text = """:: loading settings :: url = jar:file:/x/ivysettings.xml
Ivy Default Cache set to: /home/user/.ivy2.5.2/cache
:: problems summary ::
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: org.nowhere#nothing;1.0: not found]
\tat org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:539)
"""
    assert errors_in_log(text) == (
        "packages of spark.jars.packages cannot be fetched (unresolved dependency: "
        "org.nowhere#nothing;1.0: not found)"
    )
