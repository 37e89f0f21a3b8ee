"""The example of a consumer, killed and started again: consumer_test.py BROKERS EXAMPLE"""

import subprocess
import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC, GROUP, PARTITIONS = "events", "example", 2
brokers, example = sys.argv[1:]
client = {"bootstrap.servers": brokers}
admin = AdminClient(client)
admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
producer = Producer(client)
offsets = Consumer({**client, "group.id": GROUP})
written = 0


def write(ids):
    global written
    for id in ids:
        producer.produce(TOPIC, key=id, value="")
        written += 1
    producer.flush(30)


def committed():
    at = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    return sum(max(0, each.offset) for each in offsets.committed(at, timeout=30))


def run(expected):
    """Starts the example, and kills it once it has committed all that was written; the ids that it printed."""
    command = [sys.executable, "-B", example, brokers, TOPIC, GROUP]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        found = [process.stdout.readline().strip() for _ in range(expected)]
        while process.poll() is None and committed() < written:
            pass
    finally:
        process.kill()
    return sorted(found + process.stdout.read().split())


first = [f"id{i}" for i in range(300)]
write(first + first[::-1])
found = run(len(first))
assert found == sorted(first), found
second = [f"more{i}" for i in range(300)]
write(second[:100] + first + second)
found = run(len(second))
assert found == sorted(second), found
offsets.close()
print("consumer: each event once")
