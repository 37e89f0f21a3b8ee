#include "src/cli/reconcile/copy_intake.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "connectors/kafka/topics/topic_writer.h"

namespace lethe {
namespace {

using Header = std::pair<absl::string_view, std::optional<absl::string_view>>;

// The headers of a received record, for an id that is in one of them.
class ReceivedHeaders : public RecordHeaders {
 public:
  explicit ReceivedHeaders(absl::Span<const Header> headers) : headers_(headers) {}
  std::optional<absl::string_view> Last(const std::string& name) const override {
    const auto last = std::find_if(headers_.rbegin(), headers_.rend(),
                                   [&](const Header& header) { return header.first == name; });
    return last == headers_.rend() ? std::nullopt : last->second;
  }

 private:
  const absl::Span<const Header> headers_;
};

absl::Status Refused(absl::string_view source, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the peer sent ", source, ", ", why,
                                          ": this side copies none of its records. Is the peer the one that "
                                          "you mean, and does it run the same lethe?"));
}

}  // namespace

absl::StatusOr<int64_t> ReceiveCopies(
    ReconcileTalk& talk, const ReconcileFacts& from, const CopyTerms& terms, RecordReader& reader,
    const std::function<absl::Status(const SurveyRecord& record, absl::string_view source)>& write) {
  std::vector<uint64_t> keys;  // of what was received; at most as many as announced
  std::vector<Header> headers;
  absl::Status status;
  const auto take = [&](SurveyRecord record) {
    const std::string source =
        absl::StrCat(from.cluster, "/", from.topic, "/", record.partition, "/", record.offset);
    const auto refuse = [&](absl::string_view why) {
      status = Refused(source, why);
      return false;
    };
    if (record.partition >= from.partitions) return refuse("with a partition that the topic does not have");
    if (keys.size() >= terms.announced) {
      return refuse(absl::StrCat("after it announced ", terms.announced, " missing ids"));
    }
    if (record.time_ms < terms.window.begin_ms || record.time_ms >= terms.window.end_ms) {
      return refuse("with a timestamp outside the window");
    }
    const ReceivedHeaders view(record.headers);
    record.record.headers = &view;
    const RecordFields& fields = reader.Read(record.record);
    if (fields.id_state != RecordFields::State::kPresent) return refuse("which has no id");
    const uint64_t key = talk.peers().Key(fields.id);
    const bool was_compared = key % static_cast<uint64_t>(terms.passes) == static_cast<uint64_t>(terms.pass);
    if (!was_compared || terms.has(key)) return refuse("with an id that this side has already");
    keys.push_back(key);
    headers.clear();
    for (const Header& header : record.headers) {
      if (header.first != kafka::kCopiedFrom) headers.push_back(header);
    }
    record.headers = headers;
    status = write(record, source);
    return status.ok();
  };
  for (;;) {
    const auto message = talk.Receive({ReconcileWord::kRecords, ReconcileWord::kEnd});
    if (!message.ok()) return message.status();
    const auto& [word, payload] = *message;
    if (word == ReconcileWord::kEnd) {
      std::vector<int64_t> sent(1);
      const auto received = static_cast<int64_t>(keys.size());
      if (!Decode(payload, sent) || sent[0] != received) return ReconcileTalk::Contradiction();
      std::sort(keys.begin(), keys.end());
      if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) {
        return Refused("two records", "which have the same id");
      }
      return received;
    }
    // A message without records would let the peer go on for ever.
    const bool all = !payload.empty() && ReadRecords(payload, take);
    if (!status.ok()) return status;
    if (!all) return ReconcileTalk::Contradiction();
  }
}

}  // namespace lethe
