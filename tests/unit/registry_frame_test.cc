#include "src/record/registry_frame.h"

#include <gtest/gtest.h>

#include <string>

namespace lethe {
namespace {

std::string Bytes(std::initializer_list<int> bytes) { return std::string(bytes.begin(), bytes.end()); }

TEST(RegistryFrame, HasTheSchemasId) {
  EXPECT_EQ(SchemaIdOf(Bytes({0, 0, 0, 1, 2, 'x'})), 258);
  EXPECT_EQ(SchemaIdOf(Bytes({0, 0x7F, 0xFF, 0xFF, 0xFF, 'x', 'y', 'z', '!'})), INT32_MAX);
}

TEST(RegistryFrame, OtherBytesHaveNone) {
  EXPECT_FALSE(SchemaIdOf(""));
  EXPECT_FALSE(SchemaIdOf("{\"id\":1}"));
  EXPECT_FALSE(SchemaIdOf(Bytes({0, 0, 0, 0, 42}))) << "nothing is behind it";
  EXPECT_FALSE(SchemaIdOf(Bytes({0, 0, 0, 0, 0, 'x'}))) << "no schema";
  EXPECT_FALSE(SchemaIdOf(Bytes({0, 0x80, 0, 0, 0, 'x'}))) << "a negative id";
  EXPECT_FALSE(SchemaIdOf(Bytes({0, 0, 1, 0x8B, 1, 2, 3, 4}))) << "a number of 64 bits";
}

TEST(RegistryFrames, EightBytesTellNothing) {
  RegistryFrames frames;
  const std::string number = Bytes({0, 0, 0, 1, 2, 3, 4, 5});
  frames.Add(number, std::nullopt);
  EXPECT_FALSE(frames.in_keys());
  frames.Add(Bytes({0, 0, 0, 0, 42, 'x'}), std::nullopt);
  EXPECT_TRUE(frames.in_keys());
}

TEST(RegistryFrames, NearlyAllAreFramed) {
  const std::string framed = Bytes({0, 0, 0, 0, 42, 'x'});
  RegistryFrames frames;
  EXPECT_FALSE(frames.in_keys());
  for (int i = 0; i < 9; ++i) frames.Add(std::nullopt, framed);
  frames.Add("key", "{}");
  EXPECT_TRUE(frames.in_values());
  EXPECT_FALSE(frames.in_keys());
  frames.Add("key", "{}");
  EXPECT_FALSE(frames.in_values());
}

}  // namespace
}  // namespace lethe
