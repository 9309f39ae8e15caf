"""Each error of the client library has one meaning, and a person is told what to do."""

import ctypes
import socket
import traceback

import pytest

from replicator.errors import (
    AlreadyExistsError,
    AuthenticationFailedError,
    AuthorizerMissingError,
    BrokerRefusedError,
    FencedError,
    InputError,
    NotAuthorizedError,
    NotFoundError,
    RecordRefusedError,
    SourceDataLostError,
    TransientBrokerError,
    UnknownOutcomeError,
    UnreachableError,
    UnsupportedBrokerError,
)
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.clients.client import KafkaError, KafkaException, open_consumer, open_producer
from replicator.kafka.clients.error_table import MEANINGS
from replicator.kafka.clients.errors import (
    ConnectionTrouble,
    as_kafka_error,
    bare_errors_as_exceptions,
    kafka_errors,
    map_kafka_error,
)
from replicator.kafka.logs.producer_calls import until_done
from replicator.topology.plan import ClusterPlan

CASES = [
    (KafkaError._ALL_BROKERS_DOWN, UnreachableError),
    (KafkaError._TRANSPORT, UnreachableError),
    (KafkaError._DESTROY_BROKER, UnreachableError),
    (KafkaError._TIMED_OUT, UnreachableError),
    (KafkaError._RESOLVE, UnreachableError),
    (KafkaError._AUTHENTICATION, AuthenticationFailedError),
    (KafkaError._SSL, AuthenticationFailedError),
    (KafkaError.SASL_AUTHENTICATION_FAILED, AuthenticationFailedError),
    (KafkaError.UNSUPPORTED_SASL_MECHANISM, AuthenticationFailedError),
    (KafkaError.TOPIC_AUTHORIZATION_FAILED, NotAuthorizedError),
    (KafkaError.GROUP_AUTHORIZATION_FAILED, NotAuthorizedError),
    (KafkaError.CLUSTER_AUTHORIZATION_FAILED, NotAuthorizedError),
    (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NotAuthorizedError),
    (KafkaError.UNSUPPORTED_VERSION, UnsupportedBrokerError),
    (KafkaError._UNSUPPORTED_FEATURE, UnsupportedBrokerError),
    (KafkaError._FENCED, FencedError),
    (KafkaError.INVALID_PRODUCER_EPOCH, FencedError),
    (KafkaError.PRODUCER_FENCED, FencedError),
    (KafkaError.FENCED_INSTANCE_ID, FencedError),
    (KafkaError.UNKNOWN_TOPIC_OR_PART, NotFoundError),
    (KafkaError._UNKNOWN_PARTITION, NotFoundError),
    (KafkaError.GROUP_ID_NOT_FOUND, NotFoundError),
    (KafkaError.TOPIC_ALREADY_EXISTS, AlreadyExistsError),
    (KafkaError.OFFSET_OUT_OF_RANGE, SourceDataLostError),
    (KafkaError._AUTO_OFFSET_RESET, SourceDataLostError),
    (KafkaError.MSG_SIZE_TOO_LARGE, RecordRefusedError),
    (KafkaError.INVALID_RECORD, RecordRefusedError),
    (KafkaError.INVALID_TIMESTAMP, RecordRefusedError),
    (KafkaError.POLICY_VIOLATION, BrokerRefusedError),
    (KafkaError.SECURITY_DISABLED, AuthorizerMissingError),
    (KafkaError.INVALID_REPLICATION_FACTOR, BrokerRefusedError),
    (KafkaError.INVALID_PARTITIONS, BrokerRefusedError),
    (KafkaError.NON_EMPTY_GROUP, BrokerRefusedError),
    (KafkaError.UNKNOWN_MEMBER_ID, BrokerRefusedError),
    (KafkaError.THROTTLING_QUOTA_EXCEEDED, TransientBrokerError),
    (KafkaError.NOT_ENOUGH_REPLICAS, TransientBrokerError),
    (KafkaError.NOT_LEADER_FOR_PARTITION, TransientBrokerError),
    (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, TransientBrokerError),
    (KafkaError.CONCURRENT_TRANSACTIONS, TransientBrokerError),
    (KafkaError.TRANSACTION_ABORTABLE, TransientBrokerError),
    (KafkaError._PURGE_INFLIGHT, UnknownOutcomeError),
    (KafkaError._INVALID_ARG, InputError),
    (KafkaError.UNKNOWN, BrokerRefusedError),
]


@pytest.mark.parametrize(
    ("code", "kind"), CASES, ids=[KafkaError(code).name() for code, _ in CASES]
)
def test_each_code_has_its_meaning(code, kind):
    mapped = map_kafka_error(KafkaError(code), subject="cluster:east", doing="read topic orders")

    assert type(mapped) is kind
    assert mapped.subject == "cluster:east"
    assert mapped.message.startswith("cannot read topic orders: ")
    assert mapped.paragraph().endswith((".", "!"))


def test_errors_that_a_person_can_fix_say_how():
    silent = {SourceDataLostError, RecordRefusedError, NotFoundError, AlreadyExistsError}
    silent |= {BrokerRefusedError, InputError}  # there the broker's own words say what to mend
    for code, meaning in MEANINGS.items():
        if meaning.error not in silent and code != KafkaError._SSL:
            assert meaning.remedy, KafkaError(code).name()


@pytest.mark.parametrize(
    ("words", "what", "remedy"),
    [
        (
            "SSL handshake failed: certificate verify failed: broker certificate could not be verified",
            "authority",
            "security.ca",
        ),
        ("certificate verify failed: hostname mismatch", "another host name", "advertised"),
        ("Disconnected: connecting to a PLAINTEXT broker listener?", "not speak TLS", "protocol"),
        ("error:0A00010B:SSL routines::wrong version number", "not speak TLS", "protocol"),
        ("tlsv13 alert certificate required", "client certificate", "security.key"),
        ("something nobody has seen", "handshake failed", "certificate"),
    ],
)
def test_a_failed_handshake_is_explained(words, what, remedy):
    mapped = map_kafka_error(KafkaError(KafkaError._SSL, words), subject="", doing="connect")

    assert isinstance(mapped, AuthenticationFailedError)
    assert what in mapped.message
    assert remedy in mapped.remedy


def test_a_tls_listener_spoken_to_in_plain_text_is_recognised():
    words = (
        "Disconnected while requesting ApiVersion: might be caused by incorrect security.protocol "
        "configuration (connecting to a SSL listener?)"
    )
    mapped = map_kafka_error(KafkaError(KafkaError._TRANSPORT, words), subject="", doing="connect")

    assert isinstance(mapped, UnreachableError)
    assert "security.protocol" in mapped.remedy


def test_the_cause_stands_in_for_the_symptom():
    trouble = ConnectionTrouble()
    trouble(KafkaError(KafkaError._TRANSPORT, "connection refused"))
    trouble(KafkaError(KafkaError._AUTHENTICATION, "invalid credentials"))

    with (
        pytest.raises(AuthenticationFailedError, match="invalid credentials"),
        kafka_errors("cluster:east", "list the topics", trouble=trouble),
    ):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    with pytest.raises(NotFoundError), kafka_errors("cluster:east", "read", trouble=trouble):
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))


REFUSED = "Connect to ipv4#127.0.0.1:9093 failed: Connection refused (after 0ms in state CONNECT)"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("kafka-2.example:9093/2", "broker 2 at kafka-2.example:9093"),
        ("sasl_ssl://kafka-2.example:9093/2", "broker 2 at kafka-2.example:9093"),
        ("[::1]:9093/bootstrap", "the broker at [::1]:9093"),
    ],
)
def test_one_broker_that_does_not_answer_is_named_and_no_other(name, said):
    trouble = ConnectionTrouble()
    trouble(KafkaError(KafkaError._TRANSPORT, f"{name}: {REFUSED}"))
    for code, late in (
        (KafkaError._TIMED_OUT, "no answer in time; "),
        (KafkaError._TRANSPORT, ""),
    ):
        mapped = map_kafka_error(
            KafkaError(code), subject="cluster:east", doing="list", cause=trouble.cause()
        )
        assert mapped.message == f"cannot list: {late}{said} does not answer ({name}: {REFUSED})"
        assert (mapped.code, mapped.retriable) == ("UNREACHABLE", True)
        assert "this broker" in mapped.remedy


def test_no_broker_answers_where_the_client_says_that_all_are_down():
    now = [0.0]
    trouble = ConnectionTrouble(monotonic=lambda: now[0])
    trouble(KafkaError(KafkaError._TRANSPORT, f"a:1/1: {REFUSED}"))
    trouble(KafkaError(KafkaError._ALL_BROKERS_DOWN, "2/2 brokers are down"))
    late = KafkaError(KafkaError._TIMED_OUT)

    def message() -> str:
        return map_kafka_error(late, subject="", doing="list", cause=trouble.cause()).message

    assert message() == f"cannot list: no broker answers (a:1/1: {REFUSED})"
    now[0] = 40.0  # that all are down is said once
    trouble(KafkaError(KafkaError._TRANSPORT, f"a:1/1: {REFUSED}"))
    assert "no broker answers" in message()
    trouble.clear()
    trouble(KafkaError(KafkaError._TRANSPORT, f"a:1/1: {REFUSED}"))
    assert "no answer in time; broker 1 at a:1 does not answer" in message()
    trouble(KafkaError(KafkaError._ALL_BROKERS_DOWN, "2/2 brokers are down"))
    now[0] = 400.0  # long ago: others may be back
    trouble(KafkaError(KafkaError._TRANSPORT, f"a:1/1: {REFUSED}"))
    assert "no broker answers" not in message()


@pytest.mark.parametrize("one_listens", [False, True])
def test_the_client_itself_says_whether_one_broker_or_all_are_gone(one_listens):
    with socket.socket() as gone, socket.socket() as silent:
        for each in (gone, silent):
            each.bind(("127.0.0.1", 0))
        if one_listens:
            silent.listen()  # and answers nothing
        servers = tuple(f"127.0.0.1:{each.getsockname()[1]}" for each in (gone, silent))
        admin = ClusterAdmin(ClusterPlan("east", servers), client_id="test", timeout_seconds=2.0)
        with admin, pytest.raises(UnreachableError) as raised:
            admin.describe_topics(["orders"])
    said = raised.value.message
    assert said.startswith("cannot describe topic orders: no ")
    assert ("no broker answers" in said) is not one_listens
    assert (f"no answer in time; the broker at {servers[0]} does not answer" in said) is one_listens


def test_an_old_cause_is_not_held_against_a_new_failure():
    now = [0.0]
    trouble = ConnectionTrouble(keep_seconds=30, monotonic=lambda: now[0])
    trouble(KafkaError(KafkaError._AUTHENTICATION))
    assert trouble.cause() is not None

    now[0] = 31
    assert trouble.cause() is None
    trouble(KafkaError(KafkaError._SSL))
    trouble.clear()
    assert trouble.cause() is None


def test_no_answer_to_a_commit_is_an_unknown_outcome():
    for code in (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._TRANSPORT):
        mapped = map_kafka_error(
            KafkaError(code), subject="", doing="commit", unknown_on_timeout=True
        )
        assert type(mapped) is UnknownOutcomeError
    decided = map_kafka_error(
        KafkaError(KafkaError._FENCED), subject="", doing="commit", unknown_on_timeout=True
    )
    assert type(decided) is FencedError


def test_a_code_nobody_has_listed_is_judged_by_its_flags():
    listed = map_kafka_error(
        KafkaError(KafkaError.UNKNOWN, retriable=True), subject="", doing="write"
    )
    aborts = map_kafka_error(
        KafkaError(KafkaError.UNKNOWN, txn_requires_abort=True), subject="", doing="write"
    )

    assert type(listed) is type(aborts) is TransientBrokerError


@pytest.mark.parametrize("open_client", [open_consumer, open_producer])
def test_a_setting_the_library_refuses_is_an_input_error(open_client):
    with pytest.raises(InputError, match=r"no\.such\.setting") as raised:
        open_client(
            {"bootstrap.servers": "a:1", "group.id": "g", "no.such.setting": 1}, subject="x"
        )
    assert raised.value.subject == "x"


def test_an_error_is_found_inside_an_exception_and_bare_as_listings_hold_it():
    bare = KafkaError(KafkaError._TIMED_OUT)
    assert as_kafka_error(bare) is bare
    assert as_kafka_error(KafkaException(bare)) is bare
    assert as_kafka_error(ValueError("odd")).code() == KafkaError._FAIL


def raise_as_the_library_does(error):
    """By C, which does not ask whether it is an exception."""
    for each in (type(error), error):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
    ctypes.pythonapi.PyErr_Restore(ctypes.py_object(type(error)), ctypes.py_object(error), None)


def test_an_error_that_is_no_exception_becomes_one():
    error = KafkaError(KafkaError._FENCED, "replaced", True)
    with pytest.raises(KafkaException) as raised, bare_errors_as_exceptions():
        raise_as_the_library_does(error)
    assert raised.value.args[0] is error
    assert isinstance(map_kafka_error(error, subject="", doing="write"), FencedError)
    assert "FENCED" in "".join(traceback.format_exception(raised.value)), "it can be shown"
    with pytest.raises(ZeroDivisionError), bare_errors_as_exceptions():
        _ = 1 / 0


def test_a_call_on_a_transaction_gives_such_an_error_as_an_exception():
    error = KafkaError(KafkaError._FENCED, "replaced", True)
    with pytest.raises(KafkaException) as raised:
        until_done(lambda: raise_as_the_library_does(error), final=lambda said: said)
    assert raised.value.args[0] is error
