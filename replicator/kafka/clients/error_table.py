"""What each error of the client library means to a person, as data.

One row per meaning: the codes, our class, what happened in plain words, and what to do. A code that
is in no row is decided by the library's own judgement of it (retriable or not), see ``errors``.
"""

# ruff: noqa: SLF001 - librdkafka begins the names of its local errors with an underscore

from dataclasses import dataclass

from confluent_kafka import KafkaError as K

from replicator.errors import (
    TRIED_AGAIN,
    AlreadyExistsError,
    AuthenticationFailedError,
    AuthorizerMissingError,
    BrokerRefusedError,
    FencedError,
    InputError,
    NotAuthorizedError,
    NotFoundError,
    RecordRefusedError,
    ReplicatorError,
    SourceDataLostError,
    TransientBrokerError,
    UnknownOutcomeError,
    UnreachableError,
    UnsupportedBrokerError,
)

DENIED = "the cluster refuses it to our user"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One row of the table; an empty ``what`` means that the library's own words are the best."""

    error: type[ReplicatorError]
    what: str
    remedy: str


_NETWORK = "Check that the brokers run and that bootstrapServers can be reached from here."
_BROKER = (
    "Check that this broker runs, and that the address it advertises can be reached from here."
)
_LATE = (
    "One broker that does not answer is enough for this: check that all of them run, and that the addresses "
    "they advertise can be reached from here."
)
_LOGIN = "Check username and password of the cluster's security block; they are read again at the next try."
_QUOTA = f"Ask the operators of the cluster for a higher quota. {TRIED_AGAIN}"

_ROWS: tuple[tuple[Meaning, tuple[int, ...]], ...] = (
    (
        Meaning(UnreachableError, "no broker answers", _NETWORK),
        (K._ALL_BROKERS_DOWN,),
    ),
    (
        Meaning(UnreachableError, "a broker does not answer", _BROKER),
        # With _DESTROY_BROKER the library gives up a question to a broker that it has forgotten meanwhile.
        (K._TRANSPORT, K._NODE_UPDATE, K._DESTROY_BROKER, K.NETWORK_EXCEPTION),
    ),
    (
        Meaning(UnreachableError, "no answer in time", _LATE),
        (K._TIMED_OUT, K._TIMED_OUT_QUEUE, K._MSG_TIMED_OUT, K._WAIT_COORD, K._WAIT_CACHE),
    ),
    (
        Meaning(
            UnreachableError,
            "a broker's host name does not resolve",
            "Check bootstrapServers, and the listeners that the brokers advertise.",
        ),
        (K._RESOLVE,),
    ),
    (
        Meaning(AuthenticationFailedError, "the login was refused", _LOGIN),
        (K._AUTHENTICATION, K.SASL_AUTHENTICATION_FAILED, K.DELEGATION_TOKEN_EXPIRED),
    ),
    (
        Meaning(
            AuthenticationFailedError,
            "the listener does not offer this SASL mechanism",
            "Set security.mechanism to one that the listener has enabled.",
        ),
        (K.UNSUPPORTED_SASL_MECHANISM, K.ILLEGAL_SASL_STATE),
    ),
    (Meaning(AuthenticationFailedError, "the TLS handshake failed", ""), (K._SSL,)),
    (
        Meaning(NotAuthorizedError, DENIED, "Allow it by an ACL on the topic."),
        (K.TOPIC_AUTHORIZATION_FAILED,),
    ),
    (
        Meaning(
            NotAuthorizedError, DENIED, "Allow READ (to commit offsets) by an ACL on the group."
        ),
        (K.GROUP_AUTHORIZATION_FAILED,),
    ),
    (
        Meaning(
            NotAuthorizedError,
            DENIED,
            "Allow it by an ACL on the resource 'cluster'; to write, WRITE on the topic is enough.",
        ),
        (K.CLUSTER_AUTHORIZATION_FAILED, K.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
    ),
    (
        Meaning(
            NotAuthorizedError,
            DENIED,
            "Allow WRITE and DESCRIBE by an ACL on the transactional ids that begin with '__replicator.'.",
        ),
        (K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,),
    ),
    (
        Meaning(
            UnsupportedBrokerError,
            "the brokers do not know this request",
            "Use a cluster of Kafka 3.0 or later.",
        ),
        (K.UNSUPPORTED_VERSION, K._UNSUPPORTED_FEATURE, K.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    ),
    (
        Meaning(
            FencedError, "another owner has taken over", "This one stops; nothing is to be done."
        ),
        (
            K._FENCED,
            K.PRODUCER_FENCED,
            K.INVALID_PRODUCER_EPOCH,
            K.FENCED_INSTANCE_ID,
            K.TRANSACTION_COORDINATOR_FENCED,
            K.FENCED_MEMBER_EPOCH,
        ),
    ),
    (
        Meaning(NotFoundError, "the topic or partition does not exist", ""),
        (K.UNKNOWN_TOPIC_OR_PART, K._UNKNOWN_TOPIC, K._UNKNOWN_PARTITION, K.UNKNOWN_TOPIC_ID),
    ),
    (
        Meaning(NotFoundError, "the group does not exist", ""),
        (K.GROUP_ID_NOT_FOUND, K._UNKNOWN_GROUP, K.RESOURCE_NOT_FOUND),
    ),
    (
        Meaning(AlreadyExistsError, "it exists already", ""),
        (K.TOPIC_ALREADY_EXISTS, K.DUPLICATE_RESOURCE),
    ),
    (
        Meaning(
            SourceDataLostError,
            "the offset does not exist any more",
            "Its records were removed by retention, or the topic was recreated.",
        ),
        (K.OFFSET_OUT_OF_RANGE, K._AUTO_OFFSET_RESET, K._LOG_TRUNCATION),
    ),
    (
        Meaning(
            RecordRefusedError,
            "the record is larger than the topic allows",
            "Raise max.message.bytes of the topic.",
        ),
        (K.MSG_SIZE_TOO_LARGE, K.RECORD_LIST_TOO_LARGE, K.INVALID_MSG_SIZE),
    ),
    (
        Meaning(RecordRefusedError, "the topic does not take this record", ""),
        (K.INVALID_RECORD, K.INVALID_TIMESTAMP),
    ),
    (
        Meaning(
            BrokerRefusedError,
            "the cluster does not take batches with this compression",
            "Name one that it takes as the cluster's kafka setting compression.type, or none.",
        ),
        (K.UNSUPPORTED_COMPRESSION_TYPE,),
    ),
    (
        Meaning(BrokerRefusedError, "a policy of the cluster forbids it", ""),
        (K.POLICY_VIOLATION, K.TOPIC_DELETION_DISABLED),
    ),
    (
        Meaning(
            AuthorizerMissingError,
            "the cluster has no authorizer, so there are no ACLs",
            "Set sync.acls to false, or authorizer.class.name on the brokers of this cluster.",
        ),
        (K.SECURITY_DISABLED,),
    ),
    (
        Meaning(
            BrokerRefusedError,
            "the cluster has too few brokers for this replication factor",
            "Lower sync.topics.replicationFactor, or add brokers.",
        ),
        (K.INVALID_REPLICATION_FACTOR,),
    ),
    (
        Meaning(BrokerRefusedError, "the request is not valid there", ""),
        (
            K.INVALID_PARTITIONS,
            K.INVALID_CONFIG,
            K.INVALID_REQUEST,
            K.TOPIC_EXCEPTION,
            K.INVALID_REPLICA_ASSIGNMENT,
            K.INVALID_GROUP_ID,
            K.OFFSET_METADATA_TOO_LARGE,
            K.INVALID_COMMIT_OFFSET_SIZE,
        ),
    ),
    (
        Meaning(
            BrokerRefusedError,
            "the broker allows no transaction this long",
            "Raise transaction.max.timeout.ms of the brokers.",
        ),
        (K.INVALID_TRANSACTION_TIMEOUT,),
    ),
    (
        Meaning(
            BrokerRefusedError,
            "the group is in use",
            "Its members keep their own positions; it is done when they are gone.",
        ),
        (
            K.NON_EMPTY_GROUP,
            K.UNKNOWN_MEMBER_ID,
            K.ILLEGAL_GENERATION,
            K.REBALANCE_IN_PROGRESS,
            K.GROUP_SUBSCRIBED_TO_TOPIC,
            K.STALE_MEMBER_EPOCH,
            K.INCONSISTENT_GROUP_PROTOCOL,
        ),
    ),
    (
        Meaning(TransientBrokerError, "the cluster's quota is used up", _QUOTA),
        (K.THROTTLING_QUOTA_EXCEEDED,),
    ),
    (
        Meaning(
            TransientBrokerError,
            "too few replicas are in sync",
            f"Bring the missing brokers back. {TRIED_AGAIN}",
        ),
        (K.NOT_ENOUGH_REPLICAS, K.NOT_ENOUGH_REPLICAS_AFTER_APPEND, K._ISR_INSUFF),
    ),
    (
        Meaning(TransientBrokerError, "the cluster is busy moving leadership", TRIED_AGAIN),
        (
            K.LEADER_NOT_AVAILABLE,
            K.NOT_LEADER_FOR_PARTITION,
            K.NOT_CONTROLLER,
            K.NOT_COORDINATOR,
            K.COORDINATOR_NOT_AVAILABLE,
            K.COORDINATOR_LOAD_IN_PROGRESS,
            K.REPLICA_NOT_AVAILABLE,
            K.BROKER_NOT_AVAILABLE,
            K.STALE_CTRL_EPOCH,
            K.STALE_BROKER_EPOCH,
            K.FENCED_LEADER_EPOCH,
            K.UNKNOWN_LEADER_EPOCH,
            K.OFFSET_NOT_AVAILABLE,
            K.LISTENER_NOT_FOUND,
            K.REBOOTSTRAP_REQUIRED,
            K.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            K.PREFERRED_LEADER_NOT_AVAILABLE,
            K.INCONSISTENT_TOPIC_ID,
            K.KAFKA_STORAGE_ERROR,
            K.REASSIGNMENT_IN_PROGRESS,
        ),
    ),
    (
        Meaning(TransientBrokerError, "an earlier request is not finished", TRIED_AGAIN),
        (
            K.CONCURRENT_TRANSACTIONS,
            K.UNSTABLE_OFFSET_COMMIT,
            K._RETRY,
            K._IN_PROGRESS,
            K._PREV_IN_PROGRESS,
            K._CONFLICT,
            K.OPERATION_NOT_ATTEMPTED,
            K._QUEUE_FULL,
        ),
    ),
    (
        Meaning(TransientBrokerError, "the broker did not finish in time", TRIED_AGAIN),
        (K.REQUEST_TIMED_OUT,),
    ),
    (
        Meaning(
            TransientBrokerError,
            "the transaction has to be aborted and begun again",
            TRIED_AGAIN,
        ),
        (K.TRANSACTION_ABORTABLE, K.UNKNOWN_PRODUCER_ID, K.INVALID_PRODUCER_ID_MAPPING),
    ),
    (
        Meaning(
            UnknownOutcomeError,
            "the client was closed before it was decided",
            "What was written is read again before going on.",
        ),
        (K._PURGE_INFLIGHT, K._PURGE_QUEUE, K._DESTROY),
    ),
    (Meaning(InputError, "the client library does not accept a setting", ""), (K._INVALID_ARG,)),
)

MEANINGS: dict[int, Meaning] = {code: meaning for meaning, codes in _ROWS for code in codes}
