"""What operators ask and do, on a link that carries whole batches, beside a worker that runs it."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from replicator.cli.main import run_command
from replicator.testing import commit_positions, wait_until

PARTITIONS = 2
RECORDS = 1_500


@pytest.fixture
def run(capsys):
    def command(*arguments):
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def fill(cluster, topic, numbers):
    producer = Producer({**cluster.client_settings(), "linger.ms": 5, "batch.num.messages": 100})
    for number in numbers:
        for partition in range(PARTITIONS):
            producer.produce(topic, b"%d" % number, b"%d" % number, partition=partition)
        producer.poll(0)
    assert producer.flush(30) == 0


def values(cluster, topic, partition):
    """Every committed record's offset by its value."""
    consumer = Consumer(
        {
            **cluster.client_settings(), "group.id": "scan", "enable.partition.eof": True,
            "isolation.level": "read_committed", "enable.auto.commit": False,
        }
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = {}
    while (message := consumer.poll(20)) is not None and message.error() is None:
        found[int(message.value())] = message.offset()
    consumer.close()
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_operators_get_the_answers_they_get_for_records(run, worker, east, west, unique):
    topic = f"{unique}.orders"
    copy = f"east.{topic}"
    east.create_topic(topic, partitions=PARTITIONS)
    worker.cluster(east)
    worker.cluster(west)
    worker.link(
        "orders", "east", "west", [topic], naming="prefix", engine="batches", mm2Compatibility=True
    )
    fill(east, topic, range(RECORDS))
    commit_positions(east, f"{unique}-billing", {(topic, 0): 700})
    worker.start()

    def positions():
        topics = worker.flow("east->west")["topics"]
        return [part["position"] for each in topics for part in each["partitions"]]

    wait_until(
        lambda: positions() == [RECORDS] * PARTITIONS,
        timeout_seconds=60, describe=lambda: f"everything copied: {worker.log_text()[-2000:]}",
    )  # fmt: skip
    fill(east, topic, range(RECORDS, RECORDS + 500))
    wait_until(
        lambda: positions() == [RECORDS + 500] * PARTITIONS,
        timeout_seconds=60, describe=lambda: f"everything copied: {worker.log_text()[-2000:]}",
    )  # fmt: skip
    source, target = values(east, topic, 0), values(west, copy, 0)
    assert list(target) == list(source)
    file = ("-f", worker.file, "-o", "json")
    place = ("--flow", "east->west", "--topic", topic, "--partition", 0)

    out = open("/tmp/batches-answers.txt", "w")
    for wanted in (0, 1, 777, 1499, 1500, 1750, 1999, 2000):
        print(
            "T",
            wanted,
            target.get(wanted),
            run("offsets", "translate", *place, "--offset", wanted, *file),
            file=out,
        )
    for wanted in (5, 1499, 1700):
        print(
            "R",
            wanted,
            run("offsets", "translate", *place, "--offset", target[wanted], "--reverse", *file),
            file=out,
        )
    for cluster, name, offset in (("east", topic, source[777]), ("west", copy, target[777])):
        print("TRACE", run("offsets", "trace", "--cluster", cluster, "--topic", name,
                  "--partition", 0, "--offset", offset, *file), file=out)  # fmt: skip
    for each in ("groups", "gaps", "topics", "status"):
        print(each, run(each, *file), file=out)
    out.close()
