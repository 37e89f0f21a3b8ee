#include "src/cli/service/counters_json.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/cli/terminal/json_text.h"
#include "src/text/format.h"

namespace lethe {
namespace {

std::string StoreJson(const StoreReport& store) {
  return absl::StrCat(",\"store\":{\"name\":", JsonString(store.store),
                      ",\"problem\":", JsonString(store.problem), ",\"lag_records\":", store.lag, "}");
}

}  // namespace

std::string CountersJson(const CountersView& view, const std::vector<StoreReport>& stores, bool shows_keys) {
  std::vector<std::string> counters;
  for (const CounterView& counter : view.counters) {
    const bool has_totals = counter.mode == CounterMode::kTotal;
    std::vector<std::string> top;
    for (const auto& [key, total] : counter.top) {
      top.push_back(absl::StrCat("{\"key\":", JsonString(key), ",\"total\":\"", Digits(total), "\"}"));
    }
    std::string text =
        absl::StrCat("{\"name\":", JsonString(counter.name), ",\"mode\":\"", has_totals ? "total" : "delta",
                     "\",\"output\":", JsonString(counter.output));
    if (has_totals) {
      absl::StrAppend(&text, ",\"keys\":", counter.keys,
                      ",\"too_many\":", counter.too_many ? "true" : "false",
                      ",\"top\":", shows_keys ? absl::StrCat("[", absl::StrJoin(top, ","), "]") : "null");
    }
    for (const StoreReport& store : stores) {
      if (store.counter == counter.name) absl::StrAppend(&text, StoreJson(store));
    }
    counters.push_back(absl::StrCat(text, "}"));
  }
  const bool is_known = view.age < absl::InfiniteDuration();
  return absl::StrCat("{\"partitions\":[", absl::StrJoin(view.partitions, ","),
                      "],\"all_partitions\":", view.all_partitions,
                      ",\"age_seconds\":", is_known ? absl::StrCat(absl::ToDoubleSeconds(view.age)) : "null",
                      ",\"counters\":[", absl::StrJoin(counters, ","), "]}\n");
}

}  // namespace lethe
