// Partitions whose next record waits for its schema, on the loop itself with a cluster in memory.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/pipeline/worker.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/fake_schemas.h"
#include "tests/support/life.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

// An order with an id.
Schema Orders() {
  return {Schema::Type::kAvro,
          R"({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})",
          {}};
}

// "7abc" stands for an order of schema 7 with the id "abc", in a frame.
std::string Framed(absl::string_view text) {
  const std::string id(text.substr(1));
  std::string value(4, '\0');
  value += static_cast<char>(text[0] - '0');
  value += static_cast<char>(2 * id.size());
  return value + id;
}
std::string Shown(absl::string_view value) {
  return absl::StrCat(static_cast<int>(value[4]), value.substr(6));
}

using test::FakeCluster;
using test::Life;

class SchemaWaitsTest : public testing::Test {
 protected:
  SchemaWaitsTest() {
    options_.input = "orders";
    options_.output = "unique";
    options_.process.group = "lethe";
    options_.process.commit_interval = absl::ZeroDuration();
    options_.record.id = *IdSpec::Parse("avro:/id");
    options_.record.schemas = &schemas_;
    cluster_.output_partitions = 2;
    schemas_.Put(1, Orders());
  }

  void Send(const std::vector<std::string>& values, int32_t partition = 0) {
    for (const std::string& value : values)
      cluster_.Append(partition, {value, Framed(value), 1'700'000'000'000});
  }
  std::string Out() const {
    std::string values;
    for (const FakeCluster::Written& each : cluster_.output) {
      absl::StrAppend(&values, values.empty() ? "" : " ", Shown(*each.record.value));
    }
    return values;
  }
  // Runs until nothing is left to read; while partitions wait, `while_waiting` is called, and must end that.
  static void Run(Life& life, std::function<void()> while_waiting) {
    life.source.on_idle = [&life, while_waiting = std::move(while_waiting)] {
      if (life.worker.transactions().is_open()) return;
      for (const auto& [id, task] : life.tasks) {
        if (task->schema_wait().is_on()) return while_waiting();
      }
      if (life.IsAtEnd()) life.stop.Request();
    };
    ASSERT_OK(life.Run()) << life.state.fatal;
  }

  FakeCluster cluster_;
  DaemonOptions options_;
  test::FakeSchemas schemas_;
};

TEST_F(SchemaWaitsTest, APartitionWaitsAndOthersGoOn) {
  Send({"1a", "1a", "2b", "1c", "2b"}, 0);
  Send({"1x", "1y"}, 1);
  Life life(cluster_, options_);
  const Task& waiting = life.Assign(0);
  const Task& other = life.Assign(1);
  int waits = 0;
  Run(life, [&] {
    if (++waits == 1) {
      EXPECT_EQ(waiting.committed(), 2) << "what is before the record is committed";
      EXPECT_EQ(waiting.counts().unique, 1);
      EXPECT_EQ(other.committed(), 2);
      EXPECT_TRUE(life.source.paused.contains(0));
      EXPECT_FALSE(life.source.paused.contains(1));
      Send({"1z"}, 1);
    } else if (other.committed() == 3) {
      schemas_.Put(2, Orders());
    }
  });
  EXPECT_EQ(waiting.committed(), 5);
  EXPECT_EQ(waiting.counts().unique, 3);
  EXPECT_EQ(waiting.counts().duplicate, 2);
  EXPECT_EQ(waiting.counts().malformed, 0);
  EXPECT_EQ(Out(), "1a 1x 1y 1z 2b 1c");
  EXPECT_TRUE(life.source.paused.empty());
  EXPECT_EQ(waiting.phase(), Phase::kActive);
}

TEST_F(SchemaWaitsTest, SchemasOfLaterRecordsAreExpectedMeanwhile) {
  Send({"1a", "2b", "3c", "1d", "4e"});
  Life life(cluster_, options_);
  life.Assign(0);
  Run(life, [&] {
    EXPECT_EQ(schemas_.expected, (std::set<SchemaKey>{1, 2, 3, 4}));
    for (const int schema : {2, 3, 4}) schemas_.Put(schema, Orders());
  });
  EXPECT_EQ(Out(), "1a 2b 3c 1d 4e");
}

TEST_F(SchemaWaitsTest, IsAskedForOnlyWhenThereAreAnswers) {
  Send({"2a"});
  Life life(cluster_, options_);
  life.Assign(0);
  int looks = 0;
  int64_t finds = 0;
  Run(life, [&] {
    if (++looks == 1) finds = schemas_.finds;
    if (looks == 100) {
      EXPECT_EQ(schemas_.finds, finds);
      schemas_.Put(3, Orders());  // another one
    }
    if (looks == 110) schemas_.Put(2, Orders());
  });
  EXPECT_EQ(Out(), "2a");
}

TEST_F(SchemaWaitsTest, AnUnknownSchemaIsMalformedByPolicy) {
  options_.policies.on_malformed = Action::kDivert;
  options_.divert = "diverted";
  Send({"1a", "2b", "1c"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  Run(life, [&] { schemas_.PutUnknown(2); });
  EXPECT_EQ(task.counts().malformed, 1);
  EXPECT_EQ(task.counts().unique, 2);
  ASSERT_EQ(cluster_.output.size(), 3u);
  const FakeCluster::Written& diverted = cluster_.output[1];
  EXPECT_EQ(diverted.target.kind, Target::Kind::kDivert);
  EXPECT_EQ(diverted.record.headers[1].second, "the value is not Avro: schema id 2: none");
}

TEST_F(SchemaWaitsTest, NothingIsCountedTwiceAfterAnAbort) {
  Send({"1a", "1b", "2c", "1d"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  life.sink.fail_commits = 2;  // of the transaction in which it began to wait
  Run(life, [&] {
    EXPECT_EQ(task.committed(), 2);
    schemas_.Put(2, Orders());
  });
  EXPECT_EQ(Out(), "1a 1b 2c 1d");
  EXPECT_EQ(task.counts().unique, 4);
  EXPECT_EQ(task.counts().duplicate, 0);
}

TEST_F(SchemaWaitsTest, TheEndOfTheLogIsNotCommittedBeforeTheRecord) {
  Send({"2a"});
  cluster_.AppendOther(0, test::FakeEntry::Kind::kControl);
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  int waits = 0;
  Run(life, [&] {
    EXPECT_EQ(task.committed(), 0);
    if (++waits == 20) schemas_.Put(2, Orders());
  });
  EXPECT_EQ(Out(), "2a");
  EXPECT_EQ(cluster_.committed[0].offset, 2);
}

TEST_F(SchemaWaitsTest, AnUnreadableBatchBehindItIsLeftForLater) {
  options_.policies.on_unreadable = Action::kDrop;
  Send({"2a"});
  cluster_.AppendOther(0, test::FakeEntry::Kind::kUnreadable);
  Send({"1b"});
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  Run(life, [&] { schemas_.Put(2, Orders()); });
  EXPECT_EQ(Out(), "2a 1b");
  EXPECT_EQ(task.counts().unreadable, 1);
}

TEST_F(SchemaWaitsTest, ARevokedPartitionIsReadByTheNextOwner) {
  Send({"1a", "2b"});
  {
    Life life(cluster_, options_);
    life.Assign(0);
    Run(life, [&] {
      life.worker.held().Release(*life.tasks.at({0, 0}));
      EXPECT_TRUE(life.source.paused.empty());
      EXPECT_FALSE(life.tasks.at({0, 0})->schema_wait().is_on());
      life.Revoke({0}, /*lost=*/false);
    });
  }
  schemas_.Put(2, Orders());
  Life life(cluster_, options_);
  life.Assign(0);
  Run(life, [] {});
  EXPECT_EQ(Out(), "1a 2b");
}

TEST_F(SchemaWaitsTest, AReplayWaitsToo) {
  schemas_.Put(2, Orders());
  Send({"1a", "2b", "1c", "2d"});
  {
    Life life(cluster_, options_);
    life.Assign(0);
    Run(life, [] {});
  }
  Send({"1a", "2b", "1e", "2d"});
  test::FakeSchemas restarted;  // which knows nothing yet
  restarted.Put(1, Orders());
  options_.record.schemas = &restarted;
  Life life(cluster_, options_);
  const Task& task = life.Assign(0);
  ASSERT_EQ(task.phase(), Phase::kRestoring);
  int waits = 0;
  Run(life, [&] {
    EXPECT_EQ(task.phase(), Phase::kRestoring);
    EXPECT_EQ(task.next(), 1);
    if (++waits == 10) restarted.Put(2, Orders());
  });
  EXPECT_EQ(Out(), "1a 2b 1c 2d 1e");
  EXPECT_EQ(task.counts().suppressed, 4);
  EXPECT_EQ(task.counts().duplicate, 3);
  EXPECT_EQ(task.phase(), Phase::kActive);
}

}  // namespace
}  // namespace lethe
