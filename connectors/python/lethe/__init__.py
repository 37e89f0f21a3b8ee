"""Stream deduplication: tells for each event whether an event with the same id has passed within a horizon.

>>> import datetime, lethe
>>> stage = lethe.Stage(horizon=datetime.timedelta(hours=1), target_fpp=1e-6, memory_limit=64 << 20)
>>> orders = stage.open("orders")
>>> orders.judge("order-17", 1_700_000_000_000)  # True: unique
True
>>> orders.judge("order-17", 1_700_000_000_500)
False

A time is whole milliseconds since the Unix epoch, an aware ``datetime``, a ``datetime64`` (UTC), or None for an event
without a timestamp. Ids are ``bytes`` or ``str``, which counts as its UTF-8. All calls release the GIL, and may be made
by several threads; give the stage shards then, four for each.

In batches, from lists or arrays, it is several times faster:

>>> import numpy
>>> times = numpy.arange(3) + 1_700_000_001_000
>>> orders.judge_many([b"a", b"b", b"a"], times)
array([ True,  True, False])
>>> orders.judge_many(numpy.array([b"c", b"a"]), numpy.datetime64("2023-11-14T22:13:22"))
array([ True, False])

Where a write may fail, judge in a transaction. The end of the block commits, and an exception aborts: so make your own
commit the last line of the block.

>>> with orders.transaction() as transaction:
...     for id in ["d", "a"]:
...         if transaction.judge(id, 1_700_000_002_000):
...             print("write", id)
...     # database.commit()
write d
>>> orders.judge("d", 1_700_000_002_000)
False

After a restart restore a snapshot, or replay the last horizon of your log:

>>> import os, tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> path = os.path.join(folder.name, "orders.snapshot")
>>> origin = lethe.Origin(topic="orders", id_fingerprint="json:/id")
>>> orders.save(path, origin, lethe.Point(offset=17))
>>> restored, point = stage.restore("orders", path, origin)
>>> point.offset, restored.judge("d", 1_700_000_002_000)
(17, False)
>>> folder.cleanup()
>>> rebuilt = stage.open("orders")
>>> rebuilt.replay(["d"], 1_700_000_002_000)

The status is a dataclass:

>>> status = orders.status()
>>> status.unique, status.duplicates, status.limit_hits
(5, 5, 0)

Errors have a code, and a text that says what to do:

>>> stage.restore("orders", path, origin)
Traceback (most recent call last):
    ...
lethe.Error: ...
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import os
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from lethe._library import ABI_VERSION, NO_LIMIT, NO_TIME, ffi, lib

__all__ = ["Code", "Error", "Origin", "Partition", "Point", "Snapshot", "Stage", "Status", "Transaction"]
__version__: str = ffi.string(lib.lethe_version()).decode()

Id = Union[bytes, str]
Time = Union[int, datetime.datetime, np.datetime64, None]
Ids = Union[Sequence[Id], "npt.NDArray[Any]"]
Times = Union[Time, Sequence[Time], "npt.NDArray[Any]"]

# Ids of one call of the library: so many take 6 MB there.
_CHUNK = 1 << 16
_EVENT = np.dtype([("id", np.uintp), ("id_size", np.uintp), ("time_ms", np.int64), ("payload", np.uintp),
                   ("payload_size", np.uintp)])
assert _EVENT.itemsize == ffi.sizeof("lethe_event")


class Code(enum.IntEnum):
    """What kind of error it is; the numbers are those of gRPC."""

    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15


class Error(Exception):
    """An error of the library: its text says what happened and what to do. Nothing has changed."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


def _check(code: int) -> None:
    if code != 0:
        raise Error(Code(code), ffi.string(lib.lethe_error_text()).decode(errors="replace"))


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def _time(time: Time) -> int:
    if time is None:
        return NO_TIME
    if isinstance(time, (int, np.integer)):
        return int(time)
    if isinstance(time, datetime.datetime) and time.tzinfo is not None:
        return (time - _EPOCH) // _MILLISECOND
    if isinstance(time, np.datetime64):
        return int(time.astype("datetime64[ms]").astype(np.int64))  # "not a time" is NO_TIME
    raise TypeError(f"a time is whole milliseconds since 1970 or an aware datetime, not {time!r}")


def _is_one(times: Times) -> bool:
    return times is None or isinstance(times, (int, np.integer, datetime.datetime, np.datetime64))


def _datetime(time_ms: int) -> Optional[datetime.datetime]:
    return None if time_ms == NO_TIME else _EPOCH + time_ms * _MILLISECOND


def _times(times: Times, count: int) -> npt.NDArray[np.int64]:
    if _is_one(times):
        return np.full(count, _time(times), np.int64)
    if isinstance(times, np.ndarray) and times.dtype.kind == "M":
        made = times.astype("datetime64[ms]").astype(np.int64)
    elif isinstance(times, np.ndarray) and times.dtype.kind in "iu":
        made = times.astype(np.int64)
    else:
        made = np.fromiter(map(_time, times), np.int64, len(times))
    if made.shape != (count,):
        raise ValueError(f"{count} ids have times of the shape {made.shape}")
    return made


def _bytes(id: Id) -> bytes:
    if isinstance(id, str):
        return id.encode()
    if isinstance(id, (bytes, bytearray)):
        return bytes(id)
    raise TypeError(f"an id is bytes or str, not {type(id).__name__}")


def _events(ids: Ids, times: Times) -> tuple[npt.NDArray[Any], Any]:
    """Events for the library, and what keeps their bytes alive."""
    events = np.zeros(len(ids), _EVENT)
    events["time_ms"] = _times(times, len(ids))
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise ValueError(f"ids have the shape {ids.shape}; they need one dimension")
        if ids.dtype.kind == "U":
            ids = np.char.encode(ids, "utf-8")
        if ids.dtype.kind == "S":
            kept = np.ascontiguousarray(ids)
            events["id"] = kept.ctypes.data + np.arange(len(ids), dtype=np.uintp) * kept.itemsize
            events["id_size"] = np.char.str_len(kept)
            return events, kept
        ids = ids.tolist()
    try:
        joined = b"".join(ids)  # type: ignore[arg-type]
    except TypeError:
        ids = list(map(_bytes, ids))
        joined = b"".join(ids)
    sizes = np.fromiter(map(len, ids), np.uintp, len(ids))
    if int(sizes.sum()) != len(joined):
        raise TypeError("an id is bytes or str, not a view of larger items")
    start = int(ffi.cast("uintptr_t", ffi.from_buffer(joined)))
    events["id"] = start + np.cumsum(sizes) - sizes
    events["id_size"] = sizes
    return events, joined


def _chunks(ids: Ids, times: Times) -> Any:
    if not _is_one(times) and len(times) != len(ids):
        raise ValueError(f"{len(ids)} ids have {len(times)} times")
    for first in range(0, len(ids), _CHUNK):
        part = slice(first, first + _CHUNK)
        events, kept = _events(ids[part], times if _is_one(times) else times[part])
        yield part, ffi.from_buffer("lethe_event[]", events), kept


def _judge_many(judge: Any, handle: Any, ids: Ids, times: Times) -> npt.NDArray[np.bool_]:
    verdicts = np.empty(len(ids), np.uint8)
    for part, events, kept in _chunks(ids, times):
        _check(judge(handle, events, len(events), ffi.from_buffer("uint8_t[]", verdicts[part])))
        del kept
    return verdicts == lib.LETHE_UNIQUE


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where the events come from. A snapshot is restored only if all of this is the same."""

    topic: str = ""
    partition: int = 0
    id_fingerprint: str = ""  # of all that decides an event's id


@dataclasses.dataclass(frozen=True)
class Point:
    """The position of a snapshot in its log; the caller decides what it means."""

    offset: int = 0  # the filter has all ids that passed before; replay from here
    end_offset: int = 0  # at least up to here
    record_before: int = 0  # a hash of the record before `offset`
    notes: bytes = b""


@dataclasses.dataclass(frozen=True)
class Status:
    """A partition's figures; counts are since it was opened. lethe.h describes each."""

    stream_time_ms: Optional[int]
    unique: int
    duplicates: int
    replayed: int
    pending: int
    ids: int
    window_ms: int
    memory_bytes: int
    memory_above_need_bytes: int
    refreshes: int
    limit_hits: int
    lost_ids: int
    fpp_target: float
    fpp_modelled: float
    fpp_estimated: float
    audit_share: float
    audit_events: int
    audit_fresh: int
    audit_false_drops: int
    audit_copies: int
    audit_missed: int
    audit_compared: int
    audit_mismatches: int
    audit_fpp_measured: float
    audit_fpp_low: float
    audit_fpp_high: float
    audit_ids: int
    audit_memory_bytes: int


def _origin(origin: Origin) -> Any:
    topic = ffi.new("char[]", origin.topic.encode())
    fingerprint = ffi.new("char[]", origin.id_fingerprint.encode())
    made = ffi.new("lethe_snapshot_origin*", {"size": ffi.sizeof("lethe_snapshot_origin"), "topic": topic,
                                              "partition": origin.partition, "id_fingerprint": fingerprint})
    return made, topic, fingerprint


def _point(point: Point) -> Any:
    notes = ffi.from_buffer(point.notes)
    made = ffi.new("lethe_snapshot_point*", {
        "size": ffi.sizeof("lethe_snapshot_point"), "offset": point.offset, "end_offset": point.end_offset,
        "record_before": point.record_before, "notes": notes, "notes_size": len(point.notes)})
    return made, notes


def _path(path: Union[str, "os.PathLike[str]"]) -> bytes:
    return os.fsencode(path)


class Stage:
    """Makes partitions that share options and one memory limit.

    horizon: how late a copy may come. target_fpp: the share of new events that may be called duplicates.
    memory_limit: of all partitions together, in bytes. shards: four for each thread that judges one partition.
    renew: a copy renews its id's age. audit_share: of the ids that an exact set checks. snapshot_secret: 16 random
    bytes, where others can read snapshots.
    """

    def __init__(self, *, horizon: datetime.timedelta = datetime.timedelta(hours=24), target_fpp: float = 1e-6,
                 memory_limit: int = 1 << 30, engine: str = "compact", shards: int = 1, renew: bool = False,
                 audit_share: float = 1 / 256, snapshot_secret: bytes = bytes(16)) -> None:
        engines = {"compact": lib.LETHE_ENGINE_COMPACT, "exact": lib.LETHE_ENGINE_EXACT}
        if engine not in engines:
            raise ValueError(f"engine is {engine!r}; there are {', '.join(engines)}")
        if len(snapshot_secret) != 16:
            raise ValueError(f"snapshot_secret has {len(snapshot_secret)} bytes; it needs 16")
        options = ffi.new("lethe_options*")
        lib.lethe_options_init(options, ffi.sizeof("lethe_options"))
        options.horizon_ms = horizon // _MILLISECOND
        options.target_fpp = target_fpp
        options.memory_limit_bytes = memory_limit
        options.engine = engines[engine]
        options.shards = shards
        options.renew = renew
        options.audit_share = audit_share
        halves = snapshot_secret[:8], snapshot_secret[8:]
        options.snapshot_secret = [int.from_bytes(half, "little") for half in halves]
        handle = ffi.new("lethe_stage**")
        _check(lib.lethe_stage_create(options, handle))
        self._handle = ffi.gc(handle[0], lib.lethe_stage_free)

    def open(self, name: str) -> Partition:
        """A new partition with an empty filter. The name is for people."""
        handle = ffi.new("lethe_partition**")
        _check(lib.lethe_partition_open(self._handle, name.encode(), handle))
        return Partition(handle[0])

    def restore(self, name: str, path: Union[str, "os.PathLike[str]"], origin: Origin) -> tuple[Partition, Point]:
        """A partition as it was saved. After an error replay the log as if there were no snapshot."""
        handle = ffi.new("lethe_partition**")
        point = ffi.new("lethe_snapshot_point*", {"size": ffi.sizeof("lethe_snapshot_point")})
        kept = _origin(origin)
        _check(lib.lethe_partition_restore(self._handle, name.encode(), _path(path), kept[0], handle, point))
        notes = bytes(ffi.buffer(point.notes, point.notes_size)) if point.notes_size else b""
        return Partition(handle[0]), Point(point.offset, point.end_offset, point.record_before, notes)

    @property
    def used_bytes(self) -> int:
        """What all partitions use of the memory limit."""
        return lib.lethe_stage_used_bytes(self._handle)

    def set_memory_limit(self, limit: int) -> None:
        """Changes the limit, in bytes, for all partitions at once."""
        _check(lib.lethe_stage_set_memory_limit(self._handle, limit))


class Partition:
    """A stream of events in which ids are unique. Made by Stage.open() and Stage.restore()."""

    def __init__(self, handle: Any) -> None:
        self._handle = ffi.gc(handle, lib.lethe_partition_free)
        self._verdict = ffi.typeof("uint8_t*")

    def judge(self, id: Id, time: Time = None) -> bool:
        """Whether the event is unique. Its id is remembered then."""
        id = _bytes(id)
        verdict = ffi.new(self._verdict)
        _check(lib.lethe_partition_judge(self._handle, id, len(id), _time(time), verdict))
        return verdict[0] == lib.LETHE_UNIQUE

    def judge_many(self, ids: Ids, times: Times = None) -> npt.NDArray[np.bool_]:
        """The same for a batch, in its order: several times faster, from a list or an array of ids.

        An array is of fixed width (``S``, whose ids have no zeros at their end, or ``U``) or of objects. ``times`` is
        one for all, or as many as ids, such as an array of ``datetime64`` or of milliseconds.
        """
        return _judge_many(lib.lethe_partition_judge_batch, self._handle, ids, times)

    def replay(self, ids: Ids, times: Times = None) -> None:
        """Remembers events whose results are already out: rebuilds a filter from a log."""
        for _, events, _kept in _chunks(ids, times):
            _check(lib.lethe_partition_replay(self._handle, events, len(events)))

    def transaction(self) -> Transaction:
        """Events that are judged, and then committed or aborted together with the program's own writes."""
        return Transaction(self)

    def observe(self, time: Time) -> None:
        """Moves stream time by an event without a usable id."""
        _check(lib.lethe_partition_observe(self._handle, _time(time)))

    def advance_to(self, time: Time) -> None:
        """Moves stream time without an event, to ``time`` at least: for a silent stream."""
        _check(lib.lethe_partition_advance_to(self._handle, _time(time)))

    def start_at(self, time: Time) -> None:
        """Before the first event: begins a rebuild in the middle of a log, with the stream time of that point."""
        _check(lib.lethe_partition_start_at(self._handle, _time(time)))

    def limit_stream_time(self, time: Time) -> None:
        """Stream time goes no further than ``time`` from now on; None lifts that."""
        lib.lethe_partition_limit_stream_time(self._handle, NO_LIMIT if time is None else _time(time))

    @property
    def stream_time(self) -> Optional[datetime.datetime]:
        """None until it has started to move."""
        return _datetime(lib.lethe_partition_stream_time(self._handle))

    def status(self) -> Status:
        status = ffi.new("lethe_status*", {"size": ffi.sizeof("lethe_status")})
        _check(lib.lethe_partition_status(self._handle, status))
        figures = {field.name: getattr(status, field.name) for field in dataclasses.fields(Status)}
        if figures["stream_time_ms"] == NO_TIME:
            figures["stream_time_ms"] = None
        return Status(**figures)

    def save(self, path: Union[str, "os.PathLike[str]"], origin: Origin, point: Point = Point()) -> None:
        """Writes the partition's memory to a file. After an error the old file remains."""
        kept_origin, kept_point = _origin(origin), _point(point)
        _check(lib.lethe_partition_save(self._handle, _path(path), kept_origin[0], kept_point[0]))

    def snapshot(self, origin: Origin, point: Point = Point()) -> Snapshot:
        """Begins a snapshot that is written while events are judged."""
        kept_origin, kept_point = _origin(origin), _point(point)
        handle = ffi.new("lethe_snapshot**")
        _check(lib.lethe_snapshot_begin(self._handle, kept_origin[0], kept_point[0], handle))
        return Snapshot(handle[0])


class Transaction:
    """Commits at the end of its ``with`` block, and aborts if an exception leaves it.

    Do your own commit as the last thing in the block: what it raises aborts the transaction, and the events that are
    sent again are judged as if it had not been. Judging raises an Error if there is no memory to remember an event.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._handle: Any = None
        handle = ffi.new("lethe_transaction**")
        _check(lib.lethe_transaction_begin(partition._handle, handle))
        self._handle = ffi.gc(handle[0], lib.lethe_transaction_abort)

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._handle is None:
            return
        if kind is None:
            self.commit()
        else:
            self.abort()

    def _open(self) -> Any:
        if self._handle is None:
            raise Error(Code.FAILED_PRECONDITION, "the transaction has ended; begin another one")
        return self._handle

    def judge(self, id: Id, time: Time = None) -> bool:
        """As Partition.judge()."""
        return bool(self.judge_many([id], time)[0])

    def judge_many(self, ids: Ids, times: Times = None) -> npt.NDArray[np.bool_]:
        """As Partition.judge_many()."""
        unique = _judge_many(lib.lethe_transaction_judge_batch, self._open(), ids, times)
        _check(lib.lethe_transaction_status(self._handle))
        return unique

    def observe(self, time: Time) -> None:
        """As Partition.observe(); an abort undoes it."""
        _check(lib.lethe_transaction_observe(self._open(), _time(time)))

    def forget(self, id: Id) -> None:
        """Takes back one unique verdict of this transaction, because the event was not carried out."""
        id = _bytes(id)
        _check(lib.lethe_transaction_forget(self._open(), id, len(id)))

    def commit(self) -> None:
        lib.lethe_transaction_commit(self._end())

    def abort(self) -> None:
        lib.lethe_transaction_abort(self._end())

    def _end(self) -> Any:
        handle, self._handle = self._open(), None
        ffi.gc(handle, None)  # it is freed by what ends it
        return handle


class Snapshot:
    """A snapshot that is written while its partition goes on."""

    def __init__(self, handle: Any) -> None:
        self._handle = ffi.gc(handle, lib.lethe_snapshot_free)

    def note_end(self, end_offset: int) -> None:
        """Before each commit while it is written: the first offset that is not in that transaction."""
        lib.lethe_snapshot_note_end(self._handle, end_offset)

    def write(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Once. Code.ABORTED if the filter changed its shape meanwhile: begin another one."""
        _check(lib.lethe_snapshot_write(self._handle, _path(path)))


if lib.lethe_abi_version() != ABI_VERSION:
    raise ImportError(f"liblethe has the ABI {lib.lethe_abi_version()}, not {ABI_VERSION}")
