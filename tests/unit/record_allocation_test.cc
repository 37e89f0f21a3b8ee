// A record reader that has seen its largest record allocates no more. A program of its own, since it counts
// what all of the program allocates.
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/record/record_reader.h"

namespace {
int64_t allocations = 0;
}  // namespace

// Not inlined: GCC would see malloc's memory given to delete, and warn.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace lethe {
namespace {

class RecordAllocationTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordAllocationTest, NoneAfterTheLargestRecord) {
  const std::string id = GetParam();
  RecordSpec spec;
  spec.id = IdSpec::Parse(id).value();
  spec.time = Field::Parse("json:/time").value();
  const Field channel = Field::Parse("json:/channel").value();
  spec.counters = {{channel, Field::Parse("json:/delta").value()},
                   {channel, std::nullopt, CounterSpec::Condition{channel, "#en.wikipedia.and.a.long.name"}}};
  RecordReader reader(spec);
  const std::string key(100, 'k');
  const std::string padding(5000, 'p');
  const std::vector<std::string> values = {
      R"({"id":"\u0061bcdefghijklmnopqrstuvwxyz","n":123456789012345678901234567890,"time":"2015-09-12T00:46:58.771Z",
          "channel":"#\u0065n.wikipedia.and.a.long.name","delta":-5,"deep":[[[[[[[[{"x":1}]]]]]]]],"p":")" +
          padding + "\"}",
      R"({"id":"short","n":1,"time":1442018818771.5,"channel":"c","delta":5})",
      R"({"id":null})",
      "{ broken",
  };
  int present = 0;
  const auto read_all = [&] {
    for (const std::string& value : values) {
      present += reader.Read({.key = key, .value = value}).id_state == RecordFields::State::kPresent ? 1 : 0;
    }
    reader.Read({.key = key});
  };
  read_all();
  const int64_t before = allocations;
  for (int i = 0; i < 100; ++i) read_all();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(present, 202);
}

INSTANTIATE_TEST_SUITE_P(Ids, RecordAllocationTest,
                         ::testing::Values("key+json:/id+json:/n", "key+json:/id+json:/n+json:/none?",
                                           "header:event-id or key+json:/id+json:/n"));

}  // namespace
}  // namespace lethe
