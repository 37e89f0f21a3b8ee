// What a lane watches: missing ids, wrong times, expired records, differing keys of copies, quotas, stalled
// partitions, open transactions of producers. Not thread-safe: each belongs to one lane.
#ifndef LETHE_SRC_PIPELINE_REPORT_WATCHES_H_
#define LETHE_SRC_PIPELINE_REPORT_WATCHES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "lethe/event.h"
#include "src/pipeline/options/topic_partition.h"
#include "src/record/timestamp.h"

namespace lethe {

// Finds stretches of records that nearly all lack a usable id: `id` names the wrong field, or a producer has
// changed.
class IdWatch {
 public:
  struct Stretch {
    int64_t records = 0;
    int64_t without_id = 0;
    std::string reason = {};  // of its first record without an id
  };

  // For a record without a usable id.
  void See(absl::string_view reason) {
    if (open_.reason.empty()) open_.reason = std::string(reason);
  }

  // After a commit. Returns the stretch that ends here if nearly all of it lack an id, at most once a minute.
  std::optional<Stretch> Add(int64_t records, int64_t without_id, absl::Time now) {
    if (records == 0) return std::nullopt;
    open_.records += records;
    open_.without_id += without_id;
    if (open_.records < kLeast || now < next_) return std::nullopt;
    next_ = now + kEvery;
    last_ = std::exchange(open_, {});
    return nearly_none();
  }

  // The last stretch, if nearly all of it lack an id.
  std::optional<Stretch> nearly_none() const {
    const bool nearly_none =
        last_.records > 0 && kOneIn * (last_.records - last_.without_id) <= last_.records;
    return nearly_none ? std::optional(last_) : std::nullopt;
  }

 private:
  static constexpr int64_t kLeast = 100;
  static constexpr int64_t kOneIn = 10;  // nine of ten lack it
  static constexpr absl::Duration kEvery = absl::Minutes(1);

  Stretch open_;
  Stretch last_;
  absl::Time next_ = absl::InfinitePast();
};

// Finds stretches of records most of whose timestamps are not the milliseconds that Kafka's are.
class TimeWatch {
 public:
  void See(int64_t timestamp_ms) { open_.Add(timestamp_ms); }

  // After a commit. Returns the stretch that ends here if most of its times are wrong, at most once an hour.
  std::optional<TimeUnitCheck> Take(absl::Time now) {
    if (open_.times() < kLeast) return std::nullopt;
    last_ = std::exchange(open_, {});
    if (!last_.MostAreWrong() || now < next_) return std::nullopt;
    next_ = now + kEvery;
    return last_;
  }

  // The last stretch, if most of its times are wrong.
  std::optional<TimeUnitCheck> wrong() const {
    return last_.MostAreWrong() ? std::optional(last_) : std::nullopt;
  }

 private:
  static constexpr int64_t kLeast = 100;
  static constexpr absl::Duration kEvery = absl::Hours(1);

  TimeUnitCheck open_;
  TimeUnitCheck last_;
  absl::Time next_ = absl::InfinitePast();
};

// Finds stretches of written records most of which are older than the output keeps records: Kafka deletes
// these soon. A late record among others is kept with them, since Kafka deletes whole segments.
class ExpiryWatch {
 public:
  struct Stretch {
    int64_t written = 0;
    int64_t expired = 0;
    int64_t offset = 0;  // of one of these in the input, and its time
    int64_t timestamp_ms = 0;
    absl::Duration kept_for = absl::InfiniteDuration();  // by the output
  };

  // For each expired record.
  void See(int64_t offset, int64_t timestamp_ms, absl::Duration kept_for) {
    open_.offset = offset;
    open_.timestamp_ms = timestamp_ms;
    open_.kept_for = kept_for;
  }
  // After a commit, with what it has written.
  void Add(int64_t written, int64_t expired) {
    open_.written += written;
    open_.expired += expired;
    if (open_.written >= kLeast) last_ = std::exchange(open_, {});
  }
  // The last stretch, if most of it is expired.
  std::optional<Stretch> most() const {
    return 2 * last_.expired > last_.written ? std::optional(last_) : std::nullopt;
  }

 private:
  static constexpr int64_t kLeast = 10;

  Stretch open_;
  Stretch last_;
};

// Compares the keys of copies with the key of the first. Other keys mean that copies meet in one partition
// only by chance.
//
// Samples one id in 64 by its hash, and remembers up to 16,384 keys, one in each place. So a copy is compared
// if it comes within about a million ids of the first. 256 KiB, allocated with the first id: most of
// hundreds of topics may be idle.
class KeyWatch {
 public:
  static bool IsSampled(IdHash id) { return id.a % kOneIn == 0; }
  // For a judged event with a sampled id. A null key differs from every other.
  void See(int32_t partition, IdHash id, Verdict verdict, std::optional<absl::string_view> key);

  struct Found {
    int64_t differing = 0;  // copies with another key than the first
    int64_t compared = 0;   // copies
  };
  // At least ten differing among the last thousand compared; at most once an hour.
  std::optional<Found> Take(absl::Time now);

 private:
  static constexpr uint64_t kOneIn = 64;

  // Of an id in one partition.
  struct Place {
    uint64_t id = 0;
    uint64_t key = 0;
  };
  std::vector<Place> places_;
  Found found_;
  absl::Time next_ = absl::InfinitePast();
};

// Finds out whether quotas hold a client back for long. Times are Clock::Steady().
class ThrottleWatch {
 public:
  // `throttled`: the sum of all throttle times that brokers stated. To be called often.
  void Look(absl::Duration throttled, absl::Time now);
  // The share of the last whole ten seconds in which a broker held requests back; 0 if below a tenth.
  double share() const { return share_; }
  // The share if it is above 0, at most once in ten minutes.
  std::optional<double> Take(absl::Time now);

 private:
  absl::Duration total_ = absl::ZeroDuration();
  absl::Time until_ = absl::InfinitePast();  // the end of the throttle times stated so far
  absl::Time looked_ = absl::InfiniteFuture();
  absl::Time window_ = absl::InfiniteFuture();  // its begin
  absl::Duration in_window_ = absl::ZeroDuration();
  double share_ = 0;
  absl::Time next_ = absl::InfinitePast();
};

// Finds partitions that have lag and commit nothing for longer than the patience, for whatever reason. While
// others commit, a partition may wait for its turn, and gets kTurns times the patience. Times are
// Clock::Steady().
class ProgressWatch {
 public:
  static constexpr int kTurns = 10;

  struct Sight {
    TopicPartition partition;
    int64_t committed = 0;
    bool behind = false;  // it has lag
  };

  // `owned` are all partitions of the lane, in their order; others are forgotten. Four times a second, of
  // thousands: it allocates for new ones only.
  void Look(absl::Span<const Sight> owned, absl::Time now);

  // Time with lag and without a commit; zero without lag.
  absl::Duration StandsFor(TopicPartition partition, absl::Time now) const;
  // Stalled partitions, in order.
  std::vector<TopicPartition> Stalled(absl::Duration patience, absl::Time now) const;

 private:
  struct Seen {
    int64_t committed = 0;
    bool behind = false;
    absl::Time since = absl::InfinitePast();  // the last commit, or the last look without lag
  };

  std::map<TopicPartition, Seen> seen_;
};

// Finds partitions whose committed records are all read and whose log goes on: a producer's transaction is
// open there, and a reader of committed records gets nothing behind its first record. Times are
// Clock::Steady().
class OpenTransactionWatch {
 public:
  struct Sight {
    TopicPartition partition;
    int64_t position = 0;  // the next offset to read
    // The client has met the last stable offset at `position`, and the log ends behind it.
    bool held = false;
  };

  // `owned` are all partitions of the lane; others are forgotten.
  void Look(absl::Span<const Sight> owned, absl::Time now);

  // How long the partition has been held; zero if it is not.
  absl::Duration HeldFor(TopicPartition partition, absl::Time now) const;

 private:
  struct Held {
    int64_t position = 0;
    absl::Time since = absl::InfinitePast();
  };

  std::map<TopicPartition, Held> held_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_REPORT_WATCHES_H_
