// Ids in framed JSON and in Protobuf: the same bytes as in JSON. Broken records are malformed.
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "src/record/record_reader.h"
#include "tests/support/encodings.h"

namespace lethe {
namespace {

using State = RecordFields::State;
using test::BytesField;
using test::Fixed;
using test::Framed;
using test::Tag;
using test::Varint;
using test::VarintField;
using test::Zigzag;
using testing::HasSubstr;

const std::string kFirstMessage(1, '\0');  // its message index

class Headers final : public RecordHeaders {
 public:
  Headers(const std::string& name, const std::string& value) : headers_{{name, value}} {}
  std::optional<absl::string_view> Last(const std::string& name) const override {
    const auto found = headers_.find(name);
    return found == headers_.end() ? std::nullopt : std::optional<absl::string_view>(found->second);
  }

 private:
  std::map<std::string, std::string> headers_;
};

// The id, or "?" and the state's number.
std::string IdOf(const std::string& spec, const RecordView& record) {
  RecordReader reader({.id = IdSpec::Parse(spec).value()});
  const RecordFields& fields = reader.Read(record);
  if (fields.id_state == State::kPresent) return std::string(fields.id);
  EXPECT_FALSE(fields.reason.empty());
  return fields.id_state == State::kMissing ? "missing" : "malformed";
}
std::string IdOfValue(const std::string& spec, const std::string& value) {
  return IdOf(spec, {.value = value});
}

TEST(RecordFormats, TheFrameIsNoPartOfAnId) {
  const std::string json = R"({"order":{"id":"a","n":17}})";
  for (const int schema : {1, 2, 258, INT32_MAX}) {
    EXPECT_EQ(IdOfValue("framed.json:/order/id", Framed(schema, json)), "sa");
    EXPECT_EQ(IdOfValue("framed.json:/order/n", Framed(schema, json)), "n17");
  }
  EXPECT_EQ(IdOfValue("framed.json:/order/id", json), "sa") << "plain records among framed ones";
  EXPECT_EQ(IdOf("key.framed.json:/order/id", {.key = Framed(1, json)}), "sa");
  EXPECT_EQ(IdOf("key.json:/order/id", {.key = json}), "sa");
  const Headers headers("__value_schema_id", "\1" + std::string(16, 'g'));
  EXPECT_EQ(IdOf("framed.json:/order/id", {.value = json, .headers = &headers}), "sa");
}

TEST(RecordFormats, TheSameIdInEveryFormat) {
  const std::string protobuf =
      BytesField(3, BytesField(7, "a") + VarintField(8, 17)) + VarintField(4, static_cast<uint64_t>(-5));
  const std::string json = R"({"3":{"7":"a","8":17},"4":-5})";
  for (const char* const place : {"/3/7", "/3/8", "/4"}) {
    const std::string pointer = place;
    const std::string expected = IdOfValue("json:" + pointer, json);
    EXPECT_EQ(IdOfValue("protobuf:" + pointer, Framed(1, kFirstMessage + protobuf)), expected);
    EXPECT_EQ(IdOfValue("protobuf:" + pointer, Framed(9, Zigzag(2) + Zigzag(1) + Zigzag(0) + protobuf)),
              expected);
    EXPECT_EQ(IdOfValue("protobuf:" + pointer, protobuf), expected) << "without a frame";
    EXPECT_EQ(IdOf("key.protobuf:" + pointer, {.key = protobuf}), expected);
    const Headers headers("__value_schema_id", "\1" + std::string(16, 'g') + kFirstMessage);
    EXPECT_EQ(IdOf("protobuf:" + pointer, {.value = protobuf, .headers = &headers}), expected);
  }
  EXPECT_EQ(IdOfValue("protobuf:/3/7+protobuf:/4", protobuf), IdOfValue("json:/3/7+json:/4", json));
  EXPECT_EQ(IdOf("key+protobuf:/4", {.key = "k", .value = protobuf}),
            IdOf("key+json:/4", {.key = "k", .value = json}));
}

TEST(RecordFormats, ProtobufByNumbers) {
  const auto id = [](const std::string& message) { return IdOfValue("protobuf:/1", message); };
  EXPECT_EQ(id(VarintField(1, 0)), "n0");
  EXPECT_EQ(id(VarintField(1, UINT64_MAX)), "n-1");
  EXPECT_EQ(id(Tag(1, 1) + Fixed(UINT64_MAX)), "n18446744073709551615");
  EXPECT_EQ(id(Tag(1, 5) + Fixed(uint32_t{7})), "n7");
  EXPECT_EQ(id(BytesField(1, "\xFF")), "s\xFF");
  EXPECT_EQ(id(BytesField(1, "")), "missing");
  EXPECT_EQ(id(VarintField(2, 1)), "missing") << "proto3 leaves defaults out";
  EXPECT_EQ(id(""), "missing") << "a message of defaults";
  EXPECT_EQ(IdOf("protobuf:/1", {}), "missing") << "a tombstone";

  EXPECT_EQ(id(VarintField(1, 1) + VarintField(1, 2)), "n2") << "the last one counts";
  EXPECT_EQ(id(VarintField(1, 1) + BytesField(2, "x") + Tag(9, 5) + "1234"), "n1") << "unknown fields";
  const std::string group = Tag(2, 3) + VarintField(1, 8) + Tag(5, 3) + Tag(5, 4) + Tag(2, 4);
  EXPECT_EQ(id(group + VarintField(1, 3)), "n3") << "a field in a group is another one";
  // Messages that occur twice are merged.
  EXPECT_EQ(IdOfValue("protobuf:/1/2", BytesField(1, VarintField(2, 5)) + BytesField(1, VarintField(3, 6))),
            "n5");
  EXPECT_EQ(IdOfValue("protobuf:/1/2", VarintField(1, 5)), "missing") << "no message is there";
  EXPECT_EQ(IdOfValue("protobuf:/536870911", VarintField(536870911, 5)), "n5");
}

TEST(RecordFormats, BrokenProtobufIsMalformed) {
  const std::string good = VarintField(1, 300) + BytesField(2, "abc") + Tag(3, 1) + "12345678";
  ASSERT_EQ(IdOfValue("protobuf:/1", good), "n300");
  const std::vector<std::string> broken = {
      good + VarintField(0, 1),                           // no number
      good + Tag(4, 6),                                   // no such type
      good + Tag(4, 4),                                   // a group that was not opened
      good + Tag(4, 3),                                   // a group that is not closed
      good + Tag(4, 3) + Tag(5, 4),                       // or by another
      good + Tag(4, 0) + std::string(10, '\xFF') + "\1",  // a varint without end
      good + Tag(4, 0) + std::string(9, '\xFF') + "\2",   // or of 65 bits
      good + Tag(4, 2) + Varint(uint64_t{1} << 62),       // a length beyond the end
      good + Tag(4, 2) + Varint(UINT64_MAX),
      good + Varint(uint64_t{1} << 35),  // a number of more than 29 bits
      good + BytesField(5, "\7"),        // only if it is looked into
  };
  for (size_t i = 0; i < broken.size(); ++i) {
    const bool is_last = i + 1 == broken.size();
    EXPECT_EQ(IdOfValue("protobuf:/1", broken[i]), is_last ? "n300" : "malformed") << i;
    EXPECT_EQ(IdOfValue("protobuf:/5/1", broken[i]), "malformed") << i;
  }
  for (size_t size = 1; size < good.size(); ++size) {
    const bool is_between = size == 3 || size == 8;
    EXPECT_EQ(IdOfValue("protobuf:/1", good.substr(0, size)), is_between ? "n300" : "malformed") << size;
  }
  std::string deep;
  for (int i = 0; i < 100; ++i) deep = Tag(7, 3) + deep + Tag(7, 4);
  EXPECT_EQ(IdOfValue("protobuf:/1", good + deep), "n300");
  EXPECT_EQ(IdOfValue("protobuf:/1", good + Tag(7, 3) + deep + Tag(7, 4)), "malformed");
  EXPECT_EQ(IdOfValue("protobuf:/1", std::string(100'000, static_cast<char>(Tag(7, 3)[0]))), "malformed");
}

TEST(RecordFormats, FramesThatCannotBe) {
  const std::string json = R"({"1":"a"})";
  const std::string message = kFirstMessage + BytesField(1, "a");
  for (const int schema : {0, -1, INT32_MIN}) {
    EXPECT_EQ(IdOfValue("framed.json:/1", Framed(schema, json)), "malformed") << schema;
    EXPECT_EQ(IdOfValue("protobuf:/1", Framed(schema, message)), "malformed") << schema;
  }
  for (const std::string& frame : {std::string(1, '\0'), std::string(4, '\0'), Framed(7, "")}) {
    EXPECT_EQ(IdOfValue("framed.json:/1", frame), "malformed");
    EXPECT_EQ(IdOfValue("protobuf:/1", frame), "malformed") << "no message index";
  }
  for (const std::string& indexes : {Zigzag(-1), Zigzag(33), Zigzag(int64_t{1} << 62), Zigzag(2) + Zigzag(0),
                                     Zigzag(1) + Zigzag(-1), std::string(11, '\xFF')}) {
    EXPECT_EQ(IdOfValue("protobuf:/1", Framed(7, indexes)), "malformed");
  }
  const std::string glue = "\3" + std::string(17, '\0') + json;
  EXPECT_EQ(IdOfValue("framed.json:/1", glue), "malformed");
  RecordReader reader({.id = IdSpec::Parse("protobuf:/1").value()});
  EXPECT_THAT(reader.Read({.value = glue}).reason, HasSubstr("Glue"));
  const Headers wrong("__value_schema_id", "x");
  EXPECT_EQ(IdOf("framed.json:/1", {.value = json, .headers = &wrong}), "malformed");
  EXPECT_EQ(IdOf("protobuf:/1", {.value = message, .headers = &wrong}), "malformed");
  const Headers of_key("__key_schema_id", "x");
  EXPECT_EQ(IdOf("framed.json:/1", {.value = json, .headers = &of_key}), "sa");
}

// Counters and times take the same fields.
TEST(RecordFormats, CountersAndTimes) {
  RecordSpec spec{.id = IdSpec::Parse("key.protobuf:/1").value(),
                  .time = Field::Parse("protobuf:/4").value()};
  spec.counters = {{Field::Parse("protobuf:/2").value(), Field::Parse("protobuf:/3").value(),
                    CounterSpec::Condition{Field::Parse("key.protobuf:/1").value(), "k"}}};
  RecordReader reader(spec);
  const std::string key = BytesField(1, "k");
  const std::string value =
      BytesField(2, "likes") + VarintField(3, static_cast<uint64_t>(-2)) + VarintField(4, 1'500'000'000'000);
  const RecordFields& fields = reader.Read({.key = key, .value = value});
  EXPECT_EQ(fields.id, "sk");
  EXPECT_EQ(fields.time, absl::FromUnixMillis(1'500'000'000'000));
  EXPECT_EQ(fields.counters[0].state, CounterUpdate::State::kCounted);
  EXPECT_EQ(fields.counters[0].key, "likes");
  EXPECT_EQ(fields.counters[0].delta, -2);
  EXPECT_EQ(reader.Read({.key = key, .value = "\7"}).counters[0].state, CounterUpdate::State::kUncountable);
  EXPECT_EQ(reader.Read({.key = key, .value = "\7"}).id_state, State::kPresent) << "the key is sound";
}

}  // namespace
}  // namespace lethe
