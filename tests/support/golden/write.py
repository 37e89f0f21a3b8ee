"""Writes the same order in the encodings that users have, beside this file: `python3 write.py`.

Needs fastavro, protobuf (it was 1.13.1 and 4.25.9) and protoc, so that lethe is tested with bytes of others.
"""
import base64
import decimal
import io
import json
import pathlib
import subprocess
import tempfile
import uuid

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

HERE = pathlib.Path(__file__).parent
ORDER = json.loads((HERE / "order.json").read_text())


def write_avro(name, order):
    schema = fastavro.parse_schema(json.loads((HERE / f"{name}.avsc").read_text()))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, order)
    (HERE / f"{name}.avro").write_bytes(out.getvalue())


def avro_order():
    order = json.loads((HERE / "order.json").read_text())
    inner = order["order"]
    inner["price"] = decimal.Decimal(str(inner["price"]))
    inner["uid"] = uuid.UUID(inner["uid"])
    return order


first = avro_order()
write_avro("order_1", first)

second = avro_order()
second["source"] = b"\0\xff"
second["order"]["identifier"] = second["order"].pop("id")
second["order"]["uid"] = second["order"]["uid"].bytes
second["previous"] = {"order": second["order"], "at": 1, "source": b"", "previous": None}
write_avro("order_2", second)

with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "set"
    subprocess.run(["protoc", f"-I{HERE}", f"--descriptor_set_out={out}", "order.proto"], check=True)
    file = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file[0]
(HERE / "order.descriptor").write_text(base64.b64encode(file.SerializeToString()).decode())
pool = descriptor_pool.DescriptorPool()
pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
pool.Add(file)
message = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Envelope"))()
for key, value in ORDER["order"].items():
    field = message.DESCRIPTOR.fields_by_name["order"].message_type.fields_by_name[key]
    if field.label == field.LABEL_REPEATED:
        into = getattr(message.order, key)
        (into.update if isinstance(value, dict) else into.extend)(value)
    elif key == "kind":
        message.order.kind = field.enum_type.values_by_name[value].number
    else:
        setattr(message.order, key, value)
message.created.FromMilliseconds(ORDER["at"])
message.at = ORDER["at"]
(HERE / "order.protobuf").write_bytes(message.SerializeToString())
