// What a deduplicated topic must hold, said exactly.
#ifndef LETHE_TESTS_SUPPORT_ORACLE_H_
#define LETHE_TESTS_SUPPORT_ORACLE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/support/kafka_client.h"

namespace lethe::test {

using IdOf = std::function<std::string(const Record&)>;

// The records of each partition whose id has not been seen before in it, in the order of the log.
std::vector<Record> FirstOfEachId(const std::vector<Record>& input, const IdOf& id_of);

// Succeeds if `output` is exactly what is left of `input` when every copy of an earlier record of the same
// partition is taken out: each id once, in the partition and the order of its first record, with the same
// key, value, headers and timestamp, and nothing else. Both as ReadAll() returns them. A failure says which
// ids are missing, repeated, foreign, out of place or changed, with their offsets.
testing::AssertionResult Deduplicated(const std::vector<Record>& input, const std::vector<Record>& output,
                                      const IdOf& id_of);

using Totals = std::map<std::string, int64_t>;

// Succeeds if both have the same keys with the same totals. A key whose total is 0 may be absent from either.
testing::AssertionResult SameTotals(const Totals& expected, const Totals& actual);

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_ORACLE_H_
