#include "tests/support/oracle.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace lethe::test {
namespace {

constexpr size_t kExamples = 5;  // of each kind of fault

// A kind of fault: how often, and the first few.
class Fault {
 public:
  explicit Fault(std::string name) : name_(std::move(name)) {}
  void Add(const std::string& example) {
    if (count_++ < kExamples) absl::StrAppend(&examples_, "\n    ", example);
  }
  std::string Text() const {
    return count_ == 0 ? "" : absl::StrCat("\n  ", count_, " ", name_, ", for example:", examples_);
  }

 private:
  const std::string name_;
  size_t count_ = 0;
  std::string examples_;
};

std::map<int32_t, std::vector<const Record*>> ByPartition(const std::vector<Record>& records) {
  std::map<int32_t, std::vector<const Record*>> result;
  for (const Record& record : records) result[record.partition].push_back(&record);
  for (auto& [partition, of_it] : result) {
    std::sort(of_it.begin(), of_it.end(),
              [](const Record* a, const Record* b) { return a->offset < b->offset; });
  }
  return result;
}

std::string Place(const std::string& id, const Record& record) {
  return absl::StrCat("id \"", absl::CHexEscape(id), "\" at ", record.partition, "/", record.offset);
}

std::string Change(const Record& in, const Record& out) {
  if (in.key != out.key) return "key";
  if (in.value != out.value) return "value";
  if (in.headers != out.headers) return "headers";
  return in.timestamp_ms == out.timestamp_ms
             ? ""
             : absl::StrCat("timestamp (", in.timestamp_ms, " -> ", out.timestamp_ms, ")");
}

struct Faults {
  Fault missing{"ids are missing from the output"};
  Fault repeated{"records of the output repeat an id"};
  Fault foreign{"records of the output have an id that the partition's input has not"};
  Fault misplaced{"records of the output come after one that follows them in the input"};
  Fault changed{"records of the output differ from their original"};
};

void Compare(const std::vector<const Record*>& input, const std::vector<const Record*>& output,
             const IdOf& id_of, Faults& faults) {
  std::unordered_map<std::string, const Record*> first;
  for (const Record* record : input) first.try_emplace(id_of(*record), record);
  std::unordered_set<std::string> seen;
  int64_t latest = -1;
  for (const Record* record : output) {
    const std::string id = id_of(*record);
    const auto original = first.find(id);
    if (original == first.end()) {
      faults.foreign.Add(Place(id, *record));
      continue;
    }
    const std::string place =
        absl::StrCat(Place(id, *record), " of the output, ", original->second->offset, " of the input");
    if (!seen.insert(id).second) {
      faults.repeated.Add(place);
      continue;
    }
    if (original->second->offset < latest) faults.misplaced.Add(place);
    latest = std::max(latest, original->second->offset);
    if (const std::string change = Change(*original->second, *record); !change.empty()) {
      faults.changed.Add(absl::StrCat(place, ": ", change));
    }
  }
  for (const Record* record : input) {
    const std::string id = id_of(*record);
    if (first.at(id) == record && !seen.contains(id))
      faults.missing.Add(Place(id, *record) + " of the input");
  }
}

}  // namespace

std::vector<Record> FirstOfEachId(const std::vector<Record>& input, const IdOf& id_of) {
  std::set<std::pair<int32_t, std::string>> seen;
  std::vector<Record> result;
  for (const Record& record : input) {
    if (seen.emplace(record.partition, id_of(record)).second) result.push_back(record);
  }
  return result;
}

testing::AssertionResult Deduplicated(const std::vector<Record>& input, const std::vector<Record>& output,
                                      const IdOf& id_of) {
  const auto inputs = ByPartition(input);
  auto outputs = ByPartition(output);
  Faults faults;
  for (const auto& [partition, records] : inputs) {
    Compare(records, outputs[partition], id_of, faults);
    outputs.erase(partition);
  }
  for (const auto& [partition, records] : outputs) Compare({}, records, id_of, faults);

  const std::string text = absl::StrCat(faults.missing.Text(), faults.repeated.Text(), faults.foreign.Text(),
                                        faults.misplaced.Text(), faults.changed.Text());
  if (text.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "of " << input.size() << " records " << output.size()
                                     << " were passed, and" << text;
}

testing::AssertionResult SameTotals(const Totals& expected, const Totals& actual) {
  const auto total = [](const Totals& totals, const std::string& key) {
    const auto found = totals.find(key);
    return found == totals.end() ? 0 : found->second;
  };
  Fault wrong("counters are wrong");
  std::set<std::string> keys;
  for (const auto& [key, unused] : expected) keys.insert(key);
  for (const auto& [key, unused] : actual) keys.insert(key);
  for (const std::string& key : keys) {
    const int64_t want = total(expected, key), got = total(actual, key);
    if (want != got) wrong.Add(absl::StrCat("\"", key, "\" is ", got, ", not ", want));
  }
  if (wrong.Text().empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "of " << keys.size() << " counters" << wrong.Text();
}

}  // namespace lethe::test
