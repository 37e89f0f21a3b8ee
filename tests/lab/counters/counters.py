#!/usr/bin/env python3
"""The paper's experiment with counters in real stores: Figure 14, counts over time, and Figure 15, latency.

counters.py --brokers HOST:PORT --build BUILD --out FOLDER [--seconds 60] [--pairs 1500] [--seed 1] [STORE ...]

Clients increment counters, and a share of their acknowledgements is lost: the client draws that from the seed,
takes the answer for missing, waits out its timeout, and sends the same increment again. One half of the clients
increments the store itself; the other sends the same increments as events, and sends them again as often, to
Kafka, where lethe counts the unique ones and brings the totals to the same store. A node of the store is killed
after a third of the run, and started again after half of it.

Writes fig14.csv, fig14_ends.csv, fig15.csv and fig15_costs.csv to FOLDER.
"""
import argparse
import csv
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy
from cassandra import DriverException
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionException
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from redis import RedisError

import stores

CLIENTS = 8
PARTITIONS = 3
RATE = 60  # increments a second, of all clients
LOST = 0.06  # of the acknowledgements
CLIENT_TIMEOUT = 0.2
FPP = 1e-9
SAMPLE_EVERY = 0.25
# What Figure 15 does with each store: the store's kind for counter_batches, and a name.
BATCHES = {
    "redis": [("redis-single", "Redis, always synced, one by one"), ("redis", "Redis, always synced, pipeline")],
    "redis-relaxed": [("redis", "Redis, synced each second, pipeline")],
    "cassandra-1": [("cassandra", "Cassandra, 1 node, batch")],
    "cassandra-3": [("cassandra", "Cassandra, 3 nodes, batch")],
}
STORE_ERRORS = (RedisError, DriverException, NoHostAvailable, ConnectionException)


def say(text):
    print(f"[{time.monotonic() - say.start:4.0f} s] {text}", flush=True)


class Increment:
    def __init__(self, client, number, draw):
        self.id = f"{client}-{number}"
        self.client = client
        self.due = (number * CLIENTS + client) / RATE
        self.page = draw.choice(stores.PAGES)
        self.lost = 0  # acknowledgements
        while draw.random() < LOST:
            self.lost += 1


def plan(seed, seconds):
    """What each client does."""
    draw = random.Random(seed)
    return [[Increment(client, n, draw) for n in range(seconds * RATE // CLIENTS)] for client in range(CLIENTS)]


class Client(threading.Thread):
    """Sends its increments when they are due, each until an acknowledgement arrives."""

    def __init__(self, increments, start, send):
        super().__init__(daemon=True)
        self.increments, self.start_time, self.send = increments, start, send
        self.sent_again = 0  # after a lost acknowledgement
        self.failed = 0  # attempts whose outcome the store did not tell
        self.start()

    def run(self):
        for increment in self.increments:
            time.sleep(max(0, self.start_time + increment.due - time.monotonic()))
            lost = increment.lost
            while True:
                try:
                    self.send(increment)
                    if lost == 0:
                        break
                    lost -= 1
                    self.sent_again += 1
                except STORE_ERRORS:
                    self.failed += 1
                time.sleep(CLIENT_TIMEOUT)


def kafka_sender(brokers, topic):
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 0, "acks": "all", "log_level": 4})

    def send(increment):
        producer.produce(topic, key=str(increment.client),
                         value=json.dumps({"id": increment.id, "page": increment.page}))
        if producer.flush(60) > 0:
            raise RuntimeError("the Kafka broker does not answer")
    return send


class TotalsToCassandra(threading.Thread):
    """Brings lethe's totals to Cassandra: a plain consumer of committed records and a plain update.

    The update's timestamp is the record's offset. Offsets of a shard rise, and Cassandra keeps the value with the
    highest timestamp, so a total may be written any number of times, and after later ones.
    """

    def __init__(self, brokers, topic, cassandra):
        super().__init__(daemon=True)
        self.brokers, self.topic, self.cassandra = brokers, topic, cassandra
        self.stopping = False
        self.start()

    def run(self):
        self.read(lambda ended: self.stopping)

    def replay(self):
        """Ends the thread, and writes all totals once more, from the first to the last."""
        self.stopping = True
        self.join()
        return self.read(lambda ended: len(ended) == PARTITIONS)

    def read(self, done):
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": "unused", "enable.auto.commit": False,
                             "isolation.level": "read_committed", "enable.partition.eof": True})
        consumer.assign([TopicPartition(self.topic, p, 0) for p in range(PARTITIONS)])
        ended, written = set(), 0
        while not done(ended):
            rows = []
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    ended.discard(message.partition())
                    rows.append(self.row(message))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
            while rows:
                try:
                    self.cassandra.set_totals(rows)
                    written += len(rows)
                    break
                except STORE_ERRORS:
                    time.sleep(0.5)
        consumer.close()
        return written

    @staticmethod
    def row(message):
        # COUNTER/TOPIC/PARTITION/KEY
        _, _, shard, page = message.key().decode().split("/", 3)
        return message.offset() + 1, json.loads(message.value())["total"], page, int(shard)


class Run:
    """Figure 14 for one store."""

    def __init__(self, arguments, store):
        self.store, self.seconds, self.brokers = store, arguments.seconds, arguments.brokers
        self.topic = f"likes-{store.name}"
        self.totals = f"{self.topic}-totals"
        self.unique = f"{self.topic}-unique"
        self.plans = plan(arguments.seed, arguments.seconds)
        self.samples = []
        admin = AdminClient({"bootstrap.servers": self.brokers, "log_level": 4})
        topics = [NewTopic(self.topic, PARTITIONS, 1), NewTopic(self.unique, PARTITIONS, 1),
                  NewTopic(self.totals, PARTITIONS, 1, config={"cleanup.policy": "compact"})]
        for created in admin.create_topics(topics).values():
            created.result()
        self.lethe = [str(pathlib.Path(arguments.build) / "lethe"), "run", f"--brokers={self.brokers}",
                      f"--input={self.topic}", f"--output={self.unique}", "--id=json:/id", "--horizon=24h",
                      f"--fpp={FPP}", "--http=off",
                      f"--counter=name=likes,mode=total,key=json:/page,output={self.totals}" + store.lethe_counter()]
        self.log = pathlib.Path(arguments.work) / f"lethe-{store.name}.log"

    def expected(self, second):
        return sum(increment.due <= second for increments in self.plans for increment in increments)

    def sample(self, start):
        def total(read):
            try:
                return sum(read().values())
            except STORE_ERRORS:
                return "nan"  # it is away
        without, with_lethe = total(self.store.without), total(lambda: self.store.with_lethe(self.totals))
        second = time.monotonic() - start
        self.samples.append({"store": self.store.name, "second": round(second, 2), "expected": self.expected(second),
                             "without": without, "with": with_lethe})

    def play(self):
        with open(self.log, "ab") as log:
            lethe = subprocess.Popen(self.lethe, stderr=log, stdout=log, preexec_fn=stores.die_with_parent)
        brought = None
        if isinstance(self.store, stores.Cassandra):
            brought = TotalsToCassandra(self.brokers, self.totals, self.store)
        start = time.monotonic()
        without = [Client(increments, start, lambda i: self.store.increment(i.page)) for increments in self.plans]
        with_lethe = [Client(increments, start, kafka_sender(self.brokers, self.topic)) for increments in self.plans]
        stop = threading.Event()

        def watch():
            while not stop.wait(SAMPLE_EVERY):
                self.sample(start)
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()

        def sleep_until(second):
            time.sleep(max(0, start + second - time.monotonic()))
        sleep_until(self.seconds / 3)
        self.store.kill()
        killed = time.monotonic() - start
        say(f"  {self.store.label}: a node is killed")
        sleep_until(self.seconds / 2)
        self.store.restart()
        back = time.monotonic() - start
        say(f"  {self.store.label}: it is back after {back - killed:.0f} s")
        for client in without + with_lethe:
            client.join()
        say(f"  {self.store.label}: all is sent")
        # To the end of what was sent, and of what the store must be told.
        lethe.send_signal(signal.SIGTERM)
        lethe.wait()
        with open(self.log, "ab") as log:
            subprocess.run(self.lethe + ["--exit-at-end"], stderr=log, stdout=log, check=True)
        if brought is not None:
            say(f"  {self.store.label}: {brought.replay()} totals written again, from the first on")
        stop.set()
        watcher.join()
        self.sample(start)
        return self.end(without, with_lethe, killed, back)

    def end(self, without, with_lethe, killed, back):
        truth = {}
        for increments in self.plans:
            for increment in increments:
                truth[increment.page] = truth.get(increment.page, 0) + 1
        expected = sum(truth.values())
        counted = {"without": self.store.without(), "with": self.store.with_lethe(self.totals)}
        row = {"store": self.store.name, "label": self.store.label, "killed": round(killed, 1), "back": round(back, 1),
               "expected": expected, "sent_again": sum(c.sent_again for c in without),
               "failed": sum(c.failed for c in without), "without": sum(counted["without"].values()),
               "sent_again_with": sum(c.sent_again for c in with_lethe), "with": sum(counted["with"].values())}
        for name, totals in counted.items():
            row[f"wrong_pages_{name}"] = sum(totals.get(page, 0) != n for page, n in truth.items())
        say(f"  {self.store.label}: expected {expected}, without lethe {row['without']} "
            f"({100 * (row['without'] / expected - 1):+.2f} %), with lethe {row['with']} ({row['with'] - expected:+d})")
        return row


def figure_15(arguments, kind, store, label):
    """Pairs of batches, one with the filter and one without."""
    out = subprocess.run([str(pathlib.Path(arguments.build) / "tests" / "counter_batches"), kind, str(store.port),
                          str(arguments.pairs), str(arguments.seed)], check=True, stdout=subprocess.PIPE, text=True)
    pairs = numpy.array([line.split(",") for line in out.stdout.split()], dtype=float) / 1000
    percentiles = [*range(1, 100, 2), 99.5]
    rows = [{"store": label, "percentile": percentile, "without_us": f"{a:.2f}", "with_us": f"{b:.2f}"}
            for percentile, (a, b, _) in zip(percentiles, numpy.percentile(pairs, percentiles, axis=0))]
    # How far chance alone would move the difference of the two p50.
    chance = numpy.random.default_rng(arguments.seed)
    again = [numpy.median(pairs[chance.integers(len(pairs), size=len(pairs))], axis=0) for _ in range(1000)]
    low, high = numpy.percentile([100 * (b / a - 1) for a, b, _ in again], [2.5, 97.5])
    (p50, p50_with, filter50), (p99, p99_with, filter99) = numpy.percentile(pairs, [50, 99], axis=0)
    cost = {"store": label, "p50_without_us": f"{p50:.1f}", "p50_with_us": f"{p50_with:.1f}",
            "p99_without_us": f"{p99:.1f}", "p99_with_us": f"{p99_with:.1f}", "filter_p50_us": f"{filter50:.2f}",
            "filter_p99_us": f"{filter99:.2f}", "filter_percent": f"{100 * filter50 / p50:.3f}",
            "p50_higher_percent": f"{100 * (p50_with / p50 - 1):.2f}", "low": f"{low:.2f}", "high": f"{high:.2f}"}
    say(f"  {label}: p50 {p50:.0f} us without and {p50_with:.0f} us with the filter, of which it takes "
        f"{filter50:.1f} us ({100 * filter50 / p50:.2f} %)")
    return rows, cost


def write(folder, name, parameters, rows):
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    with open(pathlib.Path(folder) / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
        file.write(f"# {parameters}\n")
        table = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def end_all(error):
    """A thread that ends before its time would leave figures that look like measurements."""
    threading.__excepthook__(error)
    os.kill(os.getpid(), signal.SIGTERM)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("stores", nargs="*", default=list(BATCHES))
    arguments = parser.parse_args()
    say.start = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.excepthook = end_all
    samples, ends, curves, costs = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="lethe-lab-") as arguments.work:
        for step, name in enumerate(arguments.stores, 1):
            say(f"[{step}/{len(arguments.stores)}] {name}")
            folder = pathlib.Path(arguments.work) / name
            if name.startswith("redis"):
                store = stores.Redis(folder, fsync="everysec" if name == "redis-relaxed" else "always")
            else:
                libs = pathlib.Path(arguments.build) / "cassandra" / "libs"
                store = stores.Cassandra(folder, libs, int(name.partition("-")[2]))
            try:
                if name != "redis-relaxed":
                    run = Run(arguments, store)
                    ends.append(run.play())
                    samples += run.samples
                for kind, label in BATCHES[name]:
                    rows, cost = figure_15(arguments, kind, store, label)
                    curves += rows
                    costs.append(cost)
            finally:
                store.stop()
    what = (f"{CLIENTS} clients; {RATE} increments/s of {len(stores.PAGES)} counters; "
            f"{100 * LOST:.0f} % of the acknowledgements lost; sent again after {CLIENT_TIMEOUT} s; "
            f"lethe: horizon 24 h, fpp {FPP:g}; seed {arguments.seed}")
    write(arguments.out, "fig14", what, samples)
    write(arguments.out, "fig14_ends", what, ends)
    what = (f"{arguments.pairs} pairs of batches of 50 updates, all new, in random order; the filter: horizon 24 h, "
            f"fpp 1e-6, 1,000,000 ids held; seed {arguments.seed}")
    write(arguments.out, "fig15", what, curves)
    write(arguments.out, "fig15_costs", what, costs)


if __name__ == "__main__":
    main()
