"""From MirrorMaker 2's properties to a topology: nothing dropped, nothing told that is secret."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.cli.main import run_command
from replicator.cli.output import to_yaml
from replicator.mm2.configuration.import_map import import_properties
from replicator.mm2.properties.java_properties import Entry, parse_properties
from replicator.mm2.properties.patterns import translate, translate_list
from replicator.policy.copies.selection import matcher, pattern_problem
from replicator.policy.values import Selection
from replicator.topology.file.load import load_text

REALISTIC = r"""
# Two data centres and an archive
clusters = east, west, archive
east.bootstrap.servers = PLAINTEXT://ke-1:9092, ke-2:9092
west.bootstrap.servers = kw-1:9093
archive.bootstrap.servers = ka-1:9094

west.security.protocol = SASL_SSL
west.sasl.mechanism = SCRAM-SHA-512
west.sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="mm2" \
    password="s3cr3t-w\"st";
west.ssl.truststore.location = /etc/kafka/west.p12
west.ssl.truststore.password = s3cr3t-trust
west.ssl.truststore.type = PKCS12
west.ssl.endpoint.identification.algorithm =
west.admin.sasl.jaas.config = PlainLoginModule required username="admin" password="s3cr3t-admin";
archive.security.protocol = SSL
archive.ssl.truststore.location = /etc/kafka/archive-ca.pem
archive.ssl.truststore.type = PEM
archive.ssl.keystore.type = PEM
archive.ssl.keystore.certificate.chain = -----BEGIN CERTIFICATE----- s3cr3t-chain
archive.ssl.keystore.key = -----BEGIN ENCRYPTED PRIVATE KEY----- s3cr3t-key
archive.ssl.key.password = s3cr3t-keypassword

east->west.enabled = true
east->west.topics = orders, payments\\..*, audit-[0-9]+
east->west.topics.exclude = .*\\.tmp, .*[\\-\\.]internal
west->east.enabled = true
east->archive.enabled = true
east->archive.topics = .*
east->archive.replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
east->archive.consumer.auto.offset.reset = latest
east->archive.sync.topic.configs.enabled = false
east->archive.producer.override.compression.type = lz4
archive->east.enabled = false
archive->east.topics = nothing

topics = profiles
groups = team-.*, billing
groups.exclude = console-consumer-.*, team-test-.*
tasks.max = 4
tasks.max = 12
replication.factor = 3
replication.policy.separator = _
refresh.topics.enabled = true
refresh.topics.interval.seconds = 30
refresh.groups.enabled = true
refresh.groups.interval.seconds = 30
sync.topic.configs.enabled = true
sync.topic.configs.interval.seconds = 60
sync.topic.acls.enabled = true
sync.topic.acls.interval.seconds = 60
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 20
emit.heartbeats.enabled = true
emit.heartbeats.interval.seconds = 5
emit.checkpoints.enabled = true
emit.checkpoints.interval.seconds = 20
emit.offset-syncs.enabled = true
offset-syncs.topic.location = target
offset-syncs.topic.replication.factor = 3
checkpoints.topic.replication.factor = 3
heartbeats.topic.replication.factor = 3
offset.lag.max = 10
config.properties.exclude = min.insync.replicas, retention.ms
use.defaults.from = source
west.exactly.once.source.support = enabled
west.offset.flush.interval.ms = 10000
east.consumer.isolation.level = read_committed
east.consumer.fetch.max.bytes = 52428800
west.producer.batch.size = 327680
west.producer.compression.type = zstd
west.producer.acks = all
dedicated.mode.enable.internal.rest = true
listeners = http://localhost:8080
offset.storage.replication.factor = 3
status.storage.replication.factor = 3
config.storage.replication.factor = 3
topic.creation.default.partitions = -1
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
config.providers = file
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
transforms = drop
transforms.drop.type = org.apache.kafka.connect.transforms.Filter
metric.reporters = org.example.Reporter
topic.filter.class = org.example.Filter
topcis = typo
north->west.enabled = true
exactly.once.source.support = enabled
producer.linger.ms = 50
"""

# Every name in the tables of MirrorMaker 2's own configuration, and what its users set beside them.
_NAMES = """
clusters bootstrap.servers enabled config.providers dedicated.mode.enable.internal.rest listeners
security.protocol ssl.truststore.location ssl.keystore.location sasl.mechanism sasl.jaas.config
source.cluster.alias target.cluster.alias source.cluster.bootstrap.servers
target.cluster.bootstrap.servers admin.timeout.ms replication.policy.class
replication.policy.separator replication.policy.internal.topic.separator.enabled
forwarding.admin.class metric.reporters auto.include.jmx.reporter topic.filter.class
offset-syncs.topic.location emit.offset-syncs.enabled tasks.max transforms predicates
errors.tolerance topics topics.exclude topics.blacklist config.properties.exclude
config.properties.blacklist config.property.filter.class use.defaults.from consumer.poll.timeout.ms
refresh.topics.enabled refresh.topics.interval.seconds sync.topic.configs.enabled
sync.topic.configs.interval.seconds sync.topic.acls.enabled sync.topic.acls.interval.seconds
replication.factor offset-syncs.topic.replication.factor offset.lag.max
heartbeats.replication.enabled use.incremental.alter.configs add.source.alias.to.metrics
metric.names.formats exactly.once.support task.assigned.partitions task.index groups groups.exclude
groups.blacklist group.filter.class refresh.groups.enabled refresh.groups.interval.seconds
emit.checkpoints.enabled emit.checkpoints.interval.seconds sync.group.offsets.enabled
sync.group.offsets.interval.seconds checkpoints.topic.replication.factor task.assigned.groups
emit.heartbeats.enabled emit.heartbeats.interval.seconds heartbeats.topic.replication.factor
offset.flush.interval.ms offset.flush.timeout.ms scheduled.rebalance.max.delay.ms
exactly.once.source.support transaction.boundary offset.storage.topic offset.storage.partitions
config.storage.topic status.storage.topic key.converter value.converter header.converter
consumer.auto.offset.reset consumer.isolation.level producer.batch.size producer.linger.ms
producer.compression.type producer.max.request.size producer.acks producer.buffer.memory
producer.override.batch.size consumer.override.fetch.max.bytes consumer.max.poll.records
admin.request.timeout.ms topic.creation.default.replication.factor group.id client.id
connector.class name plugin.path ssl.cipher.suites ssl.protocol sasl.kerberos.service.name
sasl.oauthbearer.token.endpoint.url sasl.login.callback.handler.class errors.retry.timeout
worker.sync.timeout.ms task.shutdown.graceful.timeout.ms
"""
NAMES = _NAMES.split()


def imported(text, **options):
    return import_properties(parse_properties(text), **options)


def verdicts(text):
    return {verdict.key: verdict for verdict in imported(text).verdicts}


def links(text):
    document = imported(text).document
    assert document is not None
    return {link["name"]: link for link in document["spec"]["links"]}


def test_a_realistic_file_becomes_a_topology_that_validates():
    result = imported(REALISTIC)
    loaded = load_text(to_yaml(result.document))
    assert loaded.errors == ()
    assert [str(flow.id) for flow in loaded.plan.flows] == [
        "east->west", "east->archive", "west->east",
    ]  # fmt: skip


def test_every_key_of_a_realistic_file_has_exactly_one_verdict():
    entries = parse_properties(REALISTIC)
    found = imported(REALISTIC).verdicts
    assert [(each.line, each.key) for each in found] == [(each.line, each.key) for each in entries]
    assert all(each.to or each.reason for each in found)
    assert all(bool(each.to) == (each.outcome == "mapped") for each in found)
    assert all(each.reason for each in found if each.outcome != "mapped")


def test_every_place_that_a_verdict_names_exists():
    result = imported(REALISTIC)
    for verdict in result.verdicts:
        for path in filter(None, verdict.to.split(", ")):
            place = result.document
            for part in re.findall(r'\["([^"]+)"\]|\[(\d+)\]|([^.\[\]]+)', path):
                name, index, plain = part
                place = place[int(index)] if index else place[name or plain]
            assert place is not None


def test_no_secret_of_the_file_is_shown_anywhere():
    result = imported(REALISTIC)
    shown = to_yaml(result.document) + json.dumps([each.as_json() for each in result.verdicts])
    assert "s3cr3t" not in shown


def test_secrets_become_references_and_say_where_to_put_them():
    result = imported(REALISTIC)
    clusters = result.document["spec"]["clusters"]
    assert clusters["west"]["security"] == {
        "protocol": "SASL_SSL",
        "mechanism": "SCRAM-SHA-512",
        "username": "mm2",
        "password": {"env": "WEST_PASSWORD"},
        "ca": {"file": "/etc/replicator/west/ca.pem"},
    }
    assert clusters["archive"]["security"] == {
        "protocol": "SSL",
        "ca": {"file": "/etc/kafka/archive-ca.pem"},
        "certificate": {"env": "ARCHIVE_CERTIFICATE"},
        "key": {"env": "ARCHIVE_KEY"},
        "keyPassword": {"env": "ARCHIVE_KEY_PASSWORD"},
    }
    found = verdicts(REALISTIC)
    assert "environment variable WEST_PASSWORD" in found["west.sasl.jaas.config"].reason
    assert "keytool" in found["west.ssl.truststore.location"].reason
    assert found["west.admin.sasl.jaas.config"].outcome == "not supported"


def test_a_flow_gets_its_own_word_before_that_of_all():
    found = links(REALISTIC)
    assert found["east-to-west"]["topics"] == {
        "include": ["orders", "payments.*", "regex:audit-[0-9]+"],
        "exclude": ["*.tmp", r"regex:.*[\-\.]internal"],
    }
    assert found["west-to-east"]["topics"]["include"] == ["profiles"]
    assert found["east-to-archive"]["naming"] == "identity"
    assert found["east-to-archive"]["startFrom"] == "latest"
    assert found["east-to-west"]["naming"] == {"template": "{source}_{topic}"}
    assert found["east-to-west"]["delivery"] == "exactly-once"
    assert found["east-to-west"]["lanes"] == 12
    assert found["east-to-west"]["discoveryInterval"] == "30s"
    assert found["east-to-west"]["sync"]["groups"] == {"enabled": True, "interval": "20s"}
    assert found["east-to-archive"]["sync"]["topics"] == {"configs": False, "replicationFactor": 3}


@pytest.mark.parametrize(
    ("key", "outcome", "words"),
    [
        ("tasks.max", "mapped", ""),
        ("offset.lag.max", "not needed", "exact"),
        ("transforms.drop.type", "not supported", "Java"),
        ("topic.filter.class", "not supported", "Java"),
        ("config.properties.exclude", "not supported", "retention.ms"),
        ("use.defaults.from", "not supported", "overrides"),
        ("topcis", "not supported", "'topics' is one that is known"),
        ("north->west.enabled", "not needed", "not a flow between the listed clusters"),
        ("archive->east.topics", "not needed", "copies nothing"),
        ("exactly.once.source.support", "not needed", "without the alias of a target"),
        ("producer.linger.ms", "not needed", "without the alias of a cluster"),
        ("east->archive.producer.override.compression.type", "not supported", "spec.clusters"),
        ("east.consumer.isolation.level", "not needed", "aborted"),
        ("west.producer.batch.size", "not needed", "lanes"),
    ],
)
def test_each_kind_of_verdict_says_why(key, outcome, words):
    found = verdicts(REALISTIC)[key]
    assert found.outcome == outcome
    assert words in found.reason


def test_of_a_repeated_key_the_last_one_counts():
    lines = [each for each in imported(REALISTIC).verdicts if each.key == "tasks.max"]
    assert [each.outcome for each in lines] == ["not needed", "mapped"]
    assert f"line {lines[1].line} says it again" in lines[0].reason


@pytest.mark.parametrize("prefix", ["", "east.", "west.", "east->west.", "west->east."])
@pytest.mark.parametrize("name", NAMES)
def test_every_known_name_has_a_verdict_of_its_own(prefix, name):
    text = f"{SMALL}{prefix}{name} = 1\n"
    found = imported(text).verdicts[-1]
    assert found.key == f"{prefix}{name}"
    assert "is known to have it" not in found.reason


SMALL = """
clusters = east, west
east.bootstrap.servers = e:1
west.bootstrap.servers = w:1
east->west.enabled = true
"""


def test_without_topics_everything_is_taken_but_what_is_internal():
    assert links(SMALL)["east-to-west"]["topics"] == {
        "include": ["*"],
        "exclude": ["*.replica", r"regex:\..*", "heartbeats", "*.heartbeats"],
    }


def test_groups_stay_alone_unless_mirror_maker_2_wrote_them():
    assert links(SMALL)["east-to-west"]["sync"]["groups"] == {"enabled": False}


def test_flows_both_ways_with_one_policy_are_one_active_active_link():
    found = links(f"{SMALL}west->east.enabled = true\n")
    assert list(found) == ["east-west"]
    assert found["east-west"]["shape"] == "active-active"
    assert found["east-west"]["naming"] == "prefix"


def test_a_switch_for_all_flows_counts_where_heartbeats_start_the_pair():
    text = SMALL.replace("east->west.", "")
    assert list(links(text)) == ["east-west"]
    assert imported(f"{text}emit.heartbeats.enabled = false\n").document is None


def test_sources_under_one_name_are_one_link():
    text = """
    clusters = a, b, c
    a.bootstrap.servers = a:1
    b.bootstrap.servers = b:1
    c.bootstrap.servers = c:1
    a->c.enabled = true
    b->c.enabled = true
    topics = orders
    replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
    """
    found = links(text)
    assert list(found) == ["a-b-to-c"]
    assert found["a-b-to-c"]["shape"] == "hub-and-spoke"
    assert load_text(to_yaml(imported(text).document)).errors == ()


def test_aliases_that_cannot_be_kept_stay_in_the_names_of_topics():
    text = SMALL.replace("east", "US_East") + "west->US_East.enabled = true\n"
    result = imported(text)
    assert list(result.document["spec"]["clusters"]) == ["us-east", "west"]
    found = links(text)
    assert found["us-east-to-west"]["naming"] == {"template": "US_East.{topic}"}
    assert r"regex:(?:.*\.)?west\..*" in found["us-east-to-west"]["topics"]["exclude"]
    assert r"regex:(?:.*\.)?US_East\..*" in found["west-to-us-east"]["topics"]["exclude"]
    assert "'US_East' is 'us-east' here" in verdicts(text)["clusters"].reason
    assert load_text(to_yaml(result.document)).errors == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bootstrap.servers = a:1", "no 'clusters'"),
        ("clusters = a, b\na.bootstrap.servers=a:1", "no flow is switched on"),
        (f"{SMALL}topics =", "topic that could be copied"),
        (SMALL.replace("west.bootstrap", "west.bootsrap"), "'west.bootstrap.servers'"),
    ],
)
def test_a_file_that_copies_nothing_says_so_and_still_has_all_verdicts(text, words):
    result = imported(text)
    assert result.document is None
    assert words in result.problems[0]
    assert len(result.verdicts) == len(parse_properties(text))


@pytest.mark.parametrize(
    ("expression", "pattern"),
    [
        ("orders", "orders"),
        (".*", "*"),
        (r"payments\..*", "payments.*"),
        ("a.b", "a?b"),
        ("a.+", "a?*"),
        ("a.*?", "regex:a.*?"),
        ("a*", "regex:a*"),
        ("a|b", "regex:a|b"),
        (r"x\d+", r"regex:(?a)x\d+"),
        (r"(?i)x\d", r"regex:(?ai)x\d"),
        (r"\Qa.b\E.*", r"regex:a\.b.*"),
        ("(?<name>a)+", "regex:(?P<name>a)+"),
    ],
)
def test_expressions_become_patterns_of_the_same_meaning(expression, pattern):
    assert translate(expression) == (pattern, "")
    assert pattern_problem(pattern, topic=True) is None


@pytest.mark.parametrize(
    "expression", ["[a-z&&[^b]]", r"\p{Alpha}+", "[a[b]]", "(", "*a", "a{2}{3}"]
)
def test_what_java_means_otherwise_is_refused_by_name(expression):
    result = translate_list(f"orders, {expression}")
    assert result.patterns == ("orders",)
    assert [name for name, _ in result.refused] == [expression]


def test_parts_that_are_only_together_an_expression_are_joined_as_mirror_maker_2_does():
    assert translate_list("(orders,payments)-.*").patterns == ("regex:(orders|payments)-.*",)


SIMPLE = st.lists(
    st.sampled_from(["a", "B", "7", "-", "_", r"\.", ".", ".*", ".+", "[ab]", "(a|b)", "b?"]),
    min_size=1, max_size=6,
).map("".join)  # fmt: skip


@given(SIMPLE, st.text("aB7-_.", min_size=1, max_size=8))
def test_a_translated_expression_takes_the_same_names(expression, name):
    pattern, why = translate(expression)
    assert why == ""
    takes = matcher(Selection((pattern,), ()))
    assert takes(name) == (re.fullmatch(expression, name) is not None)


KEYS = st.builds(
    lambda prefix, name: f"{prefix}{name}",
    st.sampled_from(["", "east.", "west.", "east->west.", "west->east.", "x->y.", "US_East."]),
    st.one_of(st.sampled_from(NAMES), st.text(max_size=12)),
)
VALUES = st.one_of(
    st.sampled_from(
        ["true", "false", "", "-1", "0", "12", "99999999", "latest", ".*", "a,b", "SASL_SSL", "SSL",
         "east, west", "US_East,us-east,west", "PLAIN", "${file:/x:y}", "enabled", "(", "e:9092",
         "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"]
    ),
    st.text(max_size=20),
)  # fmt: skip


@given(
    st.lists(st.tuples(KEYS, VALUES), max_size=25),
    st.sampled_from(["", SMALL, SMALL.replace("east", "US_East")]),
)
def test_no_key_of_any_file_is_dropped_and_what_comes_out_validates(pairs, start):
    first = parse_properties(start)
    entries = [*first] + [
        Entry(key, value, 100 + number) for number, (key, value) in enumerate(pairs)
    ]
    result = import_properties(entries)
    assert [(each.line, each.key) for each in result.verdicts] == [
        (each.line, each.key) for each in entries
    ]
    assert (result.document is None) == bool(result.problems)
    if result.document is not None:
        loaded = load_text(to_yaml(result.document))
        assert loaded.errors == ()


def test_the_command_prints_the_topology_alone_on_standard_output(tmp_path, capsys):
    path = tmp_path / "mm2.properties"
    path.write_text(REALISTIC)
    assert run_command(["import-mm2", str(path), "--name", "Shop Mirror"]) == 0
    out, err = capsys.readouterr()
    loaded = load_text(out)
    assert loaded.errors == ()
    assert loaded.plan.topology == "shop-mirror"
    assert "WEST_PASSWORD" in out
    assert "s3cr3t" not in out + err
    assert re.search(r"\d+ keys: \d+ mapped, \d+ not needed, \d+ not supported\.", err)


def test_json_holds_topology_and_verdicts_in_one_object(tmp_path, capsys):
    path = tmp_path / "mm2.properties"
    path.write_text(SMALL)
    assert run_command(["import-mm2", str(path), "-o", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["topology"]["spec"]["links"][0]["name"] == "east-to-west"
    assert result["verdicts"][0] == {
        "line": 2, "key": "clusters", "verdict": "mapped", "to": "spec.clusters", "reason": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [("a=1", "no 'clusters'"), (r"a=\u00", "hexadecimal"), (None, "cannot be read")],
)
def test_a_file_that_gives_no_topology_is_wrong_input(text, words, tmp_path, capsys):
    path = tmp_path / "mm2.properties"
    if text is not None:
        path.write_text(text)
    assert run_command(["import-mm2", str(path)]) == 2
    assert words in capsys.readouterr().err


URL = "sasl.oauthbearer.token.endpoint.url"
KAFKA_OAUTH = """
clusters = east, west
east->west.enabled = true
east.bootstrap.servers = e:1
west.bootstrap.servers = w:1
west.security.protocol = SASL_SSL
west.sasl.mechanism = OAUTHBEARER
"""


@pytest.mark.parametrize(
    "settings",
    [
        (
            "west.sasl.oauthbearer.token.endpoint.url = https://idp/token\n"
            "west.sasl.login.callback.handler.class = "
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler\n"
            "west.sasl.jaas.config = OAuthBearerLoginModule required clientId='me' "
            'clientSecret="s3cr3t" scope="kafka" extension_logicalCluster="lkc-1";\n'
        ),
        (
            "west.sasl.login.callback.handler.class = "
            "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler\n"
            'west.sasl.jaas.config = OAuthBearerLoginModule required oauth.client.id="me" '
            'oauth.client.secret="s3cr3t" oauth.scope="kafka" extension_logicalCluster="lkc-1" '
            'oauth.token.endpoint.uri="https://idp/token";\n'
        ),
        (
            "west.sasl.oauthbearer.token.endpoint.url = https://idp/token\n"
            "west.sasl.oauthbearer.client.credentials.client.id = me\n"
            "west.sasl.oauthbearer.client.credentials.client.secret = s3cr3t\n"
            "west.sasl.oauthbearer.scope = kafka\n"
            "west.sasl.jaas.config = OAuthBearerLoginModule required extension_logicalCluster=lkc-1;\n"
        ),
    ],
    ids=["Kafka's JAAS", "Strimzi's JAAS", "Kafka's settings"],
)
def test_client_credentials_become_an_oauth_block(settings):
    result = imported(KAFKA_OAUTH + settings)
    security = result.document["spec"]["clusters"]["west"]["security"]
    assert security["mechanism"] == "OAUTHBEARER"
    assert security["oauth"] == {
        "tokenUrl": "https://idp/token", "clientId": "me", "scope": "kafka",
        "clientSecret": {"env": "WEST_CLIENT_SECRET"}, "extensions": {"logicalCluster": "lkc-1"},
    }  # fmt: skip
    assert all(each.outcome != "not supported" for each in result.verdicts)
    assert load_text(to_yaml(result.document)).errors == ()
    shown = to_yaml(result.document) + json.dumps([each.as_json() for each in result.verdicts])
    assert "s3cr3t" not in shown


def test_a_token_of_another_java_class_is_left_to_be_set():
    result = imported(
        KAFKA_OAUTH + "west.sasl.login.callback.handler.class = com.example.Handler\n"
    )
    found = {each.key: each for each in result.verdicts}
    assert found["west.sasl.login.callback.handler.class"].outcome == "not supported"
    assert load_text(to_yaml(result.document)).errors == ()


def test_aws_iam_needs_no_secret():
    text = KAFKA_OAUTH.replace("OAUTHBEARER", "AWS_MSK_IAM").replace(
        "w:1", "b-1.shop.abc.c2.kafka.eu-west-1.amazonaws.com:9098"
    )
    result = imported(
        text + "west.sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required;\n"
        "west.sasl.client.callback.handler.class = "
        "software.amazon.msk.auth.iam.IAMClientCallbackHandler\n"
    )
    assert result.document["spec"]["clusters"]["west"]["security"] == {
        "protocol": "SASL_SSL", "mechanism": "AWS_MSK_IAM",
    }  # fmt: skip
    assert all(each.outcome != "not supported" for each in result.verdicts)
    assert load_text(to_yaml(result.document)).errors == ()


def test_aws_iam_under_kafkas_own_mechanism_is_aws_iam():
    handler = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
    result = imported(
        KAFKA_OAUTH + "west.sasl.jaas.config = OAuthBearerLoginModule required;\n"
        f"west.sasl.login.callback.handler.class = {handler}\n"
        f"west.sasl.client.callback.handler.class = {handler}\n"
    )
    security = result.document["spec"]["clusters"]["west"]["security"]
    assert security == {"protocol": "SASL_SSL", "mechanism": "AWS_MSK_IAM"}
    assert all(each.outcome != "not supported" for each in result.verdicts)


def test_another_role_than_the_workers_own_is_never_left_out_in_silence():
    result = imported(
        KAFKA_OAUTH.replace("OAUTHBEARER", "AWS_MSK_IAM") + "west.sasl.jaas.config = "
        'software.amazon.msk.auth.iam.IAMLoginModule required awsRoleArn="arn:aws:iam::1:role/r";\n'
    )
    (jaas,) = [each for each in result.verdicts if each.key == "west.sasl.jaas.config"]
    assert jaas.outcome == "not supported"
    assert "role_arn" in jaas.reason


def test_a_token_in_a_file_is_read_from_there():
    result = imported(
        KAFKA_OAUTH + f"west.{URL} = file:///var/run/secrets/kafka/token\n"
        "west.sasl.jaas.config = OAuthBearerLoginModule required;\n"
    )
    security = result.document["spec"]["clusters"]["west"]["security"]
    assert security["oauth"] == {"tokenFile": "/var/run/secrets/kafka/token"}
    assert load_text(to_yaml(result.document)).errors == ()


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (
            (
                'oauth.client.id="me" oauth.client.secret="s3cr3t" oauth.audience="a=b" '
                'oauth.token.endpoint.uri="https://idp/token" oauth.ssl.truststore.password="s3cr3t"'
            ),
            ["oauth.audience", "oauth.ssl.truststore.password"],
        ),
        ('oauth.access.token="s3cr3t"', ["oauth.access.token"]),
        ("oauth.client.assertion.location=/a/b", ["oauth.client.assertion.location"]),
    ],
)
def test_options_of_a_login_module_that_go_nowhere_are_named(options, left):
    result = imported(
        KAFKA_OAUTH + f"west.sasl.jaas.config = OAuthBearerLoginModule required {options};\n"
    )
    found = {each.key: each for each in result.verdicts}
    jaas, mechanism = found["west.sasl.jaas.config"], found["west.sasl.mechanism"]
    assert ", ".join(left) in jaas.reason
    told_whole = "tokenUrl" in jaas.to
    assert jaas.outcome == ("mapped" if told_whole else "not supported")
    assert ("correct security.oauth" in mechanism.reason) == (not told_whole)
    assert "s3cr3t" not in json.dumps([each.as_json() for each in result.verdicts])
    assert load_text(to_yaml(result.document)).errors == ()
