// Instances of one group on a cluster in memory, step by step in one thread: members join, leave, stand still
// and are killed in between, and each event is out once.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/life.h"
#include "tests/support/seed.h"

namespace lethe {
namespace {

using test::FakeCluster;
using test::FakeGroup;
using test::Life;

constexpr int32_t kPartitions = 4;

class GroupRulesTest : public testing::TestWithParam<Assignment> {
 protected:
  GroupRulesTest() {
    options_.input = "orders";
    options_.output = "unique";
    options_.group = "lethe";
    options_.assignment = GetParam();
    options_.commit_interval = absl::ZeroDuration();
    options_.record.id = *IdSpec::Parse("value");
    options_.stage.target_fpp = 1e-9;
    options_.stage.audit_share = 0;
    cluster_.output_partitions = kPartitions;
    for (int32_t id = 0; id < kPartitions; ++id) cluster_.logs[id];
  }

  void Send(int records) {
    for (int i = 0; i < records; ++i) {
      // Two of three are copies of one of the last hundred.
      const uint64_t id =
          random_() % 3 == 0 ? next_id_++ : next_id_ - random_() % std::min<uint64_t>(next_id_, 100);
      const auto partition = static_cast<int32_t>(id % kPartitions);
      cluster_.Append(partition, {std::nullopt, absl::StrCat(id), 1'700'000'000'000});
      ++sent_[id];
    }
  }
  std::unique_ptr<Life> Join() {
    auto life = std::make_unique<Life>(cluster_, options_, kPartitions, &group_);
    life->source.on_idle = nullptr;
    EXPECT_TRUE(life->worker.Open().ok());
    return life;
  }
  // Its last transaction is lost, and the group hears nothing of it until its session ends.
  void Kill(std::unique_ptr<Life>& life) {
    group_.Leave(life->source);
    life.reset();
  }
  static void Step(Life& life) {
    life.worker.Step();
    ASSERT_TRUE(life.state.fatal.ok()) << life.state.fatal;
  }
  bool IsDone() const {
    for (const auto& [id, log] : cluster_.logs) {
      const auto committed = cluster_.committed.find(id);
      if (committed == cluster_.committed.end() || committed->second.offset != log.end()) return false;
    }
    return true;
  }
  void ExpectEachOnce() const {
    std::map<std::string, int> out;
    for (const FakeCluster::Written& each : cluster_.output) ++out[*each.record.value];
    EXPECT_EQ(out.size(), sent_.size());
    for (const auto& [id, times] : out) EXPECT_EQ(times, 1) << "id " << id;
  }

  const uint64_t seed_ = TestSeed();
  std::mt19937_64 random_{seed_};
  DaemonOptions options_;
  FakeCluster cluster_;
  FakeGroup group_{kPartitions, GetParam() == Assignment::kCooperative};
  uint64_t next_id_ = 1;
  std::map<uint64_t, int> sent_;
};

TEST_P(GroupRulesTest, Rules10To13EachEventOnceWhateverBecomesOfTheMembers) {
  std::vector<std::unique_ptr<Life>> members;
  for (int step = 0; step < 3'000; ++step) {
    if (members.empty() || (members.size() < 3 && random_() % 100 == 0)) members.push_back(Join());
    if (random_() % 4 == 0) Send(5);
    const size_t i = random_() % members.size();
    Life& life = *members[i];
    switch (random_() % 200) {
      case 0:
        Kill(members[i]);
        members.erase(members.begin() + static_cast<int64_t>(i));
        continue;
      case 1:
        life.worker.Close();
        members.erase(members.begin() + static_cast<int64_t>(i));
        continue;
      case 2:
        if (life.source.told.empty()) group_.Expel(life.source);
        break;
      case 3:
        life.sink.fail_commits = 1;
        break;
      case 4:
        life.sink.lose_answers = 1;
        break;
      default:
        break;
    }
    Step(life);
  }
  if (members.empty()) members.push_back(Join());
  for (int round = 0; round < 10'000 && !IsDone(); ++round) {
    for (const auto& life : members) Step(*life);
  }
  EXPECT_TRUE(IsDone());
  ExpectEachOnce();
}

TEST_P(GroupRulesTest, Rule11WhatWasJudgedIsCommittedBeforeItsPartitionGoes) {
  options_.commit_interval = absl::Hours(1);
  Send(100);
  std::vector<std::unique_ptr<Life>> members;
  members.push_back(Join());
  while (!members[0]->worker.transactions().is_open()) Step(*members[0]);
  EXPECT_TRUE(cluster_.output.empty());
  members.push_back(Join());
  while (members[1]->tasks.empty()) {
    for (const auto& life : members) Step(*life);
  }
  EXPECT_FALSE(cluster_.output.empty());
  for (const auto& life : members) life->worker.Close();
  EXPECT_TRUE(IsDone());
  ExpectEachOnce();
}

INSTANTIATE_TEST_SUITE_P(Protocols, GroupRulesTest,
                         testing::Values(Assignment::kEager, Assignment::kCooperative));

}  // namespace
}  // namespace lethe
