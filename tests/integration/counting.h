// What the tests of counters share.
#ifndef LETHE_TESTS_INTEGRATION_COUNTING_H_
#define LETHE_TESTS_INTEGRATION_COUNTING_H_

#include <simdjson.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/flow.h"
#include "tests/support/oracle.h"

namespace lethe::test {

// What the output counts, as "PARTITION/KEY".
inline Totals CountedOutput(Flow& flow, const char* key, const char* delta) {
  simdjson::dom::parser parser;
  Totals totals;
  for (const Record& record : flow.Output()) {
    const simdjson::dom::element order = parser.parse(*record.value).value();
    totals[absl::StrCat(record.partition, "/", std::string(order[key].get_string().value()))] +=
        order[delta].get_int64().value();
  }
  return totals;
}

inline Args CountOrders(const std::string& totals) {
  return {
      absl::StrCat("--counter=name=revenue,mode=total,key=json:/country,delta=json:/amount,output=", totals)};
}

// The same, of all partitions.
inline Totals CountedKeys(Flow& flow, const char* key, const char* delta) {
  Totals totals;
  for (const auto& [place, total] : CountedOutput(flow, key, delta)) {
    totals[place.substr(place.find('/') + 1)] += total;
  }
  return totals;
}

}  // namespace lethe::test

#endif  // LETHE_TESTS_INTEGRATION_COUNTING_H_
