"""The Python package as it is installed: lethe_test.py README VERSION, in a venv that has the wheel."""

import datetime
import doctest
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import lethe

README, VERSION = sys.argv[1:3]
START = 1_700_000_000_000
UTC = datetime.timezone.utc


def small_stage(**options):
    return lethe.Stage(horizon=datetime.timedelta(minutes=1), memory_limit=64 << 20, **options)


class JudgingTest(unittest.TestCase):
    def setUp(self):
        self.stage = small_stage()
        self.partition = self.stage.open("orders-0")

    def test_one(self):
        self.assertIs(self.partition.judge("a", START), True)
        self.assertIs(self.partition.judge(b"a", START), False)  # a str is its UTF-8
        self.assertIs(self.partition.judge("", None), True)
        self.assertIs(self.partition.judge("gr\u00fc\u00dfe", START), True)
        self.assertIs(self.partition.judge("gr\u00fc\u00dfe".encode(), START), False)

    def test_all_kinds_of_ids_are_the_same_ids(self):
        ids = ["a", "bcd", "\u00fc", "a", ""]
        kinds = {
            "str": ids,
            "bytes": [id.encode() for id in ids],
            "mixed": [ids[0], *(id.encode() for id in ids[1:])],
            "tuple": tuple(ids),
            "S": np.array([id.encode() for id in ids]),
            "U": np.array(ids),
            "object": np.array(ids, dtype=object),
            "strided": np.repeat(np.array([id.encode() for id in ids]), 2)[::2],
        }
        for name, kind in kinds.items():
            with self.subTest(name):
                partition = self.stage.open(name)
                unique = partition.judge_many(kind, START)
                self.assertEqual(unique.dtype, np.bool_)
                self.assertEqual(unique.tolist(), [True, True, True, False, True])
                self.assertEqual(partition.judge_many(ids, START).tolist(), [False] * 5)
        self.assertEqual(self.partition.judge_many([], START).tolist(), [])

    def test_all_kinds_of_times_are_the_same_times(self):
        times = [START + 1000 * i for i in range(400)]
        ids = [str(i) for i in range(400)]
        expected = None
        for kind in (times, np.array(times), np.array(times, "datetime64[ms]"),
                     [datetime.datetime.fromtimestamp(ms / 1000, UTC) for ms in times]):
            partition = self.stage.open("times")
            partition.judge_many(ids, kind)
            status = partition.status()
            expected = expected or status
            self.assertEqual(status.stream_time_ms, expected.stream_time_ms)
            self.assertEqual(partition.stream_time,
                             datetime.datetime.fromtimestamp(status.stream_time_ms / 1000, UTC))
        self.assertLess(expected.ids, 400)  # the first are forgotten
        self.assertEqual(expected.unique, 400)

    def test_a_batch_of_many_chunks_is_one_stream(self):
        ids = [b"%d" % (i // 2) for i in range(200_001)]
        unique = self.partition.judge_many(ids, START + np.arange(len(ids)) // 100)
        self.assertEqual(unique.tolist(), [i % 2 == 0 for i in range(len(ids))])

    def test_what_is_no_id_and_no_time(self):
        for wrong in (1, None, np.arange(3)):
            with self.assertRaises(TypeError):
                self.partition.judge(wrong, START)
            with self.assertRaises(TypeError):
                self.partition.judge_many([b"a", wrong], START)
        with self.assertRaises(TypeError):
            self.partition.judge_many(np.array([1, 2]), START)
        for wrong in (1.5, "now", datetime.datetime(2026, 1, 1)):  # the last has no zone
            with self.assertRaises(TypeError):
                self.partition.judge("a", wrong)
        for wrong in ([START], np.array([START] * 3), np.array([[START, START]])):
            with self.assertRaises(ValueError):
                self.partition.judge_many(["a", "b"], wrong)
        with self.assertRaises(ValueError):
            self.partition.judge_many(np.array([["a"], ["b"]]), START)
        self.assertEqual(self.partition.status().unique, 0)

    def test_stream_time(self):
        self.assertIsNone(self.partition.stream_time)
        self.assertIsNone(self.partition.status().stream_time_ms)
        self.partition.start_at(START)
        self.assertTrue(self.partition.judge("a", START))
        self.partition.limit_stream_time(START)
        self.partition.advance_to(START + 10**6)
        self.assertFalse(self.partition.judge("a", START))
        self.partition.limit_stream_time(None)
        self.partition.advance_to(START + 10**6)
        self.partition.observe(START + 10**6)
        self.assertEqual(self.partition.stream_time,
                         datetime.datetime.fromtimestamp(START // 1000 + 1000, UTC))
        self.assertTrue(self.partition.judge("a", START))

    def test_the_interpreter_goes_on_meanwhile(self):
        # A thread judges one long batch of a single chunk again and again; this one counts.
        ids = np.char.add("id", np.arange(1 << 16).astype("U")).astype("S")
        stop = threading.Event()
        calls = []

        def judge():
            while not stop.is_set():
                begin = time.monotonic()
                self.partition.judge_many(ids, START)
                calls.append((begin, time.monotonic()))

        before = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # the lock is never taken from a thread: it must give it
        thread = threading.Thread(target=judge)
        try:
            thread.start()
            turns = 0
            while len(calls) < 5:
                turns += 1
                time.sleep(0)
        finally:
            stop.set()
            sys.setswitchinterval(before)
            thread.join()
        self.assertGreater(turns, 5)

    def test_threads(self):
        stage = small_stage(shards=8)
        partition = stage.open("threads")
        ids = [str(i) for i in range(20_000)]
        found = []
        threads = [threading.Thread(target=lambda: found.append(partition.judge_many(ids, START))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue((np.sum(found, axis=0) == 1).all())


class TransactionTest(unittest.TestCase):
    def setUp(self):
        self.partition = small_stage().open("orders-0")

    def test_commits_at_the_end(self):
        with self.partition.transaction() as transaction:
            self.assertTrue(transaction.judge("a", START))
            self.assertEqual(transaction.judge_many(["a", "b"], START).tolist(), [False, True])
            self.assertEqual(self.partition.status().pending, 2)
            transaction.observe(START)
            transaction.forget("b")
        self.assertFalse(self.partition.judge("a", START))
        self.assertTrue(self.partition.judge("b", START))

    def test_aborts_on_an_exception(self):
        with self.assertRaises(ZeroDivisionError):
            with self.partition.transaction() as transaction:
                self.assertTrue(transaction.judge("a", START))
                raise ZeroDivisionError
        self.assertTrue(self.partition.judge("a", START))

    def test_aborts_when_it_is_forgotten(self):
        transaction = self.partition.transaction()
        self.assertTrue(transaction.judge("a", START))
        del transaction
        self.assertTrue(self.partition.judge("a", START))

    def test_nothing_goes_on_outside_or_after_it(self):
        with self.partition.transaction() as transaction:
            with self.assertRaises(lethe.Error) as raised:
                self.partition.judge("a", START)
            self.assertEqual(raised.exception.code, lethe.Code.FAILED_PRECONDITION)
            self.assertIn("orders-0", str(raised.exception))
            transaction.commit()
            for call in (lambda: transaction.judge("a", START), transaction.commit, transaction.abort,
                         lambda: transaction.forget("a"), lambda: transaction.observe(START)):
                with self.assertRaises(lethe.Error) as raised:
                    call()
                self.assertEqual(raised.exception.code, lethe.Code.FAILED_PRECONDITION)
        self.assertTrue(self.partition.judge("a", START))


class SnapshotTest(unittest.TestCase):
    def test_survives(self):
        origin = lethe.Origin("orders", 3, "json:/id")
        point = lethe.Point(12, 13, 2**64 - 1, b"n\0te")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "orders.snapshot"
            stage = small_stage(snapshot_secret=bytes(range(16)))
            partition = stage.open("orders")
            partition.judge("a", START)
            partition.save(path, origin, point)
            live = partition.snapshot(origin, point)
            partition.judge("b", START)
            live.note_end(17)
            live.write(os.path.join(folder, "live"))
            del partition

            restored, at = stage.restore("orders", path, origin)
            self.assertEqual(at, point)
            self.assertEqual(restored.judge_many(["a", "b"], START).tolist(), [False, True])
            restored, at = stage.restore("orders", os.path.join(folder, "live"), origin)
            self.assertEqual(at.end_offset, 17)
            self.assertFalse(restored.judge("a", START))

            for name, other_stage, code in ((path, small_stage(), lethe.Code.FAILED_PRECONDITION),
                                            (path.with_name("none"), stage, lethe.Code.NOT_FOUND)):
                with self.assertRaises(lethe.Error) as raised:
                    other_stage.restore("orders", name, origin)
                self.assertEqual(raised.exception.code, code)
            path.write_bytes(path.read_bytes()[:-9])
            with self.assertRaises(lethe.Error) as raised:
                stage.restore("orders", path, origin)
            self.assertEqual(raised.exception.code, lethe.Code.DATA_LOSS)

    def test_replay(self):
        partition = small_stage().open("orders")
        partition.replay(["a", "b", "a"], START)
        self.assertEqual(partition.status().replayed, 3)
        self.assertEqual(partition.judge_many(["a", "b", "c"], START).tolist(), [False, False, True])


class StageTest(unittest.TestCase):
    def test_options(self):
        with self.assertRaises(lethe.Error) as raised:
            lethe.Stage(target_fpp=2)
        self.assertEqual(raised.exception.code, lethe.Code.INVALID_ARGUMENT)
        for wrong in ({"engine": "bloom"}, {"snapshot_secret": b"short"}):
            with self.assertRaises(ValueError):
                lethe.Stage(**wrong)
        exact = lethe.Stage(engine="exact", renew=True, audit_share=1.0)
        partition = exact.open("exact")
        partition.judge_many(["a", "b", "a"], START)
        status = partition.status()
        self.assertEqual((status.unique, status.duplicates, status.audit_ids), (2, 1, 2))
        self.assertGreaterEqual(exact.used_bytes, status.memory_bytes)
        exact.set_memory_limit(2 << 30)
        with self.assertRaises(lethe.Error):
            exact.set_memory_limit(1)

    def test_the_target_is_kept(self):
        # 2 * 10^5 other ids at 1e-3: 200 false positives are expected, and 300 come once in 10^10 runs.
        partition = lethe.Stage(target_fpp=1e-3).open("rate")
        partition.judge_many([b"a%d" % i for i in range(200_000)], START)
        unique = partition.judge_many([b"b%d" % i for i in range(200_000)], START)
        self.assertLess(np.count_nonzero(~unique), 2 * 300)


class ProgramTest(unittest.TestCase):
    def test_comes_along(self):
        for command in ([os.path.join(os.path.dirname(sys.executable), "lethe")], [sys.executable, "-m", "lethe"]):
            said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
            self.assertEqual(said, f"lethe {VERSION}\n")
        demo = subprocess.run([sys.executable, "-m", "lethe", "demo", "--events", "2000"], capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(demo.returncode, 0, demo.stderr)
        self.assertEqual(lethe.__version__, VERSION)


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(lethe, optionflags=doctest.IGNORE_EXCEPTION_DETAIL))
    tests.addTests(doctest.DocFileSuite(README, module_relative=False))
    return tests


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
