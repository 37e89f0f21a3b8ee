// The fakes behave as a broker does: the same suite runs against one in
// tests/integration/source_and_sink_test.cc.
#include "tests/support/fake_cluster.h"

#include "tests/support/rebalances_suite.h"
#include "tests/support/source_and_sink_suite.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

DaemonOptions Options() {
  DaemonOptions options;
  options.input = "input";
  return options;
}

// Of which nothing but the name matters.
struct OneFlow : Flows {
  OneFlow() { Add(std::make_unique<Flow>(Options(), nullptr)); }
};

class InMemory {
 public:
  InMemory() { Restart(); }

  void Append(std::optional<std::string> key, std::optional<std::string> value, int64_t timestamp_ms,
              Headers headers) {
    cluster_.Append(0, {std::move(key), std::move(value), timestamp_ms, std::move(headers)});
  }
  void AppendAborted(const std::string& /*value*/) {
    for (int i = 0; i < 2; ++i) cluster_.AppendOther(0, FakeEntry::Kind::kControl);
  }
  std::vector<FakeRecord> Output() const {
    std::vector<FakeRecord> records;
    for (const FakeCluster::Written& written : cluster_.output) records.push_back(written.record);
    return records;
  }
  size_t OutputNow() const { return cluster_.output.size(); }
  Source& source() { return *source_; }
  Sink& sink() { return *sink_; }
  std::vector<CommittedOffset> Committed() {
    return FakeAnswers(cluster_, flows_, 1).Committed("input", 1).value();
  }
  Task& task() { return task_; }
  void Restart() {
    source_ = std::make_unique<FakeSource>(cluster_);
    sink_ = std::make_unique<FakeSink>(cluster_);
    task_ = Task();
    task_.SkipTo(cluster_.committed.contains(0) ? cluster_.committed[0].offset : 0);
    source_->Assign({&task_});
    EXPECT_OK(sink_->Open({}));
  }

 private:
  FakeCluster cluster_;
  const OneFlow flows_;
  std::unique_ptr<FakeSource> source_;
  std::unique_ptr<FakeSink> sink_;
  Task task_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(InMemory, SourceAndSink, InMemory);

template <bool is_cooperative>
class GroupInMemory {
 public:
  static constexpr bool kIsCooperative = is_cooperative;

  void Append(int32_t partition, const std::string& value) { cluster_.Append(partition, {"k", value, 1000}); }
  Source& source(size_t i) { return sources_[i]; }
  Sink& sink(size_t i) { return sinks_[i]; }
  std::vector<CommittedOffset> Committed(size_t /*i*/) {
    return FakeAnswers(cluster_, flows_, 2).Committed("input", 2).value();
  }
  void Expel() { group_.Expel(sources_[0]); }

 private:
  FakeCluster cluster_;
  const OneFlow flows_;
  FakeGroup group_{2, is_cooperative};
  FakeSource sources_[2] = {FakeSource(cluster_, &group_), FakeSource(cluster_, &group_)};
  FakeSink sinks_[2] = {FakeSink(cluster_, &sources_[0]), FakeSink(cluster_, &sources_[1])};
};

using BothProtocols = testing::Types<GroupInMemory<false>, GroupInMemory<true>>;
INSTANTIATE_TYPED_TEST_SUITE_P(InMemory, Rebalances, BothProtocols);

}  // namespace
}  // namespace lethe::test
