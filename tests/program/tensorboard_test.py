"""TensorBoard's event files read by others: framing by struct, checksums by crcmod, messages by Google's protobuf.

tensorboard_test.py WRITE: lets WRITE (tensorboard_write) write random rows and compares every step, tag, value and wall time;
then continues the run from its middle; then reads the CSV with Python's csv and the JSONL with its json.
"""
import csv
import json
import math
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import crcmod.predefined
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

WRITE = pathlib.Path(sys.argv.pop(1)).resolve()
CRC = crcmod.predefined.mkCrcFun("crc-32c")
Field = descriptor_pb2.FieldDescriptorProto


def event_class():
    """Event and Summary with the field numbers of TensorFlow's event.proto, summary.proto and tensor.proto."""
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="test", syntax="proto3")

    def message(into, name, **fields):
        described = into.add(name=name)
        for field, (number, kind, *more) in fields.items():
            added = described.field.add(name=field, number=number, type=kind, label=Field.LABEL_OPTIONAL)
            if more:
                added.label = more[1]
                if more[0]:
                    added.type_name = more[0]
        return described

    summary = message(file.message_type, "Summary",
                      value=(1, Field.TYPE_MESSAGE, ".test.Summary.Value", Field.LABEL_REPEATED))
    message(summary.nested_type, "Value", tag=(1, Field.TYPE_STRING), simple_value=(2, Field.TYPE_FLOAT),
            tensor=(8, Field.TYPE_MESSAGE, ".test.Tensor", Field.LABEL_OPTIONAL),
            metadata=(9, Field.TYPE_MESSAGE, ".test.Metadata", Field.LABEL_OPTIONAL))
    message(file.message_type, "Dim", size=(1, Field.TYPE_INT64))
    message(file.message_type, "Shape", dim=(2, Field.TYPE_MESSAGE, ".test.Dim", Field.LABEL_REPEATED))
    message(file.message_type, "Tensor", dtype=(1, Field.TYPE_INT32),
            tensor_shape=(2, Field.TYPE_MESSAGE, ".test.Shape", Field.LABEL_OPTIONAL),
            string_val=(8, Field.TYPE_BYTES, "", Field.LABEL_REPEATED))
    message(file.message_type, "Plugin", plugin_name=(1, Field.TYPE_STRING))
    message(file.message_type, "Metadata", plugin_data=(1, Field.TYPE_MESSAGE, ".test.Plugin", Field.LABEL_OPTIONAL))
    message(file.message_type, "Event", wall_time=(1, Field.TYPE_DOUBLE), step=(2, Field.TYPE_INT64),
            file_version=(3, Field.TYPE_STRING), summary=(5, Field.TYPE_MESSAGE, ".test.Summary", Field.LABEL_OPTIONAL))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("test.Event")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(pool).GetPrototype(descriptor)


Event = event_class()


def masked(data):
    crc = CRC(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events_in(content):
    events = []
    while content:
        length, length_crc = struct.unpack_from("<QI", content)
        data, rest = content[12 : 12 + length], content[12 + length :]
        (data_crc,) = struct.unpack_from("<I", rest)
        assert length_crc == masked(content[:8]) and len(data) == length and data_crc == masked(data)
        events.append(Event.FromString(data))
        content = rest[4:]
    return events


def as_float(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def random_rows(seed, with_time):
    generator = random.Random(seed)
    tags = ["loss", "val_loss", "attention/ratio", "lr", "ü/中 \"x\", y", "t" * 200]
    steps = sorted({0, 1, 127, 128, 2**40, 2**63 - 1} | {generator.randrange(10**6) for _ in range(300)})
    rows = []
    for number, step in enumerate(steps):
        row = {"step": step}
        if with_time:
            row["time"] = 1.6e9 + 0.25 * number
        row.update((tag, generator.choice([generator.gauss(0, 1), 10 ** generator.uniform(-30, 30), 0.0, 3.0, None]))
                   for tag in tags if generator.random() < 0.7)
        if generator.random() < 0.1:
            row["sample"] = "Once \"upon\"\n a <b>time</b>, " + "ü中" * generator.randrange(200)
        rows.append(row)
    return rows


class TensorBoard(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.run_folder = pathlib.Path(folder.name)

    def write(self, rows, last_step):
        source = self.run_folder / "rows"
        source.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        done = subprocess.run([WRITE, self.run_folder, source, str(last_step)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def event_file(self):
        names = os.listdir(self.run_folder / "tb")
        self.assertEqual(len(names), 1, names)
        seconds, host = names[0].removeprefix("events.out.tfevents.").split(".", 1)
        self.assertTrue(names[0].startswith("events.out.tfevents."), names)
        self.assertLess(abs(time.time() - int(seconds)), 60)
        self.assertEqual(host, socket.gethostname())
        return self.run_folder / "tb" / names[0]

    def expect(self, rows):
        version, *events = events_in(self.event_file().read_bytes())
        self.assertEqual((version.file_version, version.step, len(version.summary.value)), ("brain.Event:2", 0, 0))
        texts = [event for event in events if event.summary.value and event.summary.value[0].HasField("tensor")]
        for event, row in zip(texts, [row for row in rows if "sample" in row], strict=True):
            (value,) = event.summary.value
            self.assertEqual((event.step, value.tag, value.metadata.plugin_data.plugin_name), (row["step"], "sample", "text"))
            self.assertEqual((value.tensor.dtype, [dim.size for dim in value.tensor.tensor_shape.dim]), (7, [1]))
            self.assertEqual([text.decode() for text in value.tensor.string_val], [row["sample"]])
        events = [event for event in events if event not in texts]
        for event, row in zip(events, rows, strict=True):
            self.assertEqual((event.step, event.file_version), (row["step"], ""))
            if "time" in row:
                self.assertEqual(event.wall_time, row["time"])
            else:
                self.assertLess(abs(time.time() - event.wall_time), 60)
            written = [(tag, value) for tag, value in row.items() if tag not in ("step", "sample")]
            self.assertEqual([value.tag for value in event.summary.value], [tag for tag, _ in written])
            for value, (tag, expected) in zip(event.summary.value, written):
                if expected is None:
                    self.assertTrue(math.isnan(value.simple_value), (row["step"], tag))
                else:
                    self.assertEqual(value.simple_value, as_float(expected), (row["step"], tag))

    def expect_text_files(self, rows):
        lines = (self.run_folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        self.assertEqual([json.loads(line) for line in lines], rows)
        with open(self.run_folder / "metrics.csv", encoding="utf-8", newline="") as file:
            table = list(csv.DictReader(file, strict=True))
        for cells, row in zip(table, rows, strict=True):
            self.assertEqual(int(cells.pop("step")), row["step"])
            self.assertEqual({tag: float(cell) for tag, cell in cells.items() if cell},
                             {tag: value for tag, value in row.items() if tag not in ("step", "sample") and value is not None})

    def test_every_value_of_a_new_and_a_continued_run(self):
        for seed, with_time in ((1, True), (2, False)):
            rows = random_rows(seed, with_time)
            self.write(rows, -1)
            self.expect(rows)
            self.expect_text_files(rows)
            middle = rows[len(rows) // 2]["step"]
            changed = [row if row["step"] <= middle else {**row, "loss": 7.0} for row in rows]
            self.write(changed, middle)
            self.expect(changed)
            self.expect_text_files(changed)

    def test_the_reader_here_sees_damage(self):
        self.write(random_rows(3, True), -1)
        content = self.event_file().read_bytes()
        for at in random.Random(4).sample(range(len(content)), 50):
            damaged = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            with self.assertRaises((AssertionError, struct.error), msg=at):
                events_in(damaged)


if __name__ == "__main__":
    unittest.main()
