"""The model of transactions that controllers are simulated on does as real brokers do, by the same scripts."""

import random

from simulated_control import CHECKPOINTS, World

from replicator.control.store.controller_writer import Placed
from replicator.errors import FencedError
from replicator.kafka.admin.admin import ClusterAdmin
from replicator.kafka.logs.compacted_read import read_compacted
from replicator.kafka.logs.compacted_topic import ensure_compacted_topic
from replicator.kafka.logs.transactions import TransactionWriter
from replicator.topology.plan import ClusterPlan

IDS, OWNERS, STEPS, PARTITIONS = 2, 2, 40, 2
SEEDS = range(6)


def script(seed):
    """What which owner of which id does: open, write a value under a key, commit."""
    draw = random.Random(seed)
    everybody = [(each, owner) for each in range(IDS) for owner in range(OWNERS)]
    draw.shuffle(everybody)
    for number in range(STEPS):
        who = everybody[number] if number < len(everybody) else draw.choice(everybody)
        again = draw.choice(["write"] * 5 + ["commit"] * 4 + ["open"])
        act = "open" if number < len(everybody) else again
        # Keys of its own for each id: what two open transactions wrote under one key stands in the order
        # of the writes, in the model in that of the commits. Nobody writes keys of another who is not fenced.
        key = b"k%d.%d" % (who[0], draw.randrange(3))
        yield who, act, draw.randrange(PARTITIONS), key, b"%d" % number


def on_brokers(cluster, topic, seed):
    """What the topic holds afterwards."""
    writers = {}
    try:
        for who, act, partition, key, value in script(seed):
            if act == "open":
                if who in writers:
                    writers[who].close()
                name = f"{topic}.{who[0]}"
                writer = writers[who] = TransactionWriter(cluster, name, client_id="test")
                writer.open()
                writer.begin("a script")
            elif who in writers:
                try:
                    if act == "write":
                        writers[who].add(topic, partition, key, value)
                    else:
                        writers[who].commit()
                        writers[who].begin("a script")
                except FencedError:
                    writers.pop(who).close()
    finally:
        for writer in writers.values():
            writer.close()
    stored = read_compacted(
        cluster, topic, range(PARTITIONS), client_id="test",
        timeout_seconds=30, past_open_transactions=True,
    )  # fmt: skip
    return {number: held for number, held in stored.items() if held}


def in_the_model(seed):
    """The same of the model, and how often an owner was fenced."""
    world, open_, fenced = World(seed), {}, 0
    world.calm = True
    for who, act, partition, key, value in script(seed):
        if act == "open":
            open_[who] = world.initialise(str(who[0]))
        elif who in open_ and act == "write":
            open_[who].records.append(Placed(CHECKPOINTS, partition, key, value))
        elif who in open_:
            try:
                world.commit(open_[who])
            except FencedError:
                del open_[who]
                fenced += 1
    return {number: held for number, held in world.checkpoints.items() if held}, fenced


def test_the_same_scripts_come_to_the_same(west, unique):
    cluster = ClusterPlan("west", tuple(west.bootstrap_servers))
    total = 0
    for seed in SEEDS:
        topic = f"scripts.{seed}.{unique}"
        with ClusterAdmin(cluster, client_id="test") as admin:
            ensure_compacted_topic(admin, topic, partitions=PARTITIONS)
        wanted, fenced = in_the_model(seed)
        assert on_brokers(cluster, topic, seed) == wanted, seed
        total += fenced
    assert total > len(SEEDS), "most scripts fence somebody"
