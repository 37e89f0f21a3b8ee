// A stream as retrying clients send it, made up.
#ifndef LETHE_TESTS_SUPPORT_RETRYING_CLIENTS_H_
#define LETHE_TESTS_SUPPORT_RETRYING_CLIENTS_H_

#include <cstdint>
#include <queue>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/kafka_client.h"
#include "tests/support/oracle.h"

namespace lethe::test {

// A hundred clients, each with a key of its own, send orders such as
//   {"id":"17-4","client":17,"country":"is","amount":-3}
// A tenth is sent again, some of it twice, among the next 2,000 events: exact copies, with the same key. The
// same seed gives the same stream.
class RetryingClients {
 public:
  explicit RetryingClients(uint64_t seed);

  // The next records of the stream; copies that are not due yet may come after them.
  std::vector<Record> Take(size_t count);

  // The sum of the amounts by country, of all events so far, each counted once.
  const Totals& totals() const { return totals_; }

 private:
  struct Copy {
    uint64_t due;
    Record record;
    bool operator>(const Copy& other) const { return due > other.due; }
  };

  Record NewOrder();

  std::mt19937_64 random_;
  uint64_t position_ = 0;
  std::vector<int> orders_;  // by client
  std::priority_queue<Copy, std::vector<Copy>, std::greater<>> copies_;
  Totals totals_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_RETRYING_CLIENTS_H_
