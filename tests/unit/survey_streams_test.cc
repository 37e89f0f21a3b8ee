// Streams as companies have them, with the decoys that theirs have: entities that change, ids of requests
// that several events share, sending times, counters for each source. The survey proposes an id that finds
// exactly what was sent again.
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "src/survey/survey.h"
#include "tests/support/survey_samples.h"

namespace lethe {
namespace {

using nlohmann::json;

constexpr int64_t kBegin = 1'795'860'000;  // in seconds

using test::Sample;

// Event i of a stream, as it is sent for the attempt-th time. Everything but sending times is a function of
// i.
struct Stream {
  const char* name;
  std::vector<std::string> ids;  // any of these is right
  // Good, where copies are equal; doubtful, where people are to say what a sending is, or a value is its id.
  IdQuality quality;
  std::function<Sample(uint64_t i, int attempt)> event;
};

uint64_t Mixed(uint64_t i, uint64_t salt) { return std::mt19937_64(i * 1'000'003 + salt)(); }
int64_t Pick(uint64_t i, uint64_t salt, int64_t among) {
  return static_cast<int64_t>(Mixed(i, salt) % static_cast<uint64_t>(among));
}
std::string Uuid(uint64_t i, uint64_t salt) {
  const uint64_t high = Mixed(i, salt);
  const uint64_t low = Mixed(i, salt + 1);
  return absl::StrFormat("%08x-%04x-4%03x-8%03x-%012x", high >> 32, high >> 16 & 0xffff, high & 0xfff,
                         low >> 52, low & 0xffffffffffff);
}
std::string Hex(uint64_t i, uint64_t salt) { return absl::StrFormat("%016x", Mixed(i, salt)); }
std::string Iso(uint64_t i, int attempt) {
  return absl::StrFormat("2026-11-28T10:%02d:%02d.%03dZ", i / 600 % 60, i / 10 % 60,
                         i * 97 % 900 + static_cast<uint64_t>(attempt));
}
int64_t Ms(uint64_t i, int attempt) { return (kBegin + static_cast<int64_t>(i)) * 1000 + 37 * attempt; }
Sample Value(const json& value) { return {.key = std::nullopt, .headers = {}, .value = value.dump()}; }
Sample Keyed(std::string key, const json& value) {
  return {.key = std::move(key), .headers = {}, .value = value.dump()};
}

std::vector<Stream> Streams() {
  return {
      {"orders with the id of the event",
       {"json:/event_id"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         return Keyed(absl::StrCat("order-", Pick(i, 1, 200)),
                      {{"event_id", Uuid(i, 2)},
                       {"order_id", absl::StrCat("order-", Pick(i, 1, 200))},
                       {"type", i % 3 ? "item_added" : "paid"},
                       {"at", Iso(i, 0)}});
       }},
      {"payments that change their status",
       {"json:/payment_id+json:/status", "json:/status+json:/payment_id"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         const char* const status[] = {"created", "authorized", "captured"};
         const uint64_t payment = i / 90 * 30 + i % 30;
         return Keyed(absl::StrCat("m-", payment % 7), {{"payment_id", Uuid(payment, 3)},
                                                        {"merchant", absl::StrCat("m-", payment % 7)},
                                                        {"status", status[i / 30 % 3]},
                                                        {"amount", Pick(payment, 4, 10'000)},
                                                        {"currency", "EUR"}});
       }},
      {"devices that count their messages",
       {"json:/device+json:/seq", "json:/seq+json:/device", "key+json:/seq", "json:/seq+key"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         const std::string device = absl::StrCat("d-", i % 40);
         return Keyed(device, {{"device", device},
                               {"seq", i / 40},
                               {"t", Ms(i, 0)},
                               {"temp", 20 + static_cast<double>(Pick(i, 5, 50)) / 10}});
       }},
      {"measurements without an id",
       {"value", "key+value", "value+key"},
       IdQuality::kDoubtful,
       [](uint64_t i, int) {
         return Keyed(absl::StrCat("s-", i % 25), {{"sensor", absl::StrCat("s-", i % 25)},
                                                   {"t", Ms(i, 0)},
                                                   {"v", static_cast<double>(Pick(i, 6, 10'000)) / 7}});
       }},
      {"clicks with a sending time",
       {"json:/messageId"},
       IdQuality::kDoubtful,
       [](uint64_t i, int attempt) {
         return Value({{"anonymousId", Uuid(i % 60, 7)},
                       {"messageId", "ajs-" + Hex(i, 8)},
                       {"event", "Viewed"},
                       {"sentAt", Iso(i, attempt)},
                       {"originalTimestamp", Iso(i, 0)}});
       }},
      {"webhooks of payments",
       {"json:/id"},
       IdQuality::kDoubtful,
       [](uint64_t i, int attempt) {
         return Value(
             {{"id", "evt_" + Hex(i, 9)},
              {"object", "event"},
              {"created", kBegin + static_cast<int64_t>(i)},
              {"type", "charge.updated"},
              {"pending_webhooks", attempt + 1},
              {"data", {{"object", {{"id", "ch_" + Hex(i / 3, 10)}, {"amount", Pick(i, 11, 5000)}}}}},
              {"request", {{"id", nullptr}, {"idempotency_key", Uuid(i / 3, 12)}}}});
       }},
      {"webhooks of repositories",
       {"header:X-GitHub-Delivery"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         Sample sample = Value({{"action", "edited"},
                                {"issue", {{"number", Pick(i, 13, 30)}, {"title", "Crash"}}},
                                {"sender", {{"login", absl::StrCat("dev", Pick(i, 14, 9))}}}});
         sample.headers = {{"X-GitHub-Delivery", Uuid(i, 15)}, {"X-GitHub-Event", "issues"}};
         return sample;
       }},
      {"webhooks of shops",
       {"header:X-Shopify-Event-Id"},
       IdQuality::kGood,
       [](uint64_t i, int attempt) {
         Sample sample = Value({{"id", 4'000'000 + Pick(i, 16, 150)},
                                {"updated_at", Iso(i, 0)},
                                {"total_price", absl::StrCat(Pick(i, 17, 9000), ".00")}});
         sample.headers = {{"X-Shopify-Event-Id", Uuid(i, 18)},
                           {"X-Shopify-Topic", "orders/updated"},
                           {"X-Shopify-Triggered-At", Iso(i, 0)},
                           {"X-Attempt", absl::StrCat(attempt + 1)}};
         return sample;
       }},
      {"rows of Maxwell",
       {"json:/xid+json:/xoffset", "json:/xoffset+json:/xid"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         return Keyed(absl::StrCat(Pick(i, 19, 90)),
                      {{"database", "shop"},
                       {"table", "stock"},
                       {"type", "update"},
                       {"ts", kBegin + static_cast<int64_t>(i / 4)},
                       {"xid", 23'000 + i / 4},
                       {"xoffset", i % 4},
                       {"data", {{"id", Pick(i, 19, 90)}, {"left", Pick(i, 20, 50)}}},
                       {"old", {{"left", Pick(i, 21, 50)}}}});
       }},
      {"rows of Canal",
       {"json:/id"},
       IdQuality::kDoubtful,
       [](uint64_t i, int attempt) {
         return Value({{"id", i + 1},
                       {"database", "shop"},
                       {"table", "stock"},
                       {"type", "UPDATE"},
                       {"es", Ms(i / 5, 0)},
                       {"ts", Ms(i, attempt)},
                       {"data", json::array({{{"id", absl::StrCat(Pick(i, 22, 80))},
                                              {"left", absl::StrCat(Pick(i, 23, 9))}}})}});
       }},
      {"change streams of MongoDB",
       {"json:/_id/_data"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         return Keyed(absl::StrCat(R"({"_id":")", Hex(i % 70, 24), R"("})"),
                      {{"_id", {{"_data", "8263" + Hex(i, 25) + Hex(i, 26)}}},
                       {"operationType", "update"},
                       {"clusterTime", kBegin + static_cast<int64_t>(i / 3)},
                       {"documentKey", {{"_id", Hex(i % 70, 24)}}}});
       }},
      {"edits of a wiki",
       {"json:/meta/id"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         return Value({{"$schema", "/mediawiki/recentchange/1.0.0"},
                       {"meta",
                        {{"uri", absl::StrCat("https://w/", Pick(i, 27, 99))},
                         {"request_id", Uuid(i / 2, 28)},
                         {"id", Uuid(i, 29)},
                         {"dt", Iso(i / 2, 0)},
                         {"domain", i % 2 ? "en" : "de"}}},
                       {"title", absl::StrCat("Page ", Pick(i, 27, 99))},
                       {"type", "edit"}});
       }},
      {"changes of Salesforce",
       {"json:/event/replayId"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         return Value({{"schema", "IeRuaY6cbI_HsV8Rv1Mc5g"},
                       {"payload",
                        {{"Name", absl::StrCat("Account ", Pick(i, 30, 80))},
                         {"ChangeEventHeader",
                          {{"entityName", "Account"},
                           {"transactionKey", Uuid(i / 3, 31)},
                           {"sequenceNumber", i % 3 + 1},
                           {"commitTimestamp", Ms(i / 3, 0)}}}}},
                       {"event", {{"replayId", 17'000'000 + i}}}});
       }},
      {"lines of containers",
       {"value", "key+value", "value+key"},
       IdQuality::kDoubtful,
       [](uint64_t i, int) {
         return Value(
             {{"@timestamp", Iso(i, 0)},
              {"stream", "stdout"},
              {"log", absl::StrCat("GET /cart/", Pick(i, 32, 5000), " 200")},
              {"kubernetes", {{"pod_name", absl::StrCat("cart-", i % 5)}, {"namespace_name", "shop"}}}});
       }},
      {"spans",
       {"value"},
       IdQuality::kDoubtful,
       [](uint64_t i, int) {
         return Keyed(Hex(i / 5, 33), {{"traceId", Hex(i / 5, 33) + Hex(i / 5, 34)},
                                       {"spanId", Hex(i, 35)},
                                       {"parentSpanId", i % 5 ? Hex(i - i % 5, 35) : ""},
                                       {"name", "GET"},
                                       {"duration", Pick(i, 36, 900)}});
       }},
      {"executions of FIX",
       {"json:/ExecID"},
       IdQuality::kDoubtful,
       [](uint64_t i, int attempt) {
         json fields = {{"MsgType", "8"},
                        {"ClOrdID", absl::StrCat("C", i / 4)},
                        {"OrderID", absl::StrCat("O", i / 4)},
                        {"ExecID", absl::StrCat("E", 90'000 + i)},
                        {"OrdStatus", i % 4 == 3 ? "2" : "1"},
                        {"SendingTime", Iso(i, attempt)},
                        {"Symbol", "ACME"},
                        {"LastQty", Pick(i, 37, 100)}};
         if (attempt > 0) fields["PossDupFlag"] = "Y";
         return Value(fields);
       }},
      {"rows of a table with versions",
       {"json:/payload/id+json:/payload/version", "json:/payload/version+json:/payload/id",
        "key+json:/payload/version", "json:/payload/version+key"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         const uint64_t row = i % 50;
         return Keyed(
             absl::StrCat(row),
             {{"schema", {{"type", "struct"}, {"optional", false}}},
              {"payload",
               {{"id", row}, {"version", i / 50}, {"balance", Pick(i, 38, 100)}, {"updated_at", Ms(i, 0)}}}});
       }},
      {"events of mails",
       {"json:/sg_event_id"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         return Value({{"email", absl::StrCat("u", Pick(i, 39, 120), "@example.com")},
                       {"event", i % 3 ? "open" : "delivered"},
                       {"timestamp", kBegin + static_cast<int64_t>(i)},
                       {"sg_event_id", Hex(i, 40) + "LTAtMQ"},
                       {"sg_message_id", Hex(i / 3, 41) + ".recvd"}});
       }},
      {"states of messages",
       {"json:/MessageSid+json:/MessageStatus", "json:/MessageStatus+json:/MessageSid"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         const char* const status[] = {"queued", "sent", "delivered"};
         const uint64_t message = i / 60 * 20 + i % 20;
         return Value({{"MessageSid", "SM" + Hex(message, 42) + Hex(message, 43)},
                       {"AccountSid", "AC0123"},
                       {"MessageStatus", status[i / 20 % 3]},
                       {"To", absl::StrCat("+49", Pick(message, 44, 60))},
                       {"ApiVersion", "2010-04-01"}});
       }},
      {"impressions of auctions",
       {"json:/auction_id+json:/imp_id", "json:/imp_id+json:/auction_id"},
       IdQuality::kDoubtful,
       [](uint64_t i, int attempt) {
         return Keyed(absl::StrCat("pub-", Pick(i, 45, 12)),
                      {{"auction_id", Uuid(i / 3, 46)},
                       {"imp_id", i % 3 + 1},
                       {"price", static_cast<double>(Pick(i, 47, 900)) / 100},
                       {"received", Ms(i, attempt)}});
       }},
      {"tenants that count their events",
       {"json:/tenant+json:/id", "json:/id+json:/tenant"},
       IdQuality::kGood,
       [](uint64_t i, int) {
         return Value({{"tenant", absl::StrCat("t", i % 6)},
                       {"id", i / 6 + 1},
                       {"kind", "login"},
                       {"user", Pick(i, 48, 90)},
                       {"at", Iso(i, 0)}});
       }},
      {"keys that are the ids",
       {"key"},
       IdQuality::kDoubtful,
       [](uint64_t i, int attempt) {
         return Keyed(Uuid(i, 49),
                      {{"points", Pick(i, 50, 10)}, {"user", Pick(i, 51, 30)}, {"sent", Ms(i, attempt)}});
       }},
      {"envelopes of a company",
       {"json:/meta/eventId"},
       IdQuality::kDoubtful,
       [](uint64_t i, int attempt) {
         Sample sample =
             Keyed(absl::StrCat("c", Pick(i, 52, 70)),
                   {{"meta",
                     {{"eventId", Uuid(i, 53)},
                      {"correlationId", Uuid(i / 6, 54)},
                      {"version", 2},
                      {"attempt", attempt}}},
                    {"data", {{"customer", absl::StrCat("c", Pick(i, 52, 70))}, {"plan", "gold"}}}});
         sample.headers = {{"traceparent", absl::StrCat("00-", Hex(i / 6, 55), Hex(i / 6, 56), "-",
                                                        Hex(attempt == 0 ? i : i + 1'000'000, 57), "-01")}};
         return sample;
       }},
  };
}

void PrintTo(const Stream& stream, std::ostream* out) { *out << stream.name; }

class CompanyStreamsTest : public testing::TestWithParam<Stream> {};

INSTANTIATE_TEST_SUITE_P(Survey, CompanyStreamsTest, testing::ValuesIn(Streams()), [](const auto& each) {
  std::string name = each.param.name;
  absl::c_replace(name, ' ', '_');
  return name;
});

// Every fifth event is sent again, most within the next records, and some of them much later.
TEST_P(CompanyStreamsTest, TheIdThatIsProposedFindsWhatWasSentAgain) {
  const Stream& stream = GetParam();
  constexpr uint64_t kEvents = 1200;
  std::multimap<uint64_t, std::pair<uint64_t, int>> sent;  // by its turn: the event, and which attempt it is
  int64_t copies = 0;
  for (uint64_t i = 0; i < kEvents; ++i) {
    sent.emplace(i, std::pair(i, 0));
    if (i % 5 != 2) continue;
    sent.emplace(i + (i % 4 == 0 ? 300 : 3), std::pair(i, 1));
    ++copies;
  }
  const auto surveyed = [&](std::optional<IdSpec> id) {
    Survey survey({.id = std::move(id), .memory_bytes = 64 << 20});
    int64_t offset = 0;
    for (const auto& [turn, what] : sent) {
      test::AddTo(survey, stream.event(what.first, what.second), offset++, Ms(turn, 0));
    }
    return survey.Report();
  };
  const SurveyReport report = surveyed(std::nullopt);
  std::string proposed;
  for (size_t i = 0; i < report.candidates.size() && i < 5; ++i) {
    absl::StrAppend(&proposed, "\n  ", report.candidates[i].id.ToString(), ": ", report.candidates[i].remark);
  }
  ASSERT_FALSE(report.candidates.empty());
  const IdCandidate& best = report.candidates[0];
  EXPECT_TRUE(absl::c_linear_search(stream.ids, best.id.ToString())) << proposed;
  EXPECT_EQ(best.quality, stream.quality) << proposed;
  EXPECT_EQ(best.figures.copies.value, copies) << proposed;
  for (const IdCandidate& candidate : report.candidates) {
    if (candidate.quality != IdQuality::kGood) continue;
    EXPECT_EQ(candidate.figures.copies.value, copies) << candidate.id.ToString() << ": " << candidate.remark;
  }
  // Who takes the proposal is told the same of it.
  const IdCandidate taken = surveyed(best.id).candidates.at(0);
  EXPECT_EQ(taken.quality, best.quality) << taken.remark;
  EXPECT_EQ(taken.figures.changed.value, best.figures.changed.value) << taken.remark;
}

// What a thing is seen doing many times are events, though they differ in their times alone.
TEST(SurveyStreamsTest, HeartbeatsAreNoCopies) {
  Survey survey({.id = std::nullopt, .memory_bytes = 64 << 20});
  for (uint64_t i = 0; i < 3000; ++i) {
    test::AddTo(survey, Value({{"device_id", Uuid(i % 40, 1)}, {"lastSeen", Ms(i, 0)}, {"state", "up"}}),
                static_cast<int64_t>(i), Ms(i, 0));
  }
  const SurveyReport report = survey.Report();
  EXPECT_EQ(report.candidates.at(0).id.ToString(), "value");
  for (const IdCandidate& candidate : report.candidates) {
    EXPECT_NE(candidate.quality, IdQuality::kGood) << candidate.id.ToString();
    if (candidate.id.ToString() == "json:/device_id") {
      EXPECT_EQ(candidate.quality, IdQuality::kPoor) << candidate.remark;
    }
  }
}

}  // namespace
}  // namespace lethe
