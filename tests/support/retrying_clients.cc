#include "tests/support/retrying_clients.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace lethe::test {
namespace {

constexpr size_t kClients = 100;
constexpr uint64_t kCopiesWithin = 2000;
constexpr std::array<const char*, 6> kCountries = {"at", "de", "is", "jp", "uy", "za"};

}  // namespace

RetryingClients::RetryingClients(uint64_t seed) : random_(seed), orders_(kClients, 0) {}

Record RetryingClients::NewOrder() {
  const size_t client = random_() % kClients;
  const std::string country = kCountries[random_() % kCountries.size()];
  const int64_t amount = static_cast<int64_t>(random_() % 2001) - 1000;
  totals_[country] += amount;
  Record order;
  order.key = absl::StrCat("client ", client);
  order.value = absl::StrCat("{\"id\":\"", client, "-", orders_[client]++, "\",\"client\":", client,
                             ",\"country\":\"", country, "\",\"amount\":", amount, "}");
  order.headers = {{"source", "retrying clients"}};
  return order;
}

std::vector<Record> RetryingClients::Take(size_t count) {
  std::vector<Record> records;
  while (records.size() < count) {
    ++position_;
    if (!copies_.empty() && copies_.top().due <= position_) {
      records.push_back(copies_.top().record);
      copies_.pop();
      continue;
    }
    Record order = NewOrder();
    const uint64_t copies = random_() % 10 != 0 ? 0 : random_() % 5 == 0 ? 2 : 1;
    for (uint64_t i = 0; i < copies; ++i) copies_.push({position_ + 1 + random_() % kCopiesWithin, order});
    records.push_back(std::move(order));
  }
  return records;
}

}  // namespace lethe::test
