#include "src/cli/demo/demo_events.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace lethe {
namespace {

constexpr std::array<const char*, 12> kChannels = {"#en", "#de", "#fr", "#ja", "#es", "#ru",
                                                   "#it", "#zh", "#pt", "#nl", "#pl", "#sv"};

std::string Zigzag(int64_t number) {
  uint64_t left = static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63);
  std::string bytes;
  for (; left >= 0x80; left >>= 7) bytes.push_back(static_cast<char>(left | 0x80));
  bytes.push_back(static_cast<char>(left));
  return bytes;
}

std::string AvroText(absl::string_view text) {
  return absl::StrCat(Zigzag(static_cast<int64_t>(text.size())), text);
}

}  // namespace

const char kDemoSchema1[] = R"({"type":"record","name":"Edit","fields":[{"name":"id","type":"string"},)"
                            R"({"name":"channel","type":"string"},{"name":"delta","type":"int"}]})";
const char kDemoSchema2[] =
    R"({"type":"record","name":"Edit","fields":[{"name":"minor","type":"boolean","default":false},)"
    R"({"name":"id","type":["null","string"],"default":null},)"
    R"({"name":"channel","type":"string"},{"name":"delta","type":"long"}]})";

std::string DemoAvro(const DemoEvent& event, int schema) {
  const std::string frame = std::string(4, '\0') + static_cast<char>(schema);
  const std::string before_id = schema == 1 ? "" : absl::StrCat(absl::string_view("\0", 1), Zigzag(1));
  return absl::StrCat(frame, before_id, AvroText(event.id), AvroText(event.channel), Zigzag(event.delta));
}

DemoEvents GeneratedEvents(int64_t count, uint64_t seed) {
  return [count, random = std::mt19937_64(seed), made = int64_t{0}]() mutable -> std::optional<DemoEvent> {
    if (made == count) return std::nullopt;
    DemoEvent event;
    event.id = absl::StrFormat("%016x%08x", random(), made++);
    // Few channels are busy and many are not, as it is with real ones.
    event.channel = kChannels[std::min(random() % kChannels.size(), random() % kChannels.size())];
    event.delta = static_cast<int64_t>(random() % 2000) - 700;
    event.value = absl::StrFormat(
        R"({"id":"%s","time":"%s","channel":"%s","page":"Page %d","user":"editor-%d","comment":"%s","delta":%d})",
        event.id, absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()), event.channel,
        random() % 100000, random() % 5000, random() % 3 == 0 ? "typo" : "added a paragraph and a source",
        event.delta);
    return event;
  };
}

std::optional<DemoEvent> RetryingClients::Next() {
  if (!retries_.empty() && (at_end_ || retries_.top().due <= position_)) {
    DemoEvent event = retries_.top().event;
    retries_.pop();
    Account(event);
    return event;
  }
  const std::optional<DemoEvent> event = events_();
  if (!event.has_value()) {
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
      retries_.push({position_ + later, *event});
    }
  }
  Account(*event);
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
