// The C interface, from C11: what it promises besides what the C++ API behind it does.
#include <inttypes.h>
#include <lethe/lethe.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define EXPECT(condition)                                                                              \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, lethe_error_text()); \
      ++failures;                                                                                      \
    }                                                                                                  \
  } while (false)

enum { kBatch = 1500 };  // more than is judged at once, and than is judged without an allocation
static const int64_t kStart = 1700000000000;

static lethe_options Options(void) {
  lethe_options options;
  lethe_options_init(&options, sizeof options);
  options.horizon_ms = 60 * 1000;
  options.memory_limit_bytes = 64 << 20;
  return options;
}

static lethe_stage* NewStage(void) {
  const lethe_options options = Options();
  lethe_stage* stage = NULL;
  EXPECT(lethe_stage_create(&options, &stage) == LETHE_OK);
  return stage;
}

static lethe_partition* Open(lethe_stage* stage) {
  lethe_partition* partition = NULL;
  EXPECT(lethe_partition_open(stage, "orders-0", &partition) == LETHE_OK);
  return partition;
}

static uint8_t Judge(lethe_partition* partition, const char* id) {
  uint8_t verdict = 9;
  EXPECT(lethe_partition_judge(partition, id, strlen(id), kStart, &verdict) == LETHE_OK);
  return verdict;
}

static lethe_status StatusOf(const lethe_partition* partition) {
  lethe_status status = {.size = sizeof status};
  EXPECT(lethe_partition_status(partition, &status) == LETHE_OK);
  EXPECT(status.size == sizeof status);
  return status;
}

// Each id twice in a row, a millisecond apart.
typedef struct Batch {
  lethe_event events[kBatch];
  char ids[kBatch][16];
  uint8_t verdicts[kBatch];
} Batch;

static Batch* NewBatch(int first) {
  Batch* const batch = calloc(1, sizeof *batch);
  if (batch == NULL) abort();
  for (int i = 0; i < kBatch; ++i) {
    const int size = snprintf(batch->ids[i], sizeof batch->ids[i], "id%d", first + i / 2);
    batch->events[i] = (lethe_event){.id = batch->ids[i],
                                     .id_size = (size_t)size,
                                     .time_ms = kStart + i,
                                     .payload = "same",
                                     .payload_size = 4};
    batch->verdicts[i] = 9;
  }
  return batch;
}

static void ExpectEachOnce(const Batch* batch) {
  int wrong = 0;
  for (int i = 0; i < kBatch; ++i)
    wrong += batch->verdicts[i] != (i % 2 == 0 ? LETHE_UNIQUE : LETHE_DUPLICATE);
  EXPECT(wrong == 0);
}

static void TestVersions(void) {
  EXPECT(lethe_abi_version() == LETHE_ABI_VERSION);
  EXPECT(strcmp(lethe_version(), LETHE_VERSION) == 0);
}

static void TestJudges(void) {
  lethe_stage* const stage = NewStage();
  lethe_partition* const partition = Open(stage);
  EXPECT(Judge(partition, "a") == LETHE_UNIQUE);
  EXPECT(Judge(partition, "a") == LETHE_DUPLICATE);
  EXPECT(Judge(partition, "") == LETHE_UNIQUE);
  EXPECT(Judge(partition, "") == LETHE_DUPLICATE);
  uint8_t verdict = 9;  // ids are bytes
  EXPECT(lethe_partition_judge(partition, "a\0b", 3, LETHE_NO_TIME, &verdict) == LETHE_OK);
  EXPECT(verdict == LETHE_UNIQUE);
  EXPECT(lethe_partition_judge_batch(partition, NULL, 0, NULL) == LETHE_OK);

  Batch* const batch = NewBatch(0);
  EXPECT(lethe_partition_judge_batch(partition, batch->events, kBatch, batch->verdicts) == LETHE_OK);
  ExpectEachOnce(batch);
  lethe_status status = StatusOf(partition);
  EXPECT(status.unique == 3 + kBatch / 2 && status.duplicates == 2 + kBatch / 2);
  EXPECT(status.ids == status.unique && status.memory_bytes > 0 && status.pending == 0);
  EXPECT(status.memory_bytes <= lethe_stage_used_bytes(stage));
  EXPECT(status.stream_time_ms == lethe_partition_stream_time(partition) && status.stream_time_ms > kStart);
  EXPECT(status.fpp_target == 1e-6 && status.audit_fpp_high > 0 && status.audit_share == 1.0 / 256);
  free(batch);
  // Which ids are audited is secret: in 20,000 there is one.
  for (int i = 1; i <= 20000 / (kBatch / 2) && status.audit_compared == 0; ++i) {
    Batch* const more = NewBatch(i * kBatch / 2);
    EXPECT(lethe_partition_judge_batch(partition, more->events, kBatch, more->verdicts) == LETHE_OK);
    free(more);
    status = StatusOf(partition);
  }
  EXPECT(status.audit_mismatches == 0 && status.audit_compared > 0);
  lethe_partition_free(partition);
  lethe_stage_free(stage);
}

static void TestTime(void) {
  lethe_stage* const stage = NewStage();
  lethe_partition* const partition = Open(stage);
  EXPECT(lethe_partition_stream_time(partition) == LETHE_NO_TIME);
  EXPECT(StatusOf(partition).stream_time_ms == LETHE_NO_TIME);
  EXPECT(lethe_partition_start_at(partition, kStart) == LETHE_OK);
  EXPECT(lethe_partition_stream_time(partition) == kStart);
  EXPECT(Judge(partition, "a") == LETHE_UNIQUE);
  EXPECT(lethe_partition_start_at(partition, kStart) == LETHE_FAILED_PRECONDITION);
  lethe_partition_limit_stream_time(partition, kStart + 5000);
  EXPECT(lethe_partition_advance_to(partition, kStart + 1000000) == LETHE_OK);
  EXPECT(lethe_partition_stream_time(partition) == kStart + 5000);
  EXPECT(Judge(partition, "a") == LETHE_DUPLICATE);
  lethe_partition_limit_stream_time(partition, LETHE_NO_LIMIT);
  EXPECT(lethe_partition_advance_to(partition, kStart + 1000000) == LETHE_OK);
  EXPECT(lethe_partition_observe(partition, kStart) == LETHE_OK);
  EXPECT(lethe_partition_stream_time(partition) == kStart + 1000000);
  EXPECT(Judge(partition, "a") == LETHE_UNIQUE);
  lethe_partition_free(partition);
  lethe_stage_free(stage);
}

static void TestTransactions(void) {
  lethe_stage* const stage = NewStage();
  lethe_partition* const partition = Open(stage);
  lethe_transaction* transaction = NULL;
  EXPECT(lethe_transaction_begin(partition, &transaction) == LETHE_OK);
  uint8_t verdict = 9;
  EXPECT(lethe_transaction_judge(transaction, "a", 1, kStart, &verdict) == LETHE_OK);
  EXPECT(verdict == LETHE_UNIQUE);
  EXPECT(StatusOf(partition).pending == 1);

  // Nothing goes on outside of it.
  verdict = 9;
  lethe_transaction* second = NULL;
  EXPECT(lethe_transaction_begin(partition, &second) == LETHE_FAILED_PRECONDITION && second == NULL);
  EXPECT(lethe_partition_judge(partition, "b", 1, kStart, &verdict) == LETHE_FAILED_PRECONDITION);
  EXPECT(verdict == 9 && strstr(lethe_error_text(), "orders-0") != NULL);
  EXPECT(lethe_partition_observe(partition, kStart) == LETHE_FAILED_PRECONDITION);
  lethe_transaction_abort(transaction);

  Batch* const batch = NewBatch(0);
  EXPECT(lethe_transaction_begin(partition, &transaction) == LETHE_OK);
  EXPECT(lethe_transaction_judge(transaction, "a", 1, kStart, &verdict) == LETHE_OK);
  EXPECT(verdict == LETHE_UNIQUE);
  EXPECT(lethe_transaction_judge_batch(transaction, batch->events, kBatch, batch->verdicts) == LETHE_OK);
  ExpectEachOnce(batch);
  EXPECT(lethe_transaction_observe(transaction, kStart) == LETHE_OK);
  EXPECT(lethe_transaction_forget(transaction, "id0", 3) == LETHE_OK);
  EXPECT(lethe_transaction_status(transaction) == LETHE_OK);
  lethe_transaction_commit(transaction);
  EXPECT(Judge(partition, "a") == LETHE_DUPLICATE);
  EXPECT(Judge(partition, "id0") == LETHE_UNIQUE);
  EXPECT(Judge(partition, "id1") == LETHE_DUPLICATE);
  free(batch);
  lethe_partition_free(partition);
  lethe_stage_free(stage);
}

static void TestHandlesAreFreedInAnyOrder(void) {
  lethe_stage* const stage = NewStage();
  lethe_partition* const partition = Open(stage);
  lethe_transaction* transaction = NULL;
  EXPECT(lethe_transaction_begin(partition, &transaction) == LETHE_OK);
  lethe_stage_free(stage);
  lethe_partition_free(partition);
  uint8_t verdict = 9;
  EXPECT(lethe_transaction_judge(transaction, "a", 1, kStart, &verdict) == LETHE_OK);
  lethe_transaction_commit(transaction);
  lethe_stage_free(NULL);
  lethe_partition_free(NULL);
  lethe_snapshot_free(NULL);
}

static void TestOptions(void) {
  lethe_options options = Options();
  lethe_stage* stage = NULL;
  options.target_fpp = 2;
  EXPECT(lethe_stage_create(&options, &stage) == LETHE_INVALID_ARGUMENT && stage == NULL);
  EXPECT(strstr(lethe_error_text(), "target_fpp") != NULL);
  options = Options();
  options.engine = 17;
  EXPECT(lethe_stage_create(&options, &stage) == LETHE_INVALID_ARGUMENT);
  options = Options();
  options.size = 0;
  EXPECT(lethe_stage_create(&options, &stage) == LETHE_INVALID_ARGUMENT);
  EXPECT(lethe_stage_create(NULL, &stage) == LETHE_INVALID_ARGUMENT);

  // A program that knows less than the library: the rest has its defaults.
  options = Options();
  options.size = offsetof(lethe_options, memory_limit_bytes);
  options.shards = 3;  // which would be refused
  EXPECT(lethe_stage_create(&options, &stage) == LETHE_OK);
  lethe_stage_free(stage);

  // One that knows more: it may not ask for it.
  struct {
    lethe_options known;
    int64_t more;
  } newer;
  lethe_options_init(&newer.known, sizeof newer);
  EXPECT(newer.known.size == sizeof newer && newer.more == 0 && newer.known.horizon_ms == 24 * 3600 * 1000);
  EXPECT(lethe_stage_create(&newer.known, &stage) == LETHE_OK);
  lethe_stage_free(stage);
  stage = NULL;
  newer.more = 1;
  EXPECT(lethe_stage_create(&newer.known, &stage) == LETHE_INVALID_ARGUMENT && stage == NULL);

  options = Options();
  options.engine = LETHE_ENGINE_EXACT;
  options.renew = 1;
  EXPECT(lethe_stage_create(&options, &stage) == LETHE_OK);
  lethe_partition* const partition = Open(stage);
  EXPECT(Judge(partition, "a") == LETHE_UNIQUE && Judge(partition, "a") == LETHE_DUPLICATE);
  EXPECT(lethe_stage_set_memory_limit(stage, 1) != LETHE_OK);
  EXPECT(lethe_stage_set_memory_limit(stage, 128 << 20) == LETHE_OK);
  lethe_partition_free(partition);
  lethe_stage_free(stage);
}

static void TestStatusOfAnotherSize(void) {
  lethe_stage* const stage = NewStage();
  lethe_partition* const partition = Open(stage);
  EXPECT(Judge(partition, "a") == LETHE_UNIQUE);
  struct {
    lethe_status known;
    int64_t more;
  } newer;
  memset(&newer, 7, sizeof newer);
  newer.known.size = sizeof newer;
  EXPECT(lethe_partition_status(partition, &newer.known) == LETHE_OK);
  EXPECT(newer.known.size == sizeof(lethe_status) && newer.known.unique == 1);
  lethe_status older;
  memset(&older, 7, sizeof older);
  older.size = offsetof(lethe_status, duplicates);
  EXPECT(lethe_partition_status(partition, &older) == LETHE_OK);
  EXPECT(older.size == offsetof(lethe_status, duplicates) && older.unique == 1);
  EXPECT(older.duplicates == INT64_C(0x0707070707070707));
  older.size = 1;
  EXPECT(lethe_partition_status(partition, &older) == LETHE_INVALID_ARGUMENT);
  lethe_partition_free(partition);
  lethe_stage_free(stage);
}

static void TestSnapshots(const char* folder) {
  char path[512];
  char live_path[512];
  snprintf(path, sizeof path, "%s/interface_test.snapshot", folder);
  snprintf(live_path, sizeof live_path, "%s/interface_test.live", folder);
  lethe_stage* const stage = NewStage();
  lethe_partition* const partition = Open(stage);
  EXPECT(Judge(partition, "a") == LETHE_UNIQUE);
  const lethe_snapshot_origin origin = {
      .size = sizeof origin, .topic = "orders", .partition = 3, .id_fingerprint = "json:/id"};
  const lethe_snapshot_point point = {.size = sizeof point,
                                      .offset = 12,
                                      .end_offset = 13,
                                      .record_before = 14,
                                      .notes = "n\0te",
                                      .notes_size = 4};
  EXPECT(lethe_partition_save(partition, path, &origin, &point) == LETHE_OK);
  EXPECT(lethe_partition_save(partition, "/no such folder/s", &origin, &point) == LETHE_NOT_FOUND);

  // One is written while judging goes on.
  lethe_snapshot* live = NULL;
  EXPECT(lethe_snapshot_begin(partition, &origin, &point, &live) == LETHE_OK);
  EXPECT(Judge(partition, "b") == LETHE_UNIQUE);
  lethe_snapshot_note_end(live, 15);
  EXPECT(lethe_snapshot_write(live, live_path) == LETHE_OK);
  lethe_snapshot_free(live);

  lethe_snapshot_point at = {.size = sizeof at};
  lethe_partition* restored = NULL;
  lethe_snapshot_origin other = origin;
  other.partition = 4;
  EXPECT(lethe_partition_restore(stage, "r", path, &other, &restored, &at) == LETHE_FAILED_PRECONDITION);
  EXPECT(lethe_partition_restore(stage, "r", "/no such file", &origin, &restored, &at) == LETHE_NOT_FOUND);
  EXPECT(restored == NULL);
  EXPECT(lethe_partition_restore(stage, "r", path, &origin, &restored, &at) == LETHE_OK);
  EXPECT(at.size == sizeof at && at.offset == 12 && at.end_offset == 13 && at.record_before == 14);
  EXPECT(at.notes_size == 4 && memcmp(at.notes, "n\0te", 4) == 0);
  EXPECT(Judge(restored, "a") == LETHE_DUPLICATE);
  EXPECT(Judge(restored, "b") == LETHE_UNIQUE);
  lethe_partition_free(restored);
  EXPECT(lethe_partition_restore(stage, "r", live_path, &origin, &restored, NULL) == LETHE_OK);
  EXPECT(Judge(restored, "a") == LETHE_DUPLICATE);
  lethe_partition_free(restored);

  // Without one: the log is replayed.
  lethe_partition* const rebuilt = Open(stage);
  const lethe_event log[] = {{.id = "a", .id_size = 1, .time_ms = kStart},
                             {.id = "a", .id_size = 1, .time_ms = kStart}};
  EXPECT(lethe_partition_replay(rebuilt, log, 2) == LETHE_OK);
  EXPECT(StatusOf(rebuilt).replayed == 2);
  EXPECT(Judge(rebuilt, "a") == LETHE_DUPLICATE);
  lethe_partition_free(rebuilt);
  lethe_partition_free(partition);
  lethe_stage_free(stage);
  remove(path);
  remove(live_path);
}

static void* Fail(void* stage) {
  lethe_partition* partition;
  EXPECT(strcmp(lethe_error_text(), "") == 0);
  EXPECT(lethe_partition_open(stage, NULL, &partition) == LETHE_INVALID_ARGUMENT);
  EXPECT(strstr(lethe_error_text(), "name") != NULL);
  return NULL;
}

static void TestEachThreadHasItsError(void) {
  lethe_stage* const stage = NewStage();
  EXPECT(lethe_stage_set_memory_limit(stage, 1) == LETHE_INVALID_ARGUMENT);
  char before[1024];
  snprintf(before, sizeof before, "%s", lethe_error_text());
  EXPECT(strlen(before) > 0);
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, Fail, stage) == 0);
  EXPECT(pthread_join(thread, NULL) == 0);
  EXPECT(strcmp(before, lethe_error_text()) == 0);
  lethe_stage_free(stage);
}

int main(int argc, char** argv) {
  TestVersions();
  TestJudges();
  TestTime();
  TestTransactions();
  TestHandlesAreFreedInAnyOrder();
  TestOptions();
  TestStatusOfAnotherSize();
  TestSnapshots(argc > 1 ? argv[1] : ".");
  TestEachThreadHasItsError();
  printf("%d failed\n", failures);
  return failures == 0 ? 0 : 1;
}
