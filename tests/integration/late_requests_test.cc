// Rule 27: requests of a producer that come late, after the client has sent them again and was answered.
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/integration/counting.h"
#include "tests/integration/rules.h"
#include "tests/support/flow.h"
#include "tests/support/late_wire.h"
#include "tests/support/pipeline.h"
#include "tests/support/retrying_clients.h"
#include "tests/support/seed.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using Held = LateWire::Held;
using When = LateWire::When;

// The wire to the shared broker.
LateWire& Wire() {
  static const std::unique_ptr<LateWire> wire = [] {
    auto started = LateWire::Start().value();
    KafkaBrokerOptions options;
    options.proxied = {{"LATE", started->port()}};
    SetSharedBrokerOptions(std::move(options));
    started->Forward(SharedBroker().port("LATE"));
    return started;
  }();
  return *wire;
}

enum class Kill { kNever, kWhenItIsDelivered, kWhenTheNextEnds };
enum class Counts { kNone, kTotals };
enum class Order { kOfTheInput, kOfEachId };

struct LateHistory {
  const char* name;
  Held held;
  When when;
  Kill kill = Kill::kNever;
  Args args = {};
  Counts counts = Counts::kNone;
  Order order = Order::kOfTheInput;
};

std::map<std::string, int> CountById(const std::vector<Record>& records) {
  std::map<std::string, int> counts;
  for (const Record& record : records) ++counts[JsonId(record)];
  return counts;
}

std::map<std::string, int> EachOnce(const std::vector<Record>& records) {
  std::map<std::string, int> counts = CountById(records);
  for (auto& [id, count] : counts) count = 1;
  return counts;
}

class LateRequestsTest : public testing::TestWithParam<LateHistory> {
 protected:
  // Until the history has come to its end, with a transaction after it.
  void Play(const LateHistory& history, Flow& flow, const Args& args) {
    RetryingClients clients(TestSeed());
    LateWire& wire = Wire();
    const auto daemon = flow.Start(args);
    const auto committed = [&] { return daemon->Metric("lethe_transactions_committed_total"); };
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return committed() > 1; })) << daemon->Log();
    const auto kill_at = [&, pid = daemon->process().pid()](Kill moment) {
      return [=] {
        if (history.kill == moment) kill(pid, SIGKILL);
      };
    };
    wire.Hold(
        {history.held, history.when, kill_at(Kill::kWhenItIsDelivered), kill_at(Kill::kWhenTheNextEnds)});
    if (history.held == Held::kAbort) {
      ASSERT_NO_FATAL_FAILURE(StopUntilItAborts(flow, clients, *daemon));
    }
    if (history.kill != Kill::kNever) {
      ASSERT_TRUE(SendUntil(flow, clients, [&] { return !daemon->process().Running(); })) << daemon->Log();
      return;
    }
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return wire.is_over(); })) << daemon->Log();
    const double before = committed();
    ASSERT_TRUE(SendUntil(flow, clients, [&] { return committed() > before + 1; })) << daemon->Log();
    // Or the abort failed, for which the producer was recreated, too.
    EXPECT_TRUE(daemon->Await([&] {
      return daemon->Metric("lethe_producer_renewals_total") + daemon->Metric("lethe_fences_total") >= 1;
    })) << daemon->Log();
    EXPECT_TRUE(daemon->Stop());
  }

  // It is away for longer than its session, and aborts, with all its records answered. Again, if it was
  // stopped between two transactions.
  static void StopUntilItAborts(Flow& flow, RetryingClients& clients, Daemon& daemon) {
    for (int attempt = 0; attempt < 5 && !Wire().is_held(); ++attempt) {
      ASSERT_TRUE(SendUntil(flow, clients, [&] { return daemon.Get("/readyz").status == 200; }));
      ASSERT_OK(daemon.process().Signal(SIGSTOP));
      const absl::Time until = SteadyNow() + absl::Seconds(3);
      ASSERT_TRUE(SendUntil(flow, clients, [&] { return SteadyNow() > until; }));
      ASSERT_OK(daemon.process().Signal(SIGCONT));
      const double committed = daemon.Metric("lethe_transactions_committed_total");
      ASSERT_TRUE(SendUntil(flow, clients, [&] {
        return Wire().is_held() || daemon.Metric("lethe_transactions_committed_total") > committed;
      })) << daemon.Log();
    }
    ASSERT_TRUE(Wire().is_held()) << daemon.Log();
  }
};

TEST_P(LateRequestsTest, Rule27DoNothing) {
  const LateHistory& history = GetParam();
  LateWire& wire = Wire();
  Flow flow(Options(2));
  Args args = {absl::StrCat("--brokers=127.0.0.1:", wire.port()), "--commit-interval=300ms"};
  args = args + history.args;
  if (history.counts == Counts::kTotals) args = args + CountOrders(UniqueName("totals"));
  ASSERT_NO_FATAL_FAILURE(Play(history, flow, args));
  EXPECT_TRUE(wire.is_delivered());
  EXPECT_NE(wire.late_answer(), 0) << "the broker has applied it";
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  if (history.order == Order::kOfTheInput) {
    EXPECT_TRUE(flow.ExactlyOnce());
  } else {
    EXPECT_EQ(CountById(flow.Output()), EachOnce(flow.Input()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , LateRequestsTest,
    testing::Values(LateHistory{"ACommitInTheNextTransaction", Held::kCommit, When::kInTheMiddle},
                    LateHistory{"ACommitBeforeTheNextOffsets", Held::kCommit, When::kBeforeOffsets,
                                Kill::kWhenItIsDelivered},
                    LateHistory{"OffsetsAfterTheNext", Held::kOffsets, When::kAfterOffsets,
                                Kill::kWhenTheNextEnds},
                    LateHistory{"OffsetsOfAMemberWithoutAName",
                                Held::kOffsets,
                                When::kAfterOffsets,
                                Kill::kWhenTheNextEnds,
                                {"--static-membership=false"}},
                    LateHistory{"AnAbortInTheNextTransaction", Held::kAbort, When::kBeforeOffsets},
                    LateHistory{"AnAbortWithScopeTopic",
                                Held::kAbort,
                                When::kBeforeOffsets,
                                Kill::kNever,
                                {"--scope=topic"},
                                Counts::kNone,
                                Order::kOfEachId},
                    LateHistory{"ACommitWithTotals",
                                Held::kCommit,
                                When::kInTheMiddle,
                                Kill::kWhenItIsDelivered,
                                {},
                                Counts::kTotals}),
    [](const auto& each) { return std::string(each.param.name); });

// The rest of what a transaction asks for. Records that come late in their own epoch are copies for the
// broker, by their sequence numbers.
TEST(OtherLateRequestsTest, Rule27OtherRequestsChangeNothing) {
  RetryingClients clients(TestSeed());
  LateWire& wire = Wire();
  Flow flow(Options(2));
  const Args args = {absl::StrCat("--brokers=127.0.0.1:", wire.port()), "--commit-interval=300ms"};
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(SendUntil(flow, clients, [&] {
    return daemon->Metric("lethe_transactions_committed_total") > 1;
  })) << daemon->Log();
  double renewals = 0;
  for (const Held held : {Held::kProduce, Held::kAddPartitions, Held::kAddOffsets, Held::kOffsets}) {
    for (const When when : {When::kAtOnce, When::kInTheMiddle}) {
      SCOPED_TRACE(absl::StrCat("request ", static_cast<int>(held), ", when ", static_cast<int>(when)));
      wire.Hold({held, when});
      ASSERT_TRUE(SendUntil(flow, clients, [&] { return wire.is_over(); })) << daemon->Log();
      if (when == When::kInTheMiddle) {
        EXPECT_NE(wire.late_answer(), 0) << "the broker has applied it";
      }
      EXPECT_TRUE(SendUntil(flow, clients, [&] {
        return daemon->Metric("lethe_producer_renewals_total") > renewals;
      })) << daemon->Log();
      renewals = daemon->Metric("lethe_producer_renewals_total");
    }
  }
  EXPECT_EQ(daemon->Metric("lethe_transactions_aborted_total"), 0) << daemon->Log();
  EXPECT_TRUE(daemon->Stop());
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_TRUE(flow.ExactlyOnce());
}

// It fences its own producer, as another process of the name would.
TEST(OtherLateRequestsTest, Rule27AnInitProducerIdCostsATransaction) {
  RetryingClients clients(TestSeed());
  LateWire& wire = Wire();
  Flow flow(Options(2));
  const Args args = {absl::StrCat("--brokers=127.0.0.1:", wire.port()), "--commit-interval=300ms"};
  wire.Hold({Held::kInit, When::kInTheMiddle});
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(SendUntil(flow, clients, [&] { return wire.is_over(); })) << daemon->Log();
  EXPECT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_fences_total") >= 1; }));
  EXPECT_TRUE(daemon->Stop());
  ASSERT_TRUE(EndsWell(flow.RunToEnd(args)));
  EXPECT_TRUE(flow.ExactlyOnce());
}

}  // namespace
}  // namespace lethe::test
