#include "tests/simulation/routed_judge.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lethe::simulation {
namespace {

using test::Record;

constexpr size_t kMostProblems = 5;

int64_t SendingOf(const Record& record) {
  test::FaultyEvent event;
  return record.value && test::FaultyEvent::Parse(*record.value, &event) ? event.send : -1;
}

class RoutedJudge {
 public:
  explicit RoutedJudge(RoutedEvidence evidence) : evidence_(std::move(evidence)) {}

  test::Judgement Judge() {
    JudgeRouting();
    JudgeDisorder();
    MapOutput();
    test::Judgement judgement = test::Judge(evidence_.judged);
    judgement.problems.insert(judgement.problems.begin(), problems_.begin(), problems_.end());
    return judgement;
  }

 private:
  using Place = std::tuple<std::string, int32_t, int64_t>;  // the input, its partition, its offset

  void Problem(std::string text) {
    if (problems_.size() < kMostProblems) problems_.push_back(std::move(text));
  }

  // The place in the last headers, which are removed.
  std::optional<Place> TakePlace(Record& record) const {
    const bool is_merged = evidence_.inputs.size() > 1;
    const size_t count = is_merged ? 3 : 2;
    auto& headers = record.headers;
    if (headers.size() < count) return std::nullopt;
    Place place = {evidence_.inputs.begin()->first, 0, 0};
    const auto of = headers.end() - static_cast<int64_t>(count);
    const auto& partition = headers[headers.size() - 2];
    const auto& offset = headers.back();
    if (partition.first != "lethe.routed.partition" || offset.first != "lethe.routed.offset" ||
        !absl::SimpleAtoi(partition.second.value_or(""), &std::get<1>(place)) ||
        !absl::SimpleAtoi(offset.second.value_or(""), &std::get<2>(place))) {
      return std::nullopt;
    }
    if (is_merged) {
      if (of->first != "lethe.routed.topic") return std::nullopt;
      std::get<0>(place) = of->second.value_or("");
    }
    headers.erase(of, headers.end());
    return place;
  }

  void JudgeRouting() {
    std::map<Place, const Record*> sent;
    for (const auto& [topic, records] : evidence_.inputs) {
      for (const Record& record : records) sent[{topic, record.partition, record.offset}] = &record;
    }
    const size_t all = sent.size();
    std::map<std::string, int32_t> partition_of_id;
    std::map<std::tuple<std::string, int32_t, int32_t>, int64_t> last;  // by source and target
    std::set<Place> routed;
    for (Record& record : evidence_.routed) {
      const std::string here =
          absl::StrCat("the record at ", record.partition, "/", record.offset, " of the repartition topic");
      const std::optional<Place> place = TakePlace(record);
      const auto original = place ? sent.find(*place) : sent.end();
      if (original == sent.end()) {
        Problem(absl::StrCat(here, " is FOREIGN"));
        continue;
      }
      const Record& input = *original->second;
      if (!routed.insert(*place).second) Problem(absl::StrCat(here, " is there TWICE: ", *input.value));
      if (record.key != input.key || record.value != input.value || record.headers != input.headers ||
          record.timestamp_ms != input.timestamp_ms) {
        Problem(absl::StrCat(here, " is CHANGED on its way: ", *input.value));
      }
      test::FaultyEvent event;
      test::FaultyEvent::Parse(*input.value, &event);
      const int32_t of_id = partition_of_id.try_emplace(event.id, record.partition).first->second;
      if (!event.id.empty() && of_id != record.partition) {
        Problem(absl::StrCat(here, " is in ANOTHER PARTITION than its copy: ", *input.value));
      }
      int64_t& before =
          last.try_emplace({std::get<0>(*place), std::get<1>(*place), record.partition}, -1).first->second;
      if (std::get<2>(*place) < before) Problem(absl::StrCat(here, " is REORDERED: ", *input.value));
      before = std::get<2>(*place);
      places_[event.send] = {record.partition, record.offset, input.partition};
    }
    if (routed.size() >= all) return;
    for (const auto& [place, record] : sent) {
      if (!routed.contains(place)) Problem(absl::StrCat("a record is NOT ROUTED: ", *record->value));
    }
  }

  void JudgeDisorder() {
    if (evidence_.lead == absl::InfiniteDuration()) return;
    std::map<int32_t, int64_t> latest;
    for (const Record& record : evidence_.routed) {
      const int64_t time_ms = evidence_.time_ms(SendingOf(record));
      if (time_ms != record.timestamp_ms) continue;  // it is dated wrongly
      int64_t& before = latest.try_emplace(record.partition, time_ms).first->second;
      const absl::Duration older = absl::Milliseconds(before - time_ms);
      if (older > evidence_.lead) {
        Problem(absl::StrCat("the record at ", record.partition, "/", record.offset,
                             " of the repartition topic is DISORDERED: ", absl::FormatDuration(older),
                             " older than one before, where ", absl::FormatDuration(evidence_.lead),
                             " is allowed: ", *record.value));
      }
      before = std::max(before, time_ms);
    }
  }

  // To the partitions of the repartition topic, in its order.
  void MapOutput() {
    std::map<std::pair<int32_t, int32_t>, int64_t> last;  // by partition of the output and of the other
    std::vector<Record>& output = evidence_.judged.output;
    std::vector<std::pair<int64_t, size_t>> order;  // by the offset in the repartition topic
    for (size_t i = 0; i < output.size(); ++i) {
      Record& record = output[i];
      const auto found = places_.find(SendingOf(record));
      order.emplace_back(found == places_.end() ? -1 : found->second.offset, i);
      if (found == places_.end()) continue;  // the oracle says so
      const auto& [partition, offset, of_input] = found->second;
      if (record.partition != of_input) {
        Problem(absl::StrCat("a record is in partition ", record.partition, " of the output, and was in ",
                             of_input, ": ", *record.value));
      }
      int64_t& before = last.try_emplace({record.partition, partition}, -1).first->second;
      if (offset < before) {
        Problem(absl::StrCat("a record of the output is REORDERED: ", *record.value));
      }
      before = offset;
      record.partition = partition;
    }
    std::sort(order.begin(), order.end());
    std::vector<Record> ordered;
    ordered.reserve(order.size());
    for (const auto& [offset, i] : order) ordered.push_back(std::move(output[i]));
    output = std::move(ordered);
    evidence_.judged.input = std::move(evidence_.routed);
  }

  struct Routed {
    int32_t partition = 0;
    int64_t offset = 0;
    int32_t of_input = 0;
  };

  RoutedEvidence evidence_;
  std::map<int64_t, Routed> places_;  // by sending
  std::vector<std::string> problems_;
};

}  // namespace

test::Judgement JudgeRouted(RoutedEvidence evidence) { return RoutedJudge(std::move(evidence)).Judge(); }

}  // namespace lethe::simulation
