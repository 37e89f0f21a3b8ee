// Records by what they were and by what was done with them.
#ifndef LETHE_SRC_PIPELINE_REPORT_RECORD_COUNTS_H_
#define LETHE_SRC_PIPELINE_REPORT_RECORD_COUNTS_H_

#include <cstdint>

namespace lethe {

// Every input record ends under exactly one of the first eight. Counted when the transaction that carried it
// out has committed, so a record that was judged twice because of an abort counts once.
struct RecordCounts {
  int64_t unique = 0;
  int64_t duplicate = 0;
  int64_t suspect = 0;        // a duplicate to the filter, but not to the second opinion
  int64_t missing_id = 0;     // without a verdict
  int64_t malformed = 0;      // without a verdict
  int64_t undeliverable = 0;  // the topic that it was for refuses it for good
  int64_t unreadable = 0;     // could not be fetched, and were passed over
  int64_t suppressed = 0;     // read again to rebuild the filter; its result is already out
  // What was done with the first seven: the policies' part. Every one of them is in exactly one of these.
  int64_t passed = 0;
  int64_t tagged = 0;
  int64_t diverted = 0;
  int64_t dropped = 0;
  // Beside those: what counters were changed by, and how often a passed record could not be counted by one;
  // records without a key, and such whose timestamp is not believed.
  int64_t counter_updates = 0;
  int64_t malformed_delta = 0;
  int64_t overflowed_delta = 0;  // a total would have left 64 bits
  int64_t unkeyed = 0;
  int64_t future = 0;  // dated further ahead than max_future

  RecordCounts& operator+=(const RecordCounts& other) {
    unique += other.unique;
    duplicate += other.duplicate;
    suspect += other.suspect;
    missing_id += other.missing_id;
    malformed += other.malformed;
    undeliverable += other.undeliverable;
    unreadable += other.unreadable;
    suppressed += other.suppressed;
    passed += other.passed;
    tagged += other.tagged;
    diverted += other.diverted;
    dropped += other.dropped;
    counter_updates += other.counter_updates;
    malformed_delta += other.malformed_delta;
    overflowed_delta += other.overflowed_delta;
    unkeyed += other.unkeyed;
    future += other.future;
    return *this;
  }
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_RECORD_COUNTS_H_
