"""Every way to get the file wrong, with the place and the words a person gets to see."""

import pytest
from topology_files import topology_text

from replicator.policy.copies.engines import flow_engine
from replicator.topology.file.load import load_text

HEAD = """apiVersion: replicator/v1
kind: Topology
metadata: {name: shop}
spec:
  clusters:
    east: {bootstrapServers: [east:9092]}
    west: {bootstrapServers: [west:9092]}
    central: {bootstrapServers: [central:9092]}
  links:
"""
LINK = "- {name: l, shape: active-passive, active: east, passive: west, topics: {include: [orders]}"
SECURED = """apiVersion: replicator/v1
kind: Topology
metadata: {name: shop}
spec:
  clusters:
    west: {bootstrapServers: [west:9092]}
    east:
      bootstrapServers: [east:9092]
      {more}
  links:
    - {name: l, shape: active-passive, active: east, passive: west, topics: {include: [orders]}}
"""


def link(more):
    """A good link with one more field; the field begins at 10:98."""
    return f"{HEAD}    {LINK}, {more}}}\n"


def links(*lines):
    """Whole links, one per line from line 10 on."""
    return HEAD + "".join(f"    - {line}\n" for line in lines)


def cluster(more):
    """A good file in which the cluster east has one more field, at 9:7."""
    return SECURED.replace("{more}", more)


AP = "shape: active-passive, active: east, passive: west"

CASES = {
    # The document
    "empty": ("", "1:1", "", "the file is empty"),
    "list": ("- a\n", "1:1", "", "the file is not a mapping"),
    "tab": ("a:\n\tb: 1\n", "2:1", "", "a tab in the indentation"),
    "syntax": ("a: [1, 2\n", "2:1", "", "not YAML: expected ',' or ']'"),
    "two documents": ("a: 1\n---\nb: 1\n", "3:1", "", "a second document begins"),
    "tag": (
        "apiVersion: !!python/object:os.system x\n",
        "1:13",
        "apiVersion",
        "the tag 'python/object:os.system' is not allowed",
    ),
    "too deep": ("a: " + "[" * 60 + "]" * 60, "1:44", "", "nested too deeply"),
    "too large": ("#" * 1_100_000, "1:1", "", "the file is larger than 1 MiB"),
    "version": (
        link("priority: normal").replace("replicator/v1", "replicator/v9"),
        "1:13",
        "apiVersion",
        "'replicator/v9' is not a valid apiVersion  did you mean 'replicator/v1'?",
    ),
    "kind": (
        link("priority: normal").replace("kind: Topology", "kind: Pod"),
        "2:7",
        "kind",
        "'Pod' is not a valid kind  write Topology",
    ),
    "no metadata": (
        link("priority: normal").replace("metadata: {name: shop}\n", ""),
        "1:1",
        "metadata",
        "'metadata' is missing",
    ),
    "bad name": (
        link("priority: normal").replace("shop", "My.Shop"),
        "3:18",
        "metadata.name",
        "'My.Shop' is not a name  use small letters, digits and dashes",
    ),
    "no links": (HEAD.replace("links:\n", "links: []\n"), "9:10", "spec.links", "too few entries"),
    # Clusters
    "alias with a dot": (
        link("priority: normal").replace("central:", "eu.central:"),
        "8:5",
        'spec.clusters["eu.central"]',
        "'eu.central' is not a name",
    ),
    "address without port": (
        link("priority: normal").replace("[west:9092]", "[west]"),
        "7:31",
        "spec.clusters.west.bootstrapServers[0]",
        "'west' is not an address  write host:port",
    ),
    "address with an empty part in its name": (
        link("priority: normal").replace("[west:9092]", "['west..internal:9092']"),
        "7:31",
        "spec.clusters.west.bootstrapServers[0]",
        "'west..internal' is not a host name",
    ),
    "two addresses in one": (
        link("priority: normal").replace("[west:9092]", "['west:9092,w2:9092']"),
        "7:31",
        "spec.clusters.west.bootstrapServers[0]",
        "is not one address",
    ),
    "one address, two aliases": (
        link("priority: normal").replace("[west:9092]", "[east:9092]"),
        "7:31",
        "spec.clusters.west.bootstrapServers[0]",
        "'east:9092' is also an address of 'east'",
    ),
    "unused cluster is a warning": (
        link("priority: normal"),
        "8:5",
        "spec.clusters.central",
        "no link uses 'central'",
    ),
    "literal password": (
        cluster("security: {protocol: SASL_SSL, mechanism: PLAIN, username: u, password: hunter2}"),
        "9:79",
        "spec.clusters.east.security.password",
        "a secret cannot stand in the file itself  refer to it: {env: VARIABLE} or {file: /path}",
    ),
    "secret with two places": (
        cluster("security: {protocol: SSL, ca: {env: A, file: b}}"),
        "9:37",
        "spec.clusters.east.security.ca",
        "give exactly one of env and file",
    ),
    "SASL without user": (
        cluster("security: {protocol: SASL_SSL, mechanism: PLAIN, password: {env: P}}"),
        "9:17",
        "spec.clusters.east.security",
        "SASL_SSL needs 'username'",
    ),
    "SASL fields without SASL": (
        cluster("security: {protocol: SSL, mechanism: PLAIN}"),
        "9:44",
        "spec.clusters.east.security.mechanism",
        "'mechanism' has no effect with SSL",
    ),
    "certificate without key": (
        cluster("security: {protocol: SSL, certificate: {file: c}}"),
        "9:46",
        "spec.clusters.east.security.certificate",
        "'certificate' needs 'key'",
    ),
    "OAUTHBEARER without a source of tokens": (
        cluster("security: {protocol: SASL_SSL, mechanism: OAUTHBEARER}"),
        "9:17",
        "spec.clusters.east.security",
        "OAUTHBEARER needs 'oauth'",
    ),
    "a password for tokens": (
        cluster(
            "security: {protocol: SASL_SSL, mechanism: OAUTHBEARER, password: {env: P},"
            " oauth: {tokenFile: /t}}"
        ),
        "9:72",
        "spec.clusters.east.security.password",
        "'password' has no effect with OAUTHBEARER",
    ),
    "two sources of tokens": (
        cluster(
            "security: {protocol: SASL_SSL, mechanism: OAUTHBEARER,"
            " oauth: {tokenFile: /t, tokenCommand: [get]}}"
        ),
        "9:69",
        "spec.clusters.east.security.oauth",
        "tokenFile and tokenCommand exclude each other",
    ),
    "token URL without secret": (
        cluster(
            "security: {protocol: SASL_SSL, mechanism: OAUTHBEARER,"
            " oauth: {tokenUrl: 'https://idp/token', clientId: replicator}}"
        ),
        "9:69",
        "spec.clusters.east.security.oauth",
        "'tokenUrl' needs 'clientSecret'",
    ),
    "token URL without encryption": (
        cluster(
            "security: {protocol: SASL_SSL, mechanism: OAUTHBEARER, oauth: {tokenUrl:"
            " 'http://idp/token', clientId: r, clientSecret: {env: S}}}"
        ),
        "9:80",
        "spec.clusters.east.security.oauth.tokenUrl",
        "the client secret would be sent unencrypted",
    ),
    "MSK without a region": (
        cluster("security: {protocol: SASL_SSL, mechanism: AWS_MSK_IAM}"),
        "9:17",
        "spec.clusters.east.security",
        "no bootstrap server's name tells the AWS region",
    ),
    "MSK without TLS": (
        cluster(
            "security: {protocol: SASL_PLAINTEXT, mechanism: AWS_MSK_IAM, awsRegion: eu-west-1}"
        ),
        "9:28",
        "spec.clusters.east.security.protocol",
        "MSK takes IAM over TLS only",
    ),
    "owned setting": (
        cluster("kafka: {enable.idempotence: false}"),
        "9:15",
        'spec.clusters.east.kafka["enable.idempotence"]',
        "'enable.idempotence' is set by the replicator: another value can reorder or repeat records",
    ),
    "secret among settings": (
        cluster("kafka: {sasl.password: hunter2}"),
        "9:15",
        'spec.clusters.east.kafka["sasl.password"]',
        "secrets stand under security, by reference",
    ),
    # Links
    "unknown field": (
        link("throtle: 1"),
        "10:98",
        "spec.links[0].throtle",
        "unknown field 'throtle'  did you mean 'throttle'?",
    ),
    "merge key": (
        link("<<: {priority: bulk}"),
        "10:98",
        "spec.links[0].<<",
        "unknown field '<<'  merge keys are not supported",
    ),
    "key given twice": (
        link("priority: bulk, priority: normal"),
        "10:114",
        "spec.links[0].priority",
        "'priority' is given twice",
    ),
    "no shape": (
        links("{name: l}"),
        "10:7",
        "spec.links[0].shape",
        "'shape' is missing  add 'shape': active-passive, active-active, hub-and-spoke",
    ),
    "unknown shape": (
        links("{name: l, shape: activ-passive}"),
        "10:24",
        "spec.links[0].shape",
        "'activ-passive' is not a shape  did you mean 'active-passive'?",
    ),
    "field of another shape": (
        link("hub: central"),
        "10:98",
        "spec.links[0].hub",
        "unknown field 'hub'",
    ),
    "missing field": (
        links("{name: l, shape: active-passive, active: east, topics: {include: [a]}}"),
        "10:7",
        "spec.links[0].passive",
        "'passive' is missing  add 'passive': the cluster that is its copy",
    ),
    "unknown cluster": (
        links(
            "{name: l, shape: active-passive, active: eastt, passive: west, topics: {include: [a]}}"
        ),
        "10:48",
        "spec.links[0].active",
        "'eastt' is not a cluster of this topology  did you mean 'east'?",
    ),
    "both roles": (
        links(
            "{name: l, shape: active-passive, active: east, passive: east, topics: {include: [a]}}"
        ),
        "10:63",
        "spec.links[0].passive",
        "'east' has two roles in this link",
    ),
    "hub among the spokes": (
        links(
            "{name: l, shape: hub-and-spoke, hub: east, spokes: [west, east], direction: to-hub,"
            " topics: {include: [a]}}"
        ),
        "10:65",
        "spec.links[0].spokes[1]",
        "'east' has two roles in this link",
    ),
    "one cluster active": (
        links("{name: l, shape: active-active, clusters: [east], topics: {include: [a]}}"),
        "10:49",
        "spec.links[0].clusters",
        "too few entries  give at least 2",
    ),
    "duplicate names": (
        links(
            f"{{name: l, {AP}, topics: {{include: [a]}}}}",
            f"{{name: l, {AP}, topics: {{include: [b]}}}}",
        ),
        "11:14",
        "spec.links[1].name",
        "'l' is also the name of spec.links[0]",
    ),
    # Topics
    "no topics": (
        links(f"{{name: l, {AP}}}"),
        "10:7",
        "spec.links[0]",
        "no topics are included",
    ),
    "bad expression": (
        links(f"{{name: l, {AP}, topics: {{include: ['regex:(']}}}}"),
        "10:88",
        "spec.links[0].topics.include[0]",
        "'regex:(' is not a regular expression",
    ),
    "no expression": (
        links(f"{{name: l, {AP}, topics: {{include: ['regex:']}}}}"),
        "10:88",
        "spec.links[0].topics.include[0]",
        "'regex:' has no expression behind 'regex:'",
    ),
    "illegal topic name": (
        links(f"{{name: l, {AP}, topics: {{include: ['or ders']}}}}"),
        "10:88",
        "spec.links[0].topics.include[0]",
        "'or ders' holds characters that no topic name may have",
    ),
    "topic that looks like a copy": (
        links(f"{{name: l, {AP}, topics: {{include: [east.orders]}}}}"),
        "10:88",
        "spec.links[0].topics.include[0]",
        "'east.orders' looks like a copy of 'east'",
    ),
    "internal topic": (
        links(f"{{name: l, {AP}, topics: {{include: [__consumer_offsets]}}}}"),
        "10:88",
        "spec.links[0].topics.include[0]",
        "'__consumer_offsets' is an internal topic",
    ),
    "name too long on the target": (
        links(f"{{name: l, {AP}, naming: prefix, topics: {{include: [{'o' * 246}]}}}}"),
        "10:104",
        "spec.links[0].topics.include[0]",
        "has 251 characters; Kafka allows 249",
    ),
    "included and excluded is a warning": (
        links(f"{{name: l, {AP}, topics: {{include: [orders], exclude: ['o*']}}}}"),
        "10:88",
        "spec.links[0].topics.include[0]",
        "'orders' is included and excluded; exclude wins",
    ),
    "overlapping links": (
        links(
            f"{{name: l, {AP}, topics: {{include: ['pay*']}}}}",
            f"{{name: m, {AP}, topics: {{include: ['*ments'], exclude: [ments]}}}}",
        ),
        "11:87",
        "spec.links[1].topics.include",
        "links 'l' and 'm' both carry 'payments' from east->west",
    ),
    "expressions that may overlap are a warning": (
        links(
            f"{{name: l, {AP}, topics: {{include: ['regex:a.*']}}}}",
            f"{{name: m, {AP}, topics: {{include: ['*b']}}}}",
        ),
        "11:87",
        "spec.links[1].topics.include",
        "may take the same topics: regex:a.* and *b",
    ),
    "two sources of one topic": (
        links(
            f"{{name: l, {AP}, topics: {{include: [orders]}}}}",
            "{name: m, shape: active-passive, active: central, passive: west,"
            " topics: {include: ['o*']}}",
        ),
        "11:90",
        "spec.links[1].topics.include",
        "'orders' on 'west' would be written from 'east' (link 'l') and from 'central' (link 'm')",
    ),
    # Policies
    "template that cannot be read back": (
        link("naming: {template: '{source}{topic}'}"),
        "10:117",
        "spec.links[0].naming.template",
        "{source} and {topic} must be separated by '.' or '_'",
    ),
    "naming": (
        link("naming: suffix"),
        "10:106",
        "spec.links[0].naming",
        "'suffix' is not a naming  write identity, prefix, or {template: '{source}.{topic}'}",
    ),
    "start": (
        link("startFrom: {timestamp: 2026-01-01}"),
        "10:121",
        "spec.links[0].startFrom.timestamp",
        "2026-01-01 has no time zone",
    ),
    "duration": (
        link("commitInterval: 200"),
        "10:114",
        "spec.links[0].commitInterval",
        "200 is not a duration  write a number and a unit (ms, s, m, h)",
    ),
    "duration out of bounds": (
        link("commitInterval: 5m"),
        "10:114",
        "spec.links[0].commitInterval",
        "5m is out of bounds  give at least 10ms and at most 60s",
    ),
    "size": (
        link("throttle: {bytesPerSecond: 50 MB}"),
        "10:125",
        "spec.links[0].throttle.bytesPerSecond",
        "'50 MB' is not a size",
    ),
    "lanes": (
        link("lanes: 300"),
        "10:105",
        "spec.links[0].lanes",
        "300 is not a number of lanes  write auto, or a number from 1 to 256",
    ),
    "fewer records than lanes": (
        link("lanes: 8, throttle: {recordsPerSecond: 5}"),
        "10:137",
        "spec.links[0].throttle.recordsPerSecond",
        "5 records per second are too few for 8 lanes",
    ),
    "replication factor": (
        link("sync: {topics: {replicationFactor: 0}}"),
        "10:133",
        "spec.links[0].sync.topics.replicationFactor",
        "0 is out of bounds",
    ),
    "not a boolean": (
        link("sync: {topics: {configs: yes}}"),
        "10:123",
        "spec.links[0].sync.topics.configs",
        "'yes' is not true or false",
    ),
    "filter without a condition that is known": (
        link("filters: [{dropIf: {keyprefix: a}}]"),
        "10:118",
        "spec.links[0].filters[0].dropIf.keyprefix",
        "unknown field 'keyprefix'  did you mean 'keyPrefix'?",
    ),
    "filter without any condition": (
        link("filters: [{dropIf: {}}]"),
        "10:117",
        "spec.links[0].filters[0].dropIf",
        "a filter without a condition",
    ),
    "transform": (
        link("transforms: [mask]"),
        "10:111",
        "spec.links[0].transforms[0]",
        "'mask' is not an entry point  write package.module:function",
    ),
    "deletions both ways": (
        links(
            "{name: l, shape: active-active, clusters: [east, west], topics: {include: [a]},"
            " naming: identity, sync: {topics: {deletions: propagate}}}"
        ),
        "10:132",
        "spec.links[0].sync.topics.deletions",
        "both sides hold the same topic, so which deletion counts is not known",
    ),
    "template without source, both ways": (
        links(
            "{name: l, shape: active-active, clusters: [east, west], topics: {include: [a]},"
            " naming: {template: '{topic}.copy'}}"
        ),
        "10:95",
        "spec.links[0].naming",
        "copies would be copied back under longer and longer names",
    ),
    "one replica is a warning": (
        link("sync: {topics: {replicationFactor: 1}}"),
        "10:133",
        "spec.links[0].sync.topics.replicationFactor",
        "one replica: a lost broker loses the copy",
    ),
    "bulk without a throttle is a warning": (
        link("priority: bulk"),
        "10:108",
        "spec.links[0].priority",
        "bulk without a throttle",
    ),
    "no groups is a warning": (
        link("groups: {include: []}"),
        "10:116",
        "spec.links[0].groups.include",
        "no group is selected",
    ),
    "relay without effect is a warning": (
        link("relay: true"),
        "10:105",
        "spec.links[0].relay",
        "'relay' has no effect here",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_reported_where_it_is(case):
    text, place, path, words = CASES[case]
    result = load_text(text, file="t.yaml")
    lines = [str(problem) for problem in result.problems]
    start = f"t.yaml:{place}  {path}  " if path else f"t.yaml:{place}  "
    assert any(line.startswith(start) and words in line for line in lines), lines


@pytest.mark.parametrize("case", CASES)
def test_only_errors_keep_a_plan_from_being_made(case):
    text, _, path, words = CASES[case]
    result = load_text(text)
    severities = {p.severity for p in result.problems if p.path == path and words in str(p)}
    assert severities == {"warning"} if "warning" in case else "error" in severities
    assert (result.plan is None) == bool(result.errors)


WAY_BACK = "shape: active-passive, active: east, passive: west, topics: {include: [orders]}"
ONE_WAY = f"{WAY_BACK}, naming: prefix"
GATHERED = "shape: hub-and-spoke, hub: west, spokes: [east], topics: {include: [orders]}"


MESH = "shape: active-active, clusters: [east, west, north], topics: {include: [orders]}"
PAIR = "shape: active-active, clusters: [east, west], topics: {include: [orders]}"


SPOKES = (
    "shape: hub-and-spoke, hub: west, spokes: [east, north], direction: both, relay: true, "
    "naming: identity, topics: {include: [orders]}"
)


def three(*entries):
    return topology_text("shop", ("east", "west", "north"), entries)


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        (f"{ONE_WAY}, filters: [{{dropIf: {{tombstone: true}}}}]", "filters", "cannot run filters"),
        (f"{ONE_WAY}, transforms: ['m:f']", "transforms", "cannot run transforms"),
        (f"{ONE_WAY}, provenance: full", "provenance", "carry no header"),
        (f"{ONE_WAY}, runtime: spark", "runtime", "Spark copies records"),
        (MESH, "engine", "could come back to their source over a third cluster"),
    ],
)
def test_whole_batches_are_refused_where_a_header_or_a_look_is_needed(fields, path, words):
    result = load_text(three(f"name: l, engine: batches, {fields}"))
    assert [(p.path, words in p.message) for p in result.errors] == [
        (f"spec.links[0].{path}", True)
    ]


@pytest.mark.parametrize(
    "fields",
    [
        ONE_WAY,
        WAY_BACK,
        PAIR,
        f"{PAIR}, naming: identity",
        f"{GATHERED}, direction: to-hub",
        SPOKES,
    ],
)
def test_whole_batches_are_copied_where_nothing_comes_back_over_a_third_cluster(fields):
    plan = load_text(three(f"name: l, engine: batches, {fields}")).plan
    for flow in plan.flows:
        engine = flow_engine(flow.policy)
        assert (engine.engine, engine.reason, flow.policy.provenance) == ("batches", "", "path")


@pytest.mark.parametrize(
    "back",
    [
        "engine: records, shape: active-passive, active: west, passive: east, topics: {include: [b]}",
        "shape: active-passive, active: west, passive: east, topics: {include: [b]}",
    ],
)
def test_both_directions_between_two_clusters_copy_whole_batches_or_neither(back):
    there = f"{{name: l, engine: batches, naming: prefix, {WAY_BACK}}}"
    result = load_text(links(there, f"{{name: m, naming: prefix, {back}}}"))
    assert [(p.path, p.message) for p in result.errors] == [
        (
            "spec.links[0].engine",
            "records could come back to their source over a flow that copies record by record",
        )
    ]


@pytest.mark.parametrize(
    ("fields", "engine", "reason"),
    [
        (ONE_WAY, "batches", ""),
        (WAY_BACK, "batches", ""),
        (f"{GATHERED}, direction: to-hub", "batches", ""),
        (f"{ONE_WAY}, provenance: path", "batches", ""),
        (f"{ONE_WAY}, engine: records", "records", "asked"),
        (f"{ONE_WAY}, filters: [{{dropIf: {{tombstone: true}}}}]", "records", "filters"),
        (f"{ONE_WAY}, transforms: ['m:f']", "records", "transforms"),
        (f"{ONE_WAY}, provenance: full", "records", "provenance"),
        (f"{ONE_WAY}, runtime: spark", "records", "runtime"),
        (f"{ONE_WAY}, delivery: at-least-once", "records", "delivery"),
        (f"{PAIR}, naming: identity", "records", "both-directions"),
        (MESH, "records", "cycle"),
    ],
)
def test_auto_copies_whole_batches_or_tells_in_a_word_what_keeps_it_from_that(
    fields, engine, reason
):
    plan = load_text(three(f"name: l, {fields}")).plan
    for link in plan.links:
        for flow in (*link.flows, *link.standby):
            chosen = flow_engine(flow.policy)
            assert (chosen.engine, chosen.reason) == (engine, reason)


@pytest.mark.parametrize(
    ("topics", "engine"), [("[orders]", "records"), ("[orders-of-west]", "batches")]
)
def test_two_links_in_opposite_directions_copy_records_where_they_may_meet(topics, engine):
    back = f"name: m, shape: active-passive, active: west, passive: east, topics: {{include: {topics}}}"
    there = (
        "name: l, shape: active-passive, active: east, passive: west, topics: {include: [orders]}"
    )
    result = load_text(three(there, back))
    assert [flow_engine(flow.policy).engine for flow in result.plan.flows] == [engine, engine]


@pytest.mark.parametrize(
    "field",
    [
        "engine: auto",
        "engine: records",
        "sync: {acls: true}",
        "bulkSync: {mode: never}",
        "bulkSync: {mode: auto, threshold: 1GB}",
        "runtime: workers",
        "runtime: spark",
        "mm2Compatibility: true",
        "fencing: {method: manual}",
        "hooks: {beforeFence: [{webhook: 'https://a'}]}",
        "hooks: ",
        "groups: {exclude: [a]}",
        "sync: {groups: {enabled: false}}",
        "naming: ",
        "lanes: auto",
    ],
)
def test_a_field_that_asks_for_nothing_new_passes(field):
    result = load_text(link(field))
    assert result.plan is not None
    assert [problem.path for problem in result.problems] == ["spec.clusters.central"]


def test_every_problem_of_a_file_is_reported_at_once():
    text = links(
        "{name: l, shape: active-passive, active: esat, passive: west, topics: {incl: [a]}}",
        "{name: l, shape: active-passive, active: east, passive: wset, topics: {include: [__a]},"
        " commitInterval: 1, engine: batch}",
        "{name: n, shape: circle}",
    ).replace("name: shop", "name: Shop")
    assert [(p.line, p.path) for p in load_text(text).errors] == [
        (3, "metadata.name"),
        (10, "spec.links[0].active"),
        (10, "spec.links[0].topics.incl"),
        (11, "spec.links[1].name"),
        (11, "spec.links[1].passive"),
        (11, "spec.links[1].commitInterval"),
        (11, "spec.links[1].engine"),
        (12, "spec.links[2].shape"),
    ]


def test_a_broken_cluster_does_not_make_the_links_wrong():
    text = link("priority: normal").replace("[east:9092]", "[east]")
    assert [problem.path for problem in load_text(text).errors] == [
        "spec.clusters.east.bootstrapServers[0]"
    ]


def test_a_secret_in_the_wrong_place_is_never_repeated():
    text = cluster(
        "security: {protocol: SASL_SSL, mechanism: PLAIN, username: {env: hunter2x, pass: hunter2},"
        " password: hunter2, key: [hunter2], ca: {file: 5}}"
    )
    result = load_text(text)
    assert len(result.errors) >= 4
    assert not [problem for problem in result.problems if "hunter2" in str(problem)]


def test_aliases_cannot_blow_up_the_memory():
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    messages = [problem.message for problem in load_text("\n".join(rows)).errors]
    assert "too many values behind aliases" in messages
