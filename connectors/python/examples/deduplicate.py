"""Prints each event of a topic once, also after a kill: deduplicate.py BROKERS TOPIC GROUP

An event's id is its key. Results and offsets are two writes here: a kill between them repeats the results of a batch.
Where your results are in a database, commit the offsets in its transaction.
"""

import datetime
import itertools
import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition

import lethe

brokers, topic, group = sys.argv[1:]
stage = lethe.Stage(horizon=datetime.timedelta(hours=24))
known = {}  # by partition: its filter, and the offset up to which results are out
consumer = Consumer({"bootstrap.servers": brokers, "group.id": group, "enable.auto.commit": False,
                     "session.timeout.ms": 6000})  # how long a killed one keeps its partitions


def assign(_, partitions):
    for at in consumer.committed(partitions):
        known[at.partition] = stage.open(f"{topic}-{at.partition}"), at.offset
    # Or from a horizon ago on: consumer.offsets_for_times().
    consumer.assign([TopicPartition(topic, at.partition, OFFSET_BEGINNING) for at in partitions])


consumer.subscribe([topic], on_assign=assign)
while True:
    batch = [record for record in consumer.consume(500, timeout=1) if not record.error()]
    for number, records in itertools.groupby(sorted(batch, key=Message.partition), Message.partition):
        partition, done = known[number]
        for replays, part in itertools.groupby(records, lambda record: record.offset() < done):
            part = list(part)
            ids, times = [record.key() for record in part], [record.timestamp()[1] for record in part]
            if replays:
                partition.replay(ids, times)
                continue
            with partition.transaction() as transaction:
                for record in itertools.compress(part, transaction.judge_many(ids, times)):
                    print(record.key().decode(), flush=True)
                consumer.commit(part[-1], asynchronous=False)
