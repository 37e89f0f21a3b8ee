// What librdkafka says of itself: the figures that we take from it, and broken texts.
#include "connectors/kafka/client/client_statistics.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>

namespace lethe::kafka {
namespace {

constexpr char kConsumer[] = R"({
  "name": "lethe#consumer-1", "type": "consumer", "msg_cnt": 0, "msg_size": 0,
  "rx_bytes": 5000, "tx_bytes": 300,
  "brokers": {
    "a:9092/0": {"req_timeouts": 2, "rtt": {"avg": 1500, "p99": 9000}},
    "b:9092/1": {"req_timeouts": 1, "rtt": {"avg": 4000}},
    "GroupCoordinator": {"req_timeouts": 0}},
  "topics": {"orders": {"partitions": {
    "0": {"fetchq_cnt": 10, "fetchq_size": 1000}, "1": {"fetchq_cnt": 12, "fetchq_size": 1200},
    "-1": {"fetchq_cnt": 0, "fetchq_size": 0}}}}})";

// Partitions 0 and 1 share one queue, which grew between the two looks at it.
TEST(ClientStatistics, AreTheSumsAndTheWorst) {
  const ClientReport report = ParseClientStatistics(kConsumer);
  EXPECT_TRUE(report.known);
  EXPECT_EQ(report.round_trip, absl::Milliseconds(4));
  EXPECT_EQ(report.queued_messages, 12);
  EXPECT_EQ(report.queued_bytes, 1200);
  EXPECT_EQ(report.received_bytes, 5000);
  EXPECT_EQ(report.sent_bytes, 300);
  EXPECT_EQ(report.request_timeouts, 3);
}

TEST(ClientStatistics, AProducersQueueIsItsOwn) {
  const ClientReport report = ParseClientStatistics(R"({"msg_cnt": 7, "msg_size": 70, "topics": {}})");
  EXPECT_EQ(report.queued_messages, 7);
  EXPECT_EQ(report.queued_bytes, 70);
}

TEST(ClientStatistics, AnythingElseChangesNothing) {
  for (const char* text : {"", "{", "[]", "1", "null"}) {
    EXPECT_FALSE(ParseClientStatistics(text).known) << text;
  }
  EXPECT_TRUE(ParseClientStatistics(R"({"brokers": 1, "topics": {"a": []}, "rx_bytes": "x"})").known);
}

TEST(ClientStatistics, KeepTheLatest) {
  ClientStatistics statistics;
  EXPECT_FALSE(statistics.Report().known);
  EXPECT_EQ(statistics.Take(strdup(R"({"rx_bytes": 1})")), 1);
  EXPECT_EQ(statistics.Take(strdup(R"({"rx_bytes": 2})")), 1);
  EXPECT_EQ(statistics.Report().received_bytes, 2);
  EXPECT_EQ(statistics.Report().received_bytes, 2);
}

TEST(ClientStatistics, ThrottleTimesAddUp) {
  ClientStatistics statistics;
  statistics.AddThrottled(200);
  statistics.AddThrottled(0);  // a broker that throttles no more
  statistics.AddThrottled(50);
  EXPECT_EQ(statistics.Report().throttled, absl::Milliseconds(250));
}

}  // namespace
}  // namespace lethe::kafka
