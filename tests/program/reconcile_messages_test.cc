// What the two sides of a reconciliation say: it comes as it was sent, and nothing else is taken for it.
#include "src/cli/reconcile/reconcile_messages.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lethe {
namespace {

constexpr ReconcileAsk kAsk = {.begin_ms = 1000,
                               .end_ms = 2000,
                               .settle_ms = 10,
                               .to_peer = true,
                               .method = ReconcileMethod::kLookupTable};

SideReport Report() {
  SideReport report;
  report.facts = {"cluster", "orders", 2, 3};
  report.records = 5;
  report.only = 24;
  report.gone = 7;
  report.by_partition = {2, 22};
  report.by_time.resize(SideReport::kBuckets, 1);
  report.samples = {{"id-1", 1, 77, 1500}, {"", 0, 0, 0}};
  return report;
}

TEST(ReconcileMessagesTest, ComeAsTheyWereSent) {
  ReconcileAsk ask;
  ASSERT_TRUE(Decode(Encode(kAsk), ask));
  EXPECT_EQ(Encode(ask), Encode(kAsk));
  EXPECT_EQ(ask.wide_begin_ms(), 990);
  EXPECT_EQ(ask.wide_end_ms(), 2010);
  SideReport report;
  ASSERT_TRUE(Decode(Encode(Report()), report));
  EXPECT_EQ(Encode(report), Encode(Report()));
  EXPECT_EQ(report.samples[0].id, "id-1");
  EXPECT_EQ(report.gone, 7);
}

TEST(ReconcileMessagesTest, NoWindowBeginsBeforeTime) {
  ReconcileAsk ask = kAsk;
  ask.settle_ms = ask.begin_ms + 1;  // -1 means the end of the log to a broker
  EXPECT_EQ(ask.wide_begin_ms(), 0);
}

// Figures and texts that no topic has would fill a report, or keep this side busy.
TEST(ReconcileMessagesTest, FiguresThatCannotBeAreRefused) {
  using Change = std::function<void(SideReport&)>;
  const std::vector<Change> changes = {
      [](SideReport& report) { report.facts.passes = ReconcileFacts::kMostPasses + 1; },
      [](SideReport& report) { report.facts.partitions = 1'000'001; },
      [](SideReport& report) { report.facts.cluster = std::string(256, 'c'); },
      [](SideReport& report) { report.facts.topic = std::string(250, 't'); },
      [](SideReport& report) { report.facts.topic = "a/b"; },
      [](SideReport& report) { report.facts.topic = ""; },
      [](SideReport& report) { report.records = INT64_MAX; },
      [](SideReport& report) { report.without_id = -1; },
      [](SideReport& report) { report.copied = report.only; },  // and 7 are gone
      [](SideReport& report) { report.last_ms = INT64_MAX; },
      [](SideReport& report) {
        report.by_partition = {-1, 25};
      },
      [](SideReport& report) {
        report.by_partition = {2, 23};
      },
      [](SideReport& report) { report.by_partition = {24}; },
      [](SideReport& report) { report.by_time[3] = INT64_MAX; },
      [](SideReport& report) { report.samples[0].id = std::string(SideReport::kSampleBytes + 1, 'i'); },
      [](SideReport& report) { report.samples[0].partition = 2; },
      [](SideReport& report) { report.samples[0].offset = -1; },
      [](SideReport& report) { report.samples[0].time_ms = INT64_MAX; },
      [](SideReport& report) { report.samples.resize(SideReport::kSamples + 1); }};
  for (size_t i = 0; i < changes.size(); ++i) {
    SideReport report = Report();
    changes[i](report);
    SideReport read;
    EXPECT_FALSE(Decode(Encode(report), read)) << i;
  }
}

TEST(ReconcileMessagesTest, WindowsThatCannotBeAreRefused) {
  ReconcileAsk read;
  for (const auto& change :
       std::vector<std::pair<int64_t ReconcileAsk::*, int64_t>>{{&ReconcileAsk::begin_ms, -1},
                                                                {&ReconcileAsk::begin_ms, 2000},
                                                                {&ReconcileAsk::end_ms, INT64_MAX},
                                                                {&ReconcileAsk::settle_ms, INT64_MAX},
                                                                {&ReconcileAsk::settle_ms, -1}}) {
    ReconcileAsk ask = kAsk;
    ask.*change.first = change.second;
    EXPECT_FALSE(Decode(Encode(ask), read)) << change.second;
  }
}

TEST(ReconcileMessagesTest, RecordsKeepNullAndEmptyApart) {
  using Headers = std::vector<std::pair<absl::string_view, std::optional<absl::string_view>>>;
  const Headers headers = {{"a", "1"}, {"a", ""}, {"", std::nullopt}};
  std::string bytes;
  AppendRecord({{"key", "value"}, headers, 3, 4, 5}, bytes);
  AppendRecord({{std::nullopt, ""}, {}, 0, 0, 0}, bytes);
  AppendRecord({{"", std::nullopt}, {}, 0, 1, 0}, bytes);
  int records = 0;
  EXPECT_TRUE(ReadRecords(bytes, [&](const SurveyRecord& record) {
    switch (records++) {
      case 0:
        EXPECT_EQ(record.record.key, "key");
        EXPECT_EQ(record.record.value, "value");
        EXPECT_EQ(Headers(record.headers.begin(), record.headers.end()), headers);
        EXPECT_EQ(record.partition, 3);
        EXPECT_EQ(record.offset, 4);
        EXPECT_EQ(record.time_ms, 5);
        break;
      case 1:
        EXPECT_EQ(record.record.key, std::nullopt);
        EXPECT_EQ(record.record.value, "");
        break;
      default:
        EXPECT_EQ(record.record.key, "");
        EXPECT_EQ(record.record.value, std::nullopt);
    }
    return true;
  }));
  EXPECT_EQ(records, 3);
}

// Cut, or with bytes that were changed: refused, or read as something else of the same kind; never more than
// what is there (ASan would say so), and never for ever.
TEST(ReconcileMessagesTest, BrokenOnesAreRefused) {
  std::string records;
  AppendRecord({{"key", "value"}, {}, 3, 4, 5}, records);
  const std::vector<std::string> messages = {Encode(kAsk), Encode(Report()), Encode(Report().facts), records};
  const auto decodes = [](const std::string& bytes, size_t which) {
    ReconcileAsk ask;
    SideReport report;
    ReconcileFacts facts;
    switch (which) {
      case 0:
        return Decode(bytes, ask);
      case 1:
        return Decode(bytes, report);
      case 2:
        return Decode(bytes, facts);
      default:
        return ReadRecords(bytes, [](const SurveyRecord&) { return true; });
    }
  };
  std::mt19937_64 random(3);
  for (size_t which = 0; which < messages.size(); ++which) {
    const std::string& message = messages[which];
    EXPECT_TRUE(decodes(message, which));
    for (size_t size = 1; size < message.size(); ++size) {
      EXPECT_FALSE(decodes(message.substr(0, size), which)) << which << " cut at " << size;
    }
    for (int i = 0; i < 2000; ++i) {
      std::string changed = message;
      changed[random() % changed.size()] = static_cast<char>(random());
      decodes(changed, which);
    }
  }
}

}  // namespace
}  // namespace lethe
