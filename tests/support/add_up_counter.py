"""Adds up the topic of a counter, of either mode, and prints KEY=TOTAL lines, sorted.

    add_up_counter.py BROKERS TOPIC
"""

import json
import sys

from confluent_kafka import Consumer, KafkaError, TopicPartition

brokers, topic = sys.argv[1:]
consumer = Consumer(
    {
        "bootstrap.servers": brokers,
        "group.id": "add-up",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
)
partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
unread = set(partitions)
deltas, shards = {}, {}
while unread:
    message = consumer.poll(30)
    if message is None:
        sys.exit("nothing came for 30 s")
    if message.error():
        if message.error().code() != KafkaError._PARTITION_EOF:
            sys.exit(str(message.error()))
        unread.discard(message.partition())
        continue
    key, value = message.key().decode(), message.value().decode()
    if value.startswith("{"):
        shards[key] = json.loads(value)["total"]
    else:
        deltas[key] = deltas.get(key, 0) + int(value)
consumer.close()
totals = dict(deltas)
for shard, total in shards.items():
    key = shard.split("/", 3)[3]
    totals[key] = totals.get(key, 0) + total
for key in sorted(totals):
    print(f"{key}={totals[key]}")
