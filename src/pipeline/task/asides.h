// What a source has set aside of all its partitions, and when its client fetches on.
#ifndef LETHE_SRC_PIPELINE_TASK_ASIDES_H_
#define LETHE_SRC_PIPELINE_TASK_ASIDES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "src/pipeline/options/topic_partition.h"
#include "src/pipeline/task/aside.h"
#include "src/pipeline/task/input_record.h"

namespace lethe {

// What was fetched: a record, or an event of its partition.
struct MessagePlace {
  TopicPartition partition;
  int64_t offset = 0;
  bool is_record = true;  // else the next offset is the same
  size_t bytes = 0;
};

// `Message` owns what was fetched, and is null when that was moved away. `Client` fetches:
//
//   MessagePlace PlaceOf(const Message& message);
//   void StopFetching(TopicPartition partition);
//   void FetchAgain(TopicPartition partition, std::optional<int64_t> offset);  // none: from where it was
//
// Not thread-safe.
template <class Message, class Client>
class Asides {
 public:
  // The client outlives it. It fetches no more of a partition of which there are more records than `most`.
  explicit Asides(Client& client, size_t most = Aside<Message>::kMost) : client_(client), most_(most) {}

  // The worker wants no records of the partition, or wants them again.
  void SetPaused(TopicPartition partition, bool paused) {
    if (paused) {
      paused_.insert(partition);
      client_.StopFetching(partition);
    } else {
      paused_.erase(partition);
      client_.FetchAgain(partition, std::nullopt);
    }
  }

  // A message that was just fetched. True: others of its partition come first, and it is kept behind them.
  bool TakeFollowing(Message& message) {
    if (by_partition_.empty()) return false;
    const TopicPartition partition = client_.PlaceOf(message).partition;
    const auto found = by_partition_.find(partition);
    if (found == by_partition_.end() || !found->second.Follows()) return false;
    found->second.Follow(RecordOf(std::move(message)));
    StopIfFull(partition, found->second);
    return true;
  }

  // What comes again, before anything that is fetched: `add` gets each message with its size. False: not all
  // of it has room.
  template <class HasRoom, class Add>
  bool Return(const HasRoom& has_room, const Add& add) {
    for (auto& [partition, aside] : by_partition_) {
      while (aside.Comes()) {
        if (!has_room()) return false;
        typename Aside<Message>::Record record = aside.Next();
        add(std::move(record.message), record.bytes);
      }
      if (aside.Empties()) FetchAgain(partition, aside.end());
    }
    return true;
  }

  // Keeps these of a batch, in their order; `messages` are all of it.
  void SetAside(TopicPartition partition, absl::Span<const InputRecord> records,
                std::vector<Message>& messages) {
    Aside<Message>& aside = Of(partition);
    auto message = messages.begin();
    for (const InputRecord& record : records) {
      message = std::find_if(message, messages.end(), [&](const Message& each) {
        if (each == nullptr) return false;
        const MessagePlace place = client_.PlaceOf(each);
        // An end that was met before the record was written has the offset of the record.
        return place.partition == partition && place.offset == record.offset &&
               place.is_record == (record.event == nullptr);
      });
      if (message == messages.end()) return;
      Keep(partition, aside, std::move(*message));
    }
  }

  // None comes until they are taken back.
  void Wait(TopicPartition partition) { Of(partition).Wait(); }

  // In the middle of a batch: what it still has of the partition, from `next` on, comes behind what is kept.
  void TakeBack(TopicPartition partition, int64_t next, std::vector<Message>& messages) {
    Aside<Message>& aside = Of(partition);
    for (Message& message : messages) {
      if (message == nullptr) continue;
      const MessagePlace place = client_.PlaceOf(message);
      if (place.partition != partition || place.offset < next) continue;
      Keep(partition, aside, std::move(message));
    }
    aside.TakeBack();
  }

  // The partition is sought, assigned or not read any more. The batch may still have views of what is
  // dropped, until Release().
  void Drop(TopicPartition partition) {
    const auto found = by_partition_.find(partition);
    if (found == by_partition_.end()) return;
    found->second.MoveTo(dropped_);
    const bool was_full = found->second.is_full();
    by_partition_.erase(found);
    if (was_full) FetchAgain(partition, std::nullopt);
  }
  // It is not this source's any more.
  void Forget(TopicPartition partition) {
    Drop(partition);
    paused_.erase(partition);
  }
  void Release() { dropped_.clear(); }
  // With the client.
  void Clear() {
    by_partition_.clear();
    dropped_.clear();
    paused_.clear();
  }

 private:
  Aside<Message>& Of(TopicPartition partition) {
    return by_partition_.try_emplace(partition, most_).first->second;
  }
  void FetchAgain(TopicPartition partition, std::optional<int64_t> offset) {
    if (!paused_.contains(partition)) client_.FetchAgain(partition, offset);
  }
  typename Aside<Message>::Record RecordOf(Message message) {
    const MessagePlace place = client_.PlaceOf(message);
    return {std::move(message), place.bytes, place.is_record ? place.offset + 1 : place.offset};
  }
  void Keep(TopicPartition partition, Aside<Message>& aside, Message message) {
    aside.Keep(RecordOf(std::move(message)));
    StopIfFull(partition, aside);
  }
  void StopIfFull(TopicPartition partition, Aside<Message>& aside) {
    if (aside.FillsUp()) client_.StopFetching(partition);
  }

  Client& client_;
  const size_t most_;
  std::set<TopicPartition> paused_;  // by the worker
  std::map<TopicPartition, Aside<Message>> by_partition_;
  std::vector<Message> dropped_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_TASK_ASIDES_H_
