// The C interface of lethe: the deduplication stage for programs in C11 and for bindings. Needs no Abseil.
//
//   lethe_options options;
//   lethe_options_init(&options, sizeof options);
//   options.horizon_ms = 3600 * 1000;
//   lethe_stage* stage;
//   lethe_partition* orders;
//   if (lethe_stage_create(&options, &stage) != LETHE_OK) return Fail(lethe_error_text());
//   if (lethe_partition_open(stage, "orders-0", &orders) != LETHE_OK) return Fail(lethe_error_text());
//   uint8_t verdict;
//   if (lethe_partition_judge(orders, id, strlen(id), time_ms, &verdict) != LETHE_OK) ...
//   if (verdict == LETHE_UNIQUE) Process(order);
//   lethe_partition_free(orders);
//   lethe_stage_free(stage);
//
// README.md in this folder is the tutorial and states the guarantees; they hold for this interface, too.
//
// Errors: a function that can fail returns a code, and lethe_error_text() says what happened and what to do.
// After an error nothing has changed and the results are not written, unless the function says otherwise.
//
// Times are milliseconds since the Unix epoch. LETHE_NO_TIME is the time of an event without a timestamp.
//
// Handles: each is freed once, by its own function, in any order; NULL is ignored there, and nowhere else. A
// partition keeps its stage, and a transaction or a snapshot its partition, until they are freed themselves.
// No other call may use a handle while it is freed, or later.
//
// Compatibility: structs with a `size` only ever grow, at their end, and lethe_event never changes. Set
// `size` to sizeof the struct; the library reads and writes no more than that. Of two versions of the library
// with the same LETHE_ABI_VERSION a program runs with either, as long as it uses nothing that only one has.
#ifndef LETHE_LETHE_H_
#define LETHE_LETHE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LETHE_C_EXPORT __attribute__((visibility("default")))
#else
#define LETHE_C_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define LETHE_ABI_VERSION 1
#define LETHE_NO_TIME INT64_MIN
#define LETHE_NO_LIMIT INT64_MAX

// The LETHE_ABI_VERSION that the library was built with; it is also the number in liblethe.so.N. Thread-safe.
LETHE_C_EXPORT uint32_t lethe_abi_version(void);
// The version of lethe, such as "1.2.3". Thread-safe.
LETHE_C_EXPORT const char* lethe_version(void);

// ---- Errors ----

// The numbers are those of absl::StatusCode and of gRPC.
typedef enum lethe_code {
  LETHE_OK = 0,
  LETHE_CANCELLED = 1,
  LETHE_UNKNOWN = 2,              // an error that has no code here
  LETHE_INVALID_ARGUMENT = 3,     // the text names the argument, and the nearest possible value
  LETHE_NOT_FOUND = 5,            // there is no such file
  LETHE_PERMISSION_DENIED = 7,    // of a file
  LETHE_RESOURCE_EXHAUSTED = 8,   // the memory limit, the system's memory, or the disk
  LETHE_FAILED_PRECONDITION = 9,  // not now: a transaction is open, say
  LETHE_ABORTED = 10,             // try again
  LETHE_UNIMPLEMENTED = 12,
  LETHE_INTERNAL = 13,
  LETHE_UNAVAILABLE = 14,
  LETHE_DATA_LOSS = 15,  // a damaged file
} lethe_code;

// What the last call of this thread that returned an error said; "" before the first. Valid until the next
// such call of this thread. Texts longer than 1,023 bytes are cut.
LETHE_C_EXPORT const char* lethe_error_text(void);

// ---- Stage ----

// Makes partitions that share options and one memory limit. Thread-safe.
typedef struct lethe_stage lethe_stage;

typedef enum lethe_engine {
  LETHE_ENGINE_COMPACT = 0,
  LETHE_ENGINE_EXACT = 1,  // compact with its widest fingerprints, whatever the target: about 1e-15
} lethe_engine;

typedef struct lethe_options {
  size_t size;
  int64_t horizon_ms;          // how late a copy may come, in stream time; 24 h
  double target_fpp;           // the share of new events that may be called duplicates; 1e-6
  int64_t memory_limit_bytes;  // of all partitions together; 1 GiB
  double audit_share;          // of the ids that are checked by an exact set, 0 to 1; 1/256
  int32_t engine;              // a lethe_engine; compact
  int32_t shards;              // with a lock each: 4 for each thread that judges one partition; 1
  int32_t renew;               // not 0: a copy renews its id's age; 0
  int32_t reserved;            // 0
  // 128 random bits that the key of the ids' hash follows from, besides what a snapshot holds: set them where
  // others can read snapshots. A snapshot is restored with the same secret only.
  uint64_t snapshot_secret[2];
} lethe_options;

// Writes the defaults: lethe_options_init(&options, sizeof options). Thread-safe.
LETHE_C_EXPORT void lethe_options_init(lethe_options* options, size_t size);

LETHE_C_EXPORT lethe_code lethe_stage_create(const lethe_options* options, lethe_stage** stage);
LETHE_C_EXPORT void lethe_stage_free(lethe_stage* stage);
// What all partitions use of the memory limit.
LETHE_C_EXPORT int64_t lethe_stage_used_bytes(const lethe_stage* stage);
// Changes the limit for all partitions at once. LETHE_FAILED_PRECONDITION if more is used now. One thread at
// a time; other calls may run meanwhile.
LETHE_C_EXPORT lethe_code lethe_stage_set_memory_limit(lethe_stage* stage, int64_t bytes);

// ---- Partition ----

// A stream of events in which ids are unique. Thread-safe but for lethe_partition_free; several threads that
// judge events of one partition need lethe_options.shards. While a transaction is open, functions that judge,
// replay, move time or save outside of it return LETHE_FAILED_PRECONDITION.
typedef struct lethe_partition lethe_partition;

// A new partition with an empty filter. The name is for people.
LETHE_C_EXPORT lethe_code lethe_partition_open(lethe_stage* stage, const char* name,
                                               lethe_partition** partition);
LETHE_C_EXPORT void lethe_partition_free(lethe_partition* partition);

enum {
  LETHE_UNIQUE = 0,     // no event with this id passed within the horizon
  LETHE_DUPLICATE = 1,  // one did, or (at the stated rate) a false positive
};

// An id is any bytes. The payload is what the event says besides its id, for the audit; NULL if there is none
// to compare. Both are read during the call only.
typedef struct lethe_event {
  const void* id;
  size_t id_size;
  int64_t time_ms;
  const void* payload;
  size_t payload_size;
} lethe_event;

// Judges and remembers in one step.
LETHE_C_EXPORT lethe_code lethe_partition_judge(lethe_partition* partition, const void* id, size_t id_size,
                                                int64_t time_ms, uint8_t* verdict);
// The same for a batch, in its order: several times faster. `verdicts` has room for `count`. Up to 512 events
// are judged without an allocation.
LETHE_C_EXPORT lethe_code lethe_partition_judge_batch(lethe_partition* partition, const lethe_event* events,
                                                      size_t count, uint8_t* verdicts);
// Remembers events whose results are already out, without judging them: rebuilds a filter from a log.
LETHE_C_EXPORT lethe_code lethe_partition_replay(lethe_partition* partition, const lethe_event* events,
                                                 size_t count);

// Moves stream time by an event without a usable id.
LETHE_C_EXPORT lethe_code lethe_partition_observe(lethe_partition* partition, int64_t time_ms);
// Moves stream time without an event, to `time_ms` at least: for a silent stream.
LETHE_C_EXPORT lethe_code lethe_partition_advance_to(lethe_partition* partition, int64_t time_ms);
// Before the first event: begins a rebuild in the middle of a log, with the stream time of that point.
LETHE_C_EXPORT lethe_code lethe_partition_start_at(lethe_partition* partition, int64_t time_ms);
// Stream time goes no further than `time_ms` from now on; LETHE_NO_LIMIT lifts that.
LETHE_C_EXPORT void lethe_partition_limit_stream_time(lethe_partition* partition, int64_t time_ms);
// LETHE_NO_TIME until it has started to move.
LETHE_C_EXPORT int64_t lethe_partition_stream_time(const lethe_partition* partition);

// A partition's figures. Counts are since it was opened. status.h describes each at length.
typedef struct lethe_status {
  size_t size;
  int64_t stream_time_ms;
  int64_t unique;      // judged unique, and not taken back
  int64_t duplicates;  // judged duplicate, and not taken back
  int64_t replayed;    // remembered without a verdict
  int64_t pending;     // passed in the open transaction

  int64_t ids;                      // in the filter
  int64_t window_ms;                // what is covered: at least the horizon, or all since the start
  int64_t memory_bytes;             // of the filter
  int64_t memory_above_need_bytes;  // of these, what its ids do not need
  int64_t refreshes;
  int64_t limit_hits;    // times that the memory limit shortened the window
  int64_t lost_ids;      // that found no room, as if somebody had chosen them
  double fpp_target;     // the probability of a false positive: as asked for,
  double fpp_modelled;   // from the load,
  double fpp_estimated;  // and from a sample of what the filter holds: the one to alert on

  double audit_share;
  int64_t audit_events;
  int64_t audit_fresh;        // events of which the filter cannot know the id
  int64_t audit_false_drops;  // of these, the unique events that were lost
  int64_t audit_copies;       // events whose id had passed within the horizon
  int64_t audit_missed;       // of these, the ones that passed
  int64_t audit_compared;     // copies of which both payloads are known
  int64_t audit_mismatches;   // of these, the ones unlike the first: the id is not unique
  double audit_fpp_measured;  // the rate of false positives of all events, and the interval that
  double audit_fpp_low;       // contains it with a confidence of 99 %
  double audit_fpp_high;
  int64_t audit_ids;
  int64_t audit_memory_bytes;
} lethe_status;

// Set status->size; it is then the number of bytes that were written. Holds each shard's lock for a moment.
LETHE_C_EXPORT lethe_code lethe_partition_status(const lethe_partition* partition, lethe_status* status);

// ---- Transactions ----

// Events that are judged, and then committed or aborted together with the program's own writes. The judging
// functions, observe and forget may run in several threads; commit and abort must not run together with other
// calls of the transaction.
typedef struct lethe_transaction lethe_transaction;

// Waits for calls of other threads. LETHE_FAILED_PRECONDITION if a transaction is open.
LETHE_C_EXPORT lethe_code lethe_transaction_begin(lethe_partition* partition,
                                                  lethe_transaction** transaction);
// As those of a partition.
LETHE_C_EXPORT lethe_code lethe_transaction_judge(lethe_transaction* transaction, const void* id,
                                                  size_t id_size, int64_t time_ms, uint8_t* verdict);
LETHE_C_EXPORT lethe_code lethe_transaction_judge_batch(lethe_transaction* transaction,
                                                        const lethe_event* events, size_t count,
                                                        uint8_t* verdicts);
LETHE_C_EXPORT lethe_code lethe_transaction_observe(lethe_transaction* transaction, int64_t time_ms);
// Takes back one `unique` verdict of this transaction, because the event was not carried out.
LETHE_C_EXPORT lethe_code lethe_transaction_forget(lethe_transaction* transaction, const void* id,
                                                   size_t id_size);
// Ask before the program's own commit: LETHE_RESOURCE_EXHAUSTED if an event that passed is not remembered;
// abort then.
LETHE_C_EXPORT lethe_code lethe_transaction_status(const lethe_transaction* transaction);
// Each ends the transaction, cannot fail, and frees the handle.
LETHE_C_EXPORT void lethe_transaction_commit(lethe_transaction* transaction);
LETHE_C_EXPORT void lethe_transaction_abort(lethe_transaction* transaction);

// ---- Snapshots ----

// Where the events come from. A snapshot is restored only if all of this is the same. NULL is "".
typedef struct lethe_snapshot_origin {
  size_t size;
  const char* topic;
  int32_t partition;
  int32_t reserved;            // 0
  const char* id_fingerprint;  // of all that decides an event's id
} lethe_snapshot_origin;

// The position in the log; the caller decides what it means.
typedef struct lethe_snapshot_point {
  size_t size;
  int64_t offset;          // the filter has all ids that passed before; replay from here
  int64_t end_offset;      // at least up to here
  uint64_t record_before;  // a hash of the record before `offset`
  const void* notes;       // what else the caller needs; of a restored one until its partition is freed
  size_t notes_size;
} lethe_snapshot_point;

// Writes the partition's memory to a file, first to PATH.new. After an error the old file remains. No
// transaction begins meanwhile.
LETHE_C_EXPORT lethe_code lethe_partition_save(const lethe_partition* partition, const char* path,
                                               const lethe_snapshot_origin* origin,
                                               const lethe_snapshot_point* point);
// Opens a partition as it was saved. Set point->size; `point` may be NULL. After an error replay the log.
//   LETHE_NOT_FOUND            there is no such file
//   LETHE_DATA_LOSS            the file is damaged, or is not a snapshot
//   LETHE_FAILED_PRECONDITION  origin, engine, horizon, target, shards or secret differ
LETHE_C_EXPORT lethe_code lethe_partition_restore(lethe_stage* stage, const char* name, const char* path,
                                                  const lethe_snapshot_origin* origin,
                                                  lethe_partition** partition, lethe_snapshot_point* point);

// A snapshot that is written while its partition goes on, by one thread; note_end may come from any.
typedef struct lethe_snapshot lethe_snapshot;

LETHE_C_EXPORT lethe_code lethe_snapshot_begin(const lethe_partition* partition,
                                               const lethe_snapshot_origin* origin,
                                               const lethe_snapshot_point* point, lethe_snapshot** snapshot);
// Before each commit while it is written: the first offset that is not in that transaction.
LETHE_C_EXPORT void lethe_snapshot_note_end(lethe_snapshot* snapshot, int64_t end_offset);
// Once. LETHE_ABORTED if the filter changed its shape meanwhile: begin another one.
LETHE_C_EXPORT lethe_code lethe_snapshot_write(lethe_snapshot* snapshot, const char* path);
LETHE_C_EXPORT void lethe_snapshot_free(lethe_snapshot* snapshot);

#ifdef __cplusplus
}
#endif

#endif  // LETHE_LETHE_H_
