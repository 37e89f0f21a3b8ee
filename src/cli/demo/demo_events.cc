#include "src/cli/demo/demo_events.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "connectors/lines/line_reader.h"
#include "src/record/record_reader.h"

namespace lethe {
namespace {

constexpr std::array<const char*, 12> kChannels = {"#en", "#de", "#fr", "#ja", "#es", "#ru",
                                                   "#it", "#zh", "#pt", "#nl", "#pl", "#sv"};

// A file of events, and the fields of each line.
class EventFile {
 public:
  EventFile(int fd, const std::string& path) : path_(path), fd_(fd), lines_(fd, path), reader_(Spec()) {}
  ~EventFile() { close(fd_); }
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  absl::StatusOr<std::optional<DemoEvent>> Next() {
    for (;;) {
      if (next_ == batch_.size()) {
        auto batch = lines_.Read();
        if (!batch.ok()) return batch.status();
        if (batch->empty()) return std::nullopt;
        batch_ = *batch;
        next_ = 0;
      }
      absl::string_view line = batch_[next_++];
      ++number_;
      while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
      if (!line.empty()) return Parse(line);
    }
  }

 private:
  static RecordSpec Spec() {
    RecordSpec spec;
    spec.id = IdSpec{{Field{Field::Kind::kJson, "/id"}}};
    spec.counters.push_back({{Field::Kind::kJson, "/channel"}, Field{Field::Kind::kJson, "/delta"}});
    return spec;
  }

  absl::StatusOr<std::optional<DemoEvent>> Parse(absl::string_view line) {
    RecordView view;
    view.value = line;
    const RecordFields& fields = reader_.Read(view);
    if (fields.id_state == RecordFields::State::kMalformed || line.front() != '{') {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ":", number_, ": not a JSON object: ", fields.reason));
    }
    DemoEvent event;
    const CounterUpdate& counted = fields.counters[0];
    if (counted.state == CounterUpdate::State::kCounted) {
      event.channel = std::string(counted.key);
      event.delta = counted.delta;
    }
    if (fields.id_state == RecordFields::State::kPresent) {
      event.id = std::string(fields.id.substr(1));  // the first byte says whether it is a string
      event.json = std::string(line);
    } else {
      event.id = absl::StrFormat("%016x-%d", HashId(line, 0).a, number_);
      event.json = absl::StrCat("{\"id\":\"", event.id, "\"", line == "{}" ? "" : ",", line.substr(1));
    }
    return event;
  }

  const std::string path_;
  const int fd_;
  lines::LineReader lines_;
  RecordReader reader_;
  absl::Span<const absl::string_view> batch_;
  size_t next_ = 0;
  int64_t number_ = 0;
};

}  // namespace

DemoEvents GeneratedEvents(int64_t count, uint64_t seed) {
  return [count, random = std::mt19937_64(seed),
          made = int64_t{0}]() mutable -> absl::StatusOr<std::optional<DemoEvent>> {
    if (made == count) return std::nullopt;
    DemoEvent event;
    event.id = absl::StrFormat("%016x%08x", random(), made++);
    // Few channels are busy and many are not, as it is with real ones.
    event.channel = kChannels[std::min(random() % kChannels.size(), random() % kChannels.size())];
    event.delta = static_cast<int64_t>(random() % 2000) - 700;
    event.json = absl::StrFormat(
        R"({"id":"%s","time":"%s","channel":"%s","page":"Page %d","user":"editor-%d","comment":"%s","delta":%d})",
        event.id, absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()), event.channel,
        random() % 100000, random() % 5000, random() % 3 == 0 ? "typo" : "added a paragraph and a source",
        event.delta);
    return event;
  };
}

absl::StatusOr<DemoEvents> EventsFromFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  return [file = std::make_shared<EventFile>(fd, path)] { return file->Next(); };
}

absl::StatusOr<std::optional<DemoEvent>> RetryingClients::Next() {
  if (!retries_.empty() && (at_end_ || retries_.top().due <= position_)) {
    DemoEvent event = retries_.top().event;
    retries_.pop();
    Account(event);
    return event;
  }
  auto event = events_();
  if (!event.ok()) return event;
  if (!event->has_value()) {
    if (at_end_) return std::nullopt;
    at_end_ = true;
    return Next();  // the retries that are still to come
  }
  ++position_;
  const auto lost = [this](double share) { return std::uniform_real_distribution<>(0, 1)(random_) < share; };
  if (lost(kLostAcknowledgements)) {
    const int copies = lost(kLostAgain) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      const int64_t later = std::uniform_int_distribution<int64_t>(1, kLatest)(random_);
      retries_.push({position_ + later, **event});
    }
  }
  Account(**event);
  return event;
}

void RetryingClients::Account(const DemoEvent& event) {
  ++truth_.sent;
  const bool first = truth_.ids.insert(event.id).second;
  if (event.channel.empty()) return;
  truth_.totals_without_dedup[event.channel] += event.delta;
  if (first) truth_.totals[event.channel] += event.delta;
}

}  // namespace lethe
