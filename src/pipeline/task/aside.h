// Records of a partition that were fetched and are not processed yet.
#ifndef LETHE_SRC_PIPELINE_TASK_ASIDE_H_
#define LETHE_SRC_PIPELINE_TASK_ASIDE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace lethe {

// What a Source has set aside of one partition, and what the client fetched behind that. `Message` owns a
// record. Not thread-safe.
template <class Message>
class Aside {
 public:
  // What the next slices of time may need, and little memory: with more the client pauses.
  static constexpr size_t kMost = 4096;
  static constexpr size_t kMostBytes = size_t{1} << 20;

  struct Record {
    Message message;
    size_t bytes = 0;
    int64_t next = 0;  // the offset behind it
  };

  explicit Aside(size_t most = kMost) : most_(most) {}

  // Comes again after TakeBack().
  void Keep(Record record) { Account(kept_.emplace_back(std::move(record))); }
  // Takes it if others are to come first.
  bool Follows() const { return !coming_.empty(); }
  void Follow(Record record) { Account(coming_.emplace_back(std::move(record))); }

  void Wait() { waits_ = true; }
  // What is kept comes before what was fetched behind it.
  void TakeBack() {
    waits_ = false;
    coming_.insert(coming_.begin(), std::move_iterator(kept_.begin()), std::move_iterator(kept_.end()));
    kept_.clear();
  }
  // Whether one comes again; none does while the partition waits.
  bool Comes() const { return !waits_ && !coming_.empty(); }
  Record Next() {
    Record next = std::move(coming_.front());
    coming_.pop_front();
    bytes_ -= next.bytes;
    return next;
  }

  // True once: the client is to pause.
  bool FillsUp() {
    if (is_full_ || (kept_.size() + coming_.size() <= most_ && bytes_ <= kMostBytes)) return false;
    return is_full_ = true;
  }
  // True once after that: all has come that is to come, and the client is to resume at end().
  bool Empties() {
    if (waits_ || !coming_.empty()) return false;
    return std::exchange(is_full_, false);
  }
  bool is_full() const { return is_full_; }
  // The next offset to fetch.
  int64_t end() const { return end_; }

  void MoveTo(std::vector<Message>& messages) {
    for (Record& record : kept_) messages.push_back(std::move(record.message));
    for (Record& record : coming_) messages.push_back(std::move(record.message));
  }

 private:
  void Account(const Record& added) {
    bytes_ += added.bytes;
    end_ = std::max(end_, added.next);
  }

  size_t most_;
  std::deque<Record> kept_;
  std::deque<Record> coming_;
  bool waits_ = false;
  size_t bytes_ = 0;  // of both
  int64_t end_ = -1;
  bool is_full_ = false;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_ASIDE_H_
