// The record reader against examples of each trap, and against a naive parser on random records.
#include "src/record/record_reader.h"

#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simdjson.h"
#include "tests/support/naive_json.h"

namespace lethe {
namespace {

using testing::HasSubstr;

using State = RecordFields::State;

using Texts = std::map<std::string, std::string>;

class FakeHeaders : public RecordHeaders {
 public:
  explicit FakeHeaders(std::map<std::string, std::string> headers) : headers_(std::move(headers)) {}
  std::optional<absl::string_view> Last(const std::string& name) const override {
    const auto found = headers_.find(name);
    if (found == headers_.end()) return std::nullopt;
    return found->second;
  }

 private:
  const std::map<std::string, std::string> headers_;
};

RecordReader IdReader(const std::string& spec) {
  RecordSpec record;
  record.id = IdSpec::Parse(spec).value();
  return RecordReader(record);
}

// The id's bytes, or "missing: why", or "malformed: why".
std::string IdOf(const std::string& spec, const RecordView& record) {
  RecordReader reader = IdReader(spec);
  const RecordFields& fields = reader.Read(record);
  if (fields.id_state == State::kPresent) {
    EXPECT_EQ(fields.reason, "");
    return std::string(fields.id);
  }
  return absl::StrCat(fields.id_state == State::kMissing ? "missing: " : "malformed: ", fields.reason);
}
std::string IdOfValue(const std::string& spec, const std::string& value) {
  return IdOf(spec, {.value = value});
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string id;
  for (const std::string& part : parts) {
    id += static_cast<char>(part.size());
    id += std::string(7, '\0') + part;
  }
  return id;
}

// An optional part that is there leaves the bytes as they are without the '?'.
TEST(RecordReaderTest, AnOptionalPartMayBeAbsent) {
  const std::string id = "json:/a+json:/b?";
  EXPECT_EQ(IdOfValue(id, R"({"a":"x","b":1})"), IdOfValue("json:/a+json:/b", R"({"a":"x","b":1})"));
  const std::string absent = Joined({"sx", ""});
  for (const char* value : {R"({"a":"x"})", R"({"a":"x","b":null})", R"({"a":"x","b":""})"}) {
    EXPECT_EQ(IdOfValue(id, value), absent) << value;
  }
  // Nothing that is there is taken for absent, nor a broken record or one without a value.
  EXPECT_EQ(IdOfValue(id, R"({"a":"x","b":false})"), "missing: json:/b is neither a string nor a number");
  EXPECT_EQ(IdOfValue(id, R"({"a":"x","b":{}})"), "missing: json:/b is neither a string nor a number");
  EXPECT_EQ(IdOfValue(id, R"({"b":1})").substr(0, 15), "missing: json:/");
  EXPECT_EQ(IdOfValue(id, "{").substr(0, 10), "malformed:");
  EXPECT_EQ(IdOf("key+json:/b?", {.key = "k"}), "missing: json:/b is not there, since the value is null");
  const FakeHeaders headers(Texts{{"h", "s"}});
  EXPECT_EQ(IdOf("key+header:h?", {.key = "k", .headers = &headers}), Joined({"k", "s"}));
  EXPECT_EQ(IdOf("key+header:i?", {.key = "k", .headers = &headers}), Joined({"k", ""}));
  RecordReader reader = IdReader(id);
  EXPECT_TRUE(reader.Read({.value = R"({"a":"x"})"}).lacks_optional);
  EXPECT_FALSE(reader.Read({.value = R"({"a":"x","b":1})"}).lacks_optional);
  RecordReader first = IdReader("json:/b?+json:/a");
  EXPECT_FALSE(first.Read({.value = R"({"c":1})"}).lacks_optional) << "it has no id";
}

TEST(RecordReaderTest, TheFirstPlaceThatIsThereCounts) {
  const std::string id = "header:event-id or json:/id or key+json:/n?";
  const FakeHeaders with(Texts{{"event-id", "e"}});
  const FakeHeaders without(Texts{});
  const auto of = [&](const FakeHeaders& headers, const char* value) {
    return IdOf(id, {.key = "k", .value = value, .headers = &headers});
  };
  EXPECT_EQ(of(with, R"({"id":"i"})"), absl::StrCat(absl::string_view("\0", 1), "e"));
  EXPECT_EQ(of(with, "{ broken"), absl::StrCat(absl::string_view("\0", 1), "e")) << "nobody asks the value";
  EXPECT_EQ(of(without, R"({"id":"i"})"), "\1si");
  EXPECT_EQ(of(without, R"({"n":1})"), "\2" + Joined({"k", "n1"}));
  EXPECT_EQ(of(without, R"({})"), "\2" + Joined({"k", ""}));
  EXPECT_EQ(of(without, "{").substr(0, 10), "malformed:");
  EXPECT_EQ(IdOf("json:/id or header:event-id", {.value = "{", .headers = &with}), "\1e")
      << "a later place that can be read counts";
  EXPECT_EQ(IdOf("header:a or key", {.headers = &without}),
            "missing: header:a is not there, or null; key is null");
  RecordReader reader = IdReader(id);
  EXPECT_EQ(reader.Read({.value = R"({"id":1})", .headers = &without}).id_place, 1);
  EXPECT_EQ(reader.Read({.value = "{", .headers = &with}).id_place, 0);
}

TEST(RecordReaderTest, KeyValueAndHeadersAreTakenAsTheyAre) {
  const FakeHeaders headers({{"id", "h"}, {"none", ""}});
  const RecordView record = {.key = "k{", .value = "{broken", .headers = &headers};
  EXPECT_EQ(IdOf("key", record), "k{");
  EXPECT_EQ(IdOf("value", record), "{broken");
  EXPECT_EQ(IdOf("header:id", record), "h");
  EXPECT_EQ(IdOf("header:none", record), "missing: header:none is empty");
  EXPECT_EQ(IdOf("header:other", record), "missing: header:other is not there, or null");
  EXPECT_EQ(IdOf("key", {}), "missing: key is null");
  EXPECT_EQ(IdOf("header:id", {}), "missing: header:id is not there, or null");
  EXPECT_EQ(IdOf("value", {.value = ""}), "missing: value is empty");
}

TEST(RecordReaderTest, JsonStringsAndNumbers) {
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"abc","x":1})"), "sabc");
  EXPECT_EQ(IdOfValue("json:/id", R"( { "x" : [1, {"id":2}] , "id" : "abc" } )"), "sabc");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":1})"), "n1");
  EXPECT_EQ(IdOfValue("json:/id", "{\"id\":1.0\n}"), "n1.0");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":1e0})"), "n1e0");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"1"})"), "s1");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":-0.5E+10})"), "n-0.5E+10");
}

TEST(RecordReaderTest, NumbersOfAnySize) {
  const std::string digits = "123456789012345678901234567890";
  EXPECT_EQ(IdOfValue("json:/id", "{\"id\":" + digits + "}"), "n" + digits);
  EXPECT_EQ(IdOfValue("json:/id", "{\"id\":18446744073709551616}"), "n18446744073709551616");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":1e999})"), "n1e999");
  EXPECT_EQ(IdOfValue("json:/id", R"({"x":-1e999,"y":99999999999999999999,"id":"a"})"), "sa");
}

TEST(RecordReaderTest, StringsAreUnescaped) {
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"a\"\\\/\b\f\n\r\tb"})"), "sa\"\\/\b\f\n\r\tb");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"\u0061\u00e9\u20AC\ud83d\ude00"})"), "saé€😀");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"aé€😀"})"), "saé€😀");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"\u0000"})"), std::string("s\0", 2));
  EXPECT_EQ(IdOfValue("json:/id", R"({"\u0069d":"abc"})"), "sabc");
  // Half of a pair has no UTF-8. It makes an id unusable, and nothing else.
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"\ud83d"})"),
            "missing: json:/id has half of a surrogate pair in it");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"\ud83d\u0061"})"),
            "missing: json:/id has half of a surrogate pair in it");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"\ude00\ud83d"})"),
            "missing: json:/id has half of a surrogate pair in it");
  EXPECT_EQ(IdOfValue("json:/id", R"({"comment":"cut \ud83d","\udddd":1,"id":"a"})"), "sa");
}

TEST(RecordReaderTest, UnusableIds) {
  for (const char* value : {"{}", "[]", "true", "false", "null", "[1]", R"({"a":"b"})"}) {
    EXPECT_EQ(IdOfValue("json:/id", absl::StrCat("{\"id\":", value, "}")),
              "missing: json:/id is neither a string nor a number");
  }
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":""})"), "missing: json:/id is empty");
  EXPECT_EQ(IdOfValue("json:/id", R"({"Id":"a"})"), "missing: json:/id is not there");
  EXPECT_EQ(IdOfValue("json:/id", R"("id")"), "missing: json:/id is not there");
  EXPECT_EQ(IdOfValue("json:/id", "17"), "missing: json:/id is not there");
  EXPECT_EQ(IdOf("json:/id", {}), "missing: json:/id is not there, since the value is null");
}

TEST(RecordReaderTest, JsonPointers) {
  const std::string value =
      R"({"a":{"b":["x",{"c":"deep"},["y"]],"":"empty name"},"a/b":"slash","m~n":"tilde","~1":"both","0":"zero","01":"o"})";
  EXPECT_EQ(IdOfValue("json:/a/b/0", value), "sx");
  EXPECT_EQ(IdOfValue("json:/a/b/1/c", value), "sdeep");
  EXPECT_EQ(IdOfValue("json:/a/b/2/0", value), "sy");
  EXPECT_EQ(IdOfValue("json:/a/", value), "sempty name");
  EXPECT_EQ(IdOfValue("json:/a~1b", value), "sslash");
  EXPECT_EQ(IdOfValue("json:/m~0n", value), "stilde");
  EXPECT_EQ(IdOfValue("json:/~01", value), "sboth");
  EXPECT_EQ(IdOfValue("json:/0", value), "szero");
  EXPECT_EQ(IdOfValue("json:/01", value), "so");
  for (const char* nowhere : {"json:/a/b/3", "json:/a/b/00", "json:/a/b/-", "json:/a/b/0/0",
                              "json:/a/b/18446744073709551616", "json:/a/b/c", "json:/"}) {
    EXPECT_EQ(IdOfValue(nowhere, value), absl::StrCat("missing: ", nowhere, " is not there"));
  }
}

TEST(RecordReaderTest, TheLastMemberOfANameCounts) {
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"a","id":"b"})"), "sb");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"a","\u0069d":"b"})"), "sb");
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"a","id":{}})"),
            "missing: json:/id is neither a string nor a number");
  EXPECT_EQ(IdOfValue("json:/a/b", R"({"a":{"b":"x"},"a":{"c":"y"}})"), "missing: json:/a/b is not there");
  EXPECT_EQ(IdOfValue("json:/a/b", R"({"a":{"b":"x"},"a":1})"), "missing: json:/a/b is not there");
  EXPECT_EQ(IdOfValue("json:/a/b", R"({"a":1,"a":{"b":"x"},"b":"z"})"), "sx");
}

TEST(RecordReaderTest, JoinedPartsHaveLengths) {
  EXPECT_EQ(IdOfValue("json:/client+json:/seq", R"({"seq":5,"client":"ab"})"), Joined({"sab", "n5"}));
  EXPECT_EQ(IdOf("key+json:/seq", {.key = "k", .value = R"({"seq":"5"})"}), Joined({"k", "s5"}));
  EXPECT_EQ(IdOf("key+value", {.key = "ab", .value = "c"}), Joined({"ab", "c"}));
  EXPECT_NE(IdOf("key+value", {.key = "ab", .value = "c"}), IdOf("key+value", {.key = "a", .value = "bc"}));
  EXPECT_EQ(IdOfValue("json:/client+json:/seq", R"({"seq":5,"client":""})"),
            "missing: json:/client is empty");
  EXPECT_EQ(IdOfValue("json:/client+json:/seq", R"({"client":"a"})"), "missing: json:/seq is not there");
}

TEST(RecordReaderTest, BrokenAnywhereIsMalformed) {
  const std::vector<std::string> broken = {"",
                                           " ",
                                           "{",
                                           "}",
                                           "[",
                                           "\xEF\xBB\xBF",
                                           R"({"id":"a"}x)",
                                           R"({"id":"a"}{"id":"b"})",
                                           R"({"id":"a"}])",
                                           R"({"id":"a",})",
                                           R"({"id":"a" "b":1})",
                                           R"({"id":"a","b":})",
                                           R"({"id":"a","b"})",
                                           R"({"id":"a","b":[1,]})",
                                           R"({"id":"a","b":[1 2]})",
                                           R"({"id":"a","b":01})",
                                           R"({"id":"a","b":1.})",
                                           R"({"id":"a","b":.5})",
                                           R"({"id":"a","b":+1})",
                                           R"({"id":"a","b":-})",
                                           R"({"id":"a","b":1e})",
                                           R"({"id":"a","b":1e+})",
                                           R"({"id":"a","b":0x1})",
                                           R"({"id":"a","b":NaN})",
                                           R"({"id":"a","b":tru})",
                                           R"({"id":"a","b":truex})",
                                           R"({"id":"a","b":nulll})",
                                           R"({"id":"a","b":"\x"})",
                                           R"({"id":"a","b":"\u12G4"})",
                                           R"({"id":"a","b":"\u12"})",
                                           R"({"id":"a","b":"c)",
                                           R"({"id":"a","b":"c\"})",
                                           R"({"id":"a","\q":1})",
                                           R"({"id":"a",b:1})",
                                           R"({"id":"a",'b':1})",
                                           R"({"id":"a","b":1]})",
                                           R"({"id":"a","b":[1}})",
                                           R"({"id":"a","b":"c"d})",
                                           R"({"id":"a","b":"c""d"})",
                                           R"({"id":"a","b":1"d"})",
                                           R"({"id":"a","b":true"d"})",
                                           R"({"id":"a","b":\"d"})",
                                           R"({"id":"a","b":1\})",
                                           R"({"id":"a"/**/})",
                                           R"({"id":"a","b":,1})",
                                           R"({"id":"a",,"b":1})",
                                           R"({,"id":"a"})",
                                           R"({"id":"a":"b"})",
                                           R"({"id":"a",1:2})",
                                           R"("id":"a")",
                                           "{\"id\":\"a\",\"b\":\"\x01\"}",
                                           "{\"id\":\"a\",\"b\":\"new\nline\"}",
                                           "{\"id\":\"a\",\"b\":\"\xFF\"}",
                                           "{\"id\":\"a\",\"b\":\"\xED\xA0\x80\"}",
                                           "{\"id\":\"a\",\"b\":\"\xC0\x80\"}",
                                           "{\"id\":\"a\",\"b\":\"\xE2\x82\"}",
                                           "{\"id\":\"a\"\f}",
                                           "{\"id\":\"a\"}\v",
                                           "{\"id\":\"a\"}\xC2\xA0",
                                           std::string("{\"id\":\"a\"}\0", 11),
                                           std::string("{\"id\":\"a\",\"b\":1\0}", 17),
                                           "\xEF\xBB\xBF\xEF\xBB\xBF{\"id\":\"a\"}",
                                           "\xFF\xFE{"};
  for (const std::string& text : broken) {
    EXPECT_THAT(IdOfValue("json:/id", text), HasSubstr("malformed: the value is not JSON: ")) << text;
    EXPECT_FALSE(test::NaiveParser::Parse(text).has_value()) << text;
  }
  EXPECT_EQ(IdOfValue("json:/id", R"({"id":"a","b":01})"),
            "malformed: the value is not JSON: a number is wrong, at byte 14");
  EXPECT_EQ(IdOfValue("json:/id", "{\"a\\\"\":\n\"\xC3\xA9\tb\"}"),
            "malformed: the value is not JSON: a string has a control character in it, at byte 11");
  for (const char* wrong : {"\xFF", "\xC3", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80"}) {
    EXPECT_EQ(
        IdOfValue("json:/id", absl::StrCat("{\"id\":\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", wrong, "\"}")),
        "malformed: the value is not JSON: it is not UTF-8, at byte 16");
  }
  // Malformed goes before missing.
  EXPECT_THAT(IdOf("key+json:/id", {.value = "{"}), HasSubstr("malformed"));
}

TEST(RecordReaderTest, ByteOrderMarkIsPassedOver) {
  EXPECT_EQ(IdOfValue("json:/id", "\xEF\xBB\xBF{\"id\":\"a\"}"), "sa");
}

TEST(RecordReaderTest, LargeIdsAndDeepNesting) {
  const std::string huge(1 << 20, 'x');
  EXPECT_EQ(IdOfValue("json:/id", "{\"id\":\"" + huge + "\"}"), "s" + huge);
  EXPECT_EQ(IdOf("key", {.key = huge}), huge);
  const std::string depth(1 << 20, '[');
  EXPECT_EQ(IdOfValue("json:/id", "{\"x\":" + depth + std::string(depth.size(), ']') + ",\"id\":\"a\"}"),
            "sa");
  EXPECT_THAT(IdOfValue("json:/id", depth), HasSubstr("malformed"));
}

// A reader forgets one record before the next, whatever their sizes.
TEST(RecordReaderTest, ReadersAreReused) {
  RecordReader reader = IdReader("json:/id");
  const std::string large = "{\"id\":\"" + std::string(100'000, 'y') + "\"}";
  const std::string small = R"({"id":"z"})";
  EXPECT_EQ(reader.Read({.value = small}).id, "sz");
  EXPECT_EQ(reader.Read({.value = large}).id.size(), 100'001);
  EXPECT_EQ(reader.Read({.value = "{}"}).id_state, State::kMissing);
  EXPECT_EQ(reader.Read({.value = "{"}).id_state, State::kMalformed);
  EXPECT_EQ(reader.Read({}).id_state, State::kMissing);
  RecordReader moved = std::move(reader);
  EXPECT_EQ(moved.Read({.value = small}).id, "sz");
  EXPECT_EQ(moved.Read({.value = small}).reason, "");
}

RecordFields::State TimeOf(const std::string& field, const RecordView& record, absl::Time* time) {
  RecordSpec spec;
  spec.id = IdSpec::Parse("key").value();
  spec.time = Field::Parse(field).value();
  RecordReader reader(spec);
  const RecordFields& fields = reader.Read(record);
  *time = fields.time;
  return fields.time_state;
}

TEST(RecordReaderTest, Times) {
  absl::Time time;
  const absl::Time expected = absl::FromUnixMillis(1442018818771);
  for (const char* text :
       {"1442018818771", "1442018818771.9", "1.442018818771e12", R"("2015-09-12T00:46:58.771Z")",
        R"("2015-09-12T02:46:58.771+02:00")", R"("2015\u002d09-12T00:46:58.771Z")"}) {
    EXPECT_EQ(TimeOf("json:/t", {.value = absl::StrCat("{\"t\":", text, "}")}, &time), State::kPresent);
    EXPECT_EQ(time, expected) << text;
  }
  for (const char* text : {"\"1442018818771\"", "\"\"", "null", "[1]", "1e999", "-1e999", "253402300800000",
                           "99999999999999999999", "\"infinite-future\"", "\"2015-09-12\""}) {
    EXPECT_EQ(TimeOf("json:/t", {.value = absl::StrCat("{\"t\":", text, "}")}, &time), State::kMissing)
        << text;
    EXPECT_EQ(time, absl::InfinitePast());
  }
  EXPECT_EQ(TimeOf("json:/t", {.value = "{"}, &time), State::kMalformed);
  const FakeHeaders headers({{"ms", "1442018818771"}, {"text", "2015-09-12T00:46:58.771Z"}, {"inf", "inf"}});
  EXPECT_EQ(TimeOf("header:ms", {.headers = &headers}, &time), State::kPresent);
  EXPECT_EQ(time, expected);
  EXPECT_EQ(TimeOf("header:text", {.headers = &headers}, &time), State::kPresent);
  EXPECT_EQ(time, expected);
  EXPECT_EQ(TimeOf("header:inf", {.headers = &headers}, &time), State::kMissing);
  EXPECT_EQ(TimeOf("key", {.key = "-1"}, &time), State::kPresent);
  EXPECT_EQ(time, absl::FromUnixMillis(-1));
}

using Counting = CounterUpdate::State;

struct Counter {
  Counting state;
  std::string key;
  int64_t delta;
  std::string reason;
};
Counter CounterOf(const CounterSpec& counter, const RecordView& record) {
  RecordSpec spec;
  spec.id = IdSpec::Parse("key").value();
  // The one before it reads the same places, and must not be in its way.
  spec.counters = {{Field::Parse("json:/c").value()}, counter};
  RecordReader reader(spec);
  const RecordFields& fields = reader.Read(record);
  EXPECT_EQ(fields.id_state, record.key ? State::kPresent : State::kMissing);
  EXPECT_EQ(fields.counters.size(), 2u);
  const CounterUpdate& update = fields.counters[1];
  return {update.state, std::string(update.key), update.delta, update.reason};
}
Counter CounterOf(const std::string& key, const std::string& delta, const RecordView& record) {
  return CounterOf({Field::Parse(key).value(), Field::Parse(delta).value()}, record);
}

TEST(RecordReaderTest, Counters) {
  for (const auto& [text, delta] : std::map<std::string, int64_t>{{"5", 5},
                                                                  {"-5", -5},
                                                                  {"0", 0},
                                                                  {"-0", 0},
                                                                  {"9223372036854775807", INT64_MAX},
                                                                  {"-9223372036854775808", INT64_MIN}}) {
    const std::string value = absl::StrCat(R"({"c":"e\u006e","d":)", text, "}");
    const Counter counter = CounterOf("json:/c", "json:/d", {.key = "k", .value = value});
    EXPECT_EQ(counter.state, Counting::kCounted);
    EXPECT_EQ(counter.key, "en");
    EXPECT_EQ(counter.delta, delta);
    EXPECT_EQ(CounterOf("key", "value", {.key = "k", .value = text}).delta, delta);
  }
  const std::map<std::string, std::string> bad_json = {{"1.0", "json:/d is not written as a whole number"},
                                                       {"1e3", "json:/d is not written as a whole number"},
                                                       {"\"5\"", "json:/d is a string"},
                                                       {"9223372036854775808", "json:/d is beyond 64 bits"},
                                                       {"-9223372036854775809", "json:/d is beyond 64 bits"},
                                                       {"null", "json:/d is neither a string nor a number"},
                                                       {"[]", "json:/d is neither a string nor a number"}};
  for (const auto& [text, reason] : bad_json) {
    const std::string value = absl::StrCat(R"({"c":"en","d":)", text, "}");
    const Counter counter = CounterOf("json:/c", "json:/d", {.key = "k", .value = value});
    EXPECT_EQ(counter.state, Counting::kUncountable) << text;
    EXPECT_EQ(counter.reason, reason) << text;
  }
  const std::map<std::string, std::string> bad_text = {{"+5", "value is not written as a whole number"},
                                                       {" 5", "value is not a number"},
                                                       {"5 ", "value is not a number"},
                                                       {"", "value is empty"},
                                                       {"five", "value is not a number"},
                                                       {"1.0", "value is not written as a whole number"},
                                                       {"0x10", "value is not a number"}};
  for (const auto& [text, reason] : bad_text) {
    const Counter counter = CounterOf("key", "value", {.key = "k", .value = text});
    EXPECT_EQ(counter.state, Counting::kUncountable) << text;
    EXPECT_EQ(counter.reason, reason) << text;
  }
  EXPECT_EQ(CounterOf("json:/c", "json:/d", {.key = "k", .value = R"({"c":7,"d":1})"}).key, "7");
  EXPECT_EQ(CounterOf("json:/c", "json:/d", {.key = "k", .value = R"({"c":"","d":1})"}).reason,
            "json:/c is empty");
  EXPECT_EQ(CounterOf("json:/c", "json:/d", {.key = "k", .value = R"({"d":1})"}).reason,
            "json:/c is not there");
  EXPECT_EQ(CounterOf("key", "json:/d", {.value = R"({"d":1})"}).reason, "key is null");
}

TEST(RecordReaderTest, WithoutADeltaEachEventCountsOne) {
  const Counter counter =
      CounterOf({Field::Parse("json:/c").value()}, {.key = "k", .value = R"({"c":"en"})"});
  EXPECT_EQ(counter.state, Counting::kCounted);
  EXPECT_EQ(counter.delta, 1);
}

TEST(RecordReaderTest, ACounterCountsWhatMeetsItsCondition) {
  const auto count = [](const std::string& wanted, const std::string& type) {
    const std::string value = absl::StrCat(R"({"c":"en","d":2)", type, "}");
    return CounterOf({Field::Parse("json:/c").value(), Field::Parse("json:/d").value(),
                      CounterSpec::Condition{Field::Parse("json:/type").value(), wanted}},
                     {.key = "k", .value = value})
        .state;
  };
  EXPECT_EQ(count("like", R"(,"type":"like")"), Counting::kCounted);
  EXPECT_EQ(count("like", R"(,"type":"l\u0069ke")"), Counting::kCounted);
  EXPECT_EQ(count("7", R"(,"type":7)"), Counting::kCounted);
  EXPECT_EQ(count("true", R"(,"type":true)"), Counting::kCounted);
  for (const char* other : {"", R"(,"type":"likes")", R"(,"type":false)", R"(,"type":null)",
                            R"(,"type":["like"])", R"(,"type":"")"}) {
    EXPECT_EQ(count("like", other), Counting::kNotMeant) << other;
    EXPECT_EQ(count("true", other), Counting::kNotMeant) << other;
  }
}

// An id that needs no JSON is there, even if the value is broken for those that do.
TEST(RecordReaderTest, BrokenJsonConcernsThoseThatReadIt) {
  EXPECT_EQ(CounterOf("key", "json:/d", {.key = "k", .value = "{"}).state, Counting::kUncountable);
  EXPECT_EQ(CounterOf("json:/c", "key", {.key = "5", .value = "{"}).reason,
            "json:/c cannot be read: the value is not JSON");
  const Field type = Field::Parse("json:/type").value();
  EXPECT_EQ(CounterOf({Field::Parse("key").value(), std::nullopt, CounterSpec::Condition{type, "x"}},
                      {.key = "k", .value = "{"})
                .state,
            Counting::kUncountable);
  RecordSpec spec;
  spec.id = IdSpec::Parse("json:/id").value();
  spec.time = Field::Parse("key").value();
  RecordReader reader(spec);
  const RecordFields& fields = reader.Read({.key = "17", .value = "{"});
  EXPECT_EQ(fields.id_state, State::kMalformed);
  EXPECT_EQ(fields.time_state, State::kPresent);
}

// ---------------------------------------------------------------------------------------------------------
// Random records.

class RandomJson {
 public:
  explicit RandomJson(uint64_t seed) : random_(seed) {}

  uint64_t Below(uint64_t bound) { return random_() % bound; }

  // A document; usually right.
  std::string Document() {
    std::string text = Space() + (Below(4) != 0 ? Sequence("{", "}", 4, true) : Value(4)) + Space();
    if (Below(3) == 0) {
      for (uint64_t i = Below(3) + 1; i > 0 && !text.empty(); --i) Mutate(&text);
    }
    return text;
  }

 private:
  const char* Pick(std::initializer_list<const char*> options) {
    return options.begin()[Below(options.size())];
  }
  std::string Space() {
    std::string space;
    while (Below(6) == 0) space += Pick({" ", "\t", "\n", "\r"});
    return space;
  }
  std::string Name() {
    return Below(4) != 0 ? Pick({R"("a")", R"("b")", R"("\u0061")", R"("0")", R"("c~/")"}) : String();
  }
  std::string String() {
    std::string text = "\"";
    while (Below(5) != 0) {
      text += Pick({"a",         "b",
                    "0",         " ",
                    ",",         ":",
                    "{",         "}",
                    "[",         "]",
                    "/",         "'",
                    "é",         "€",
                    "😀",         R"(\")",
                    R"(\\)",     R"(\/)",
                    R"(\b)",     R"(\f)",
                    R"(\n)",     R"(\r)",
                    R"(\t)",     R"(\u0000)",
                    R"(\u00e9)", R"(\uD83D\uDE00)",
                    R"(\ud800)", R"(\udfff)",
                    R"(\u20ac)", "0123456789012345678901234567890123456789"});
    }
    return text + "\"";
  }
  std::string Number() {
    std::string text = Pick({"", "-"});
    text +=
        Pick({"0", "1", "42", "9007199254740993", "18446744073709551616", "123456789012345678901234567890"});
    text += Pick({"", "", ".0", ".5", ".123456789012345678901234567890"});
    text += Pick({"", "", "e0", "E+7", "e-400", "e400", "e999999999999"});
    return text;
  }
  std::string Value(int depth) {
    switch (Below(depth > 0 ? 7 : 4)) {
      case 0:
        return Number();
      case 1:
        return Pick({"true", "false", "null"});
      case 2:
      case 3:
        return String();
      case 4:
        return Sequence("[", "]", depth, false);
      default:
        return Sequence("{", "}", depth, true);
    }
  }
  std::string Sequence(const char* open, const char* close, int depth, bool named) {
    std::string text = open;
    text += Space();
    for (uint64_t i = 0, n = Below(5); i < n; ++i) {
      if (i > 0) text.append(",").append(Space());
      if (named) text.append(Name() + Space()).append(":").append(Space());
      text += Value(depth - 1) + Space();
    }
    return text + close;
  }
  void Mutate(std::string* text) {
    const size_t at = Below(text->size());
    switch (Below(4)) {
      case 0:
        text->erase(at, 1 + Below(3));
        break;
      case 1:
        text->insert(at, Pick({"\"", "\\", ",", ":", "{", "}", "[", "]", "0", "-", ".", "e", "t", " ", "\x01",
                               "\x80"}));
        break;
      case 2:
        (*text)[at] = static_cast<char>(Below(256));
        break;
      default:
        text->resize(at);
    }
  }

  std::mt19937_64 random_;
};

uint64_t Seed() {
  const char* given = std::getenv("LETHE_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("LETHE_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// On every kernel of simdjson that this machine runs, since users' machines choose others.
TEST(RecordReaderTest, AgreesWithANaiveParserOnRandomRecords) {
  const std::vector<std::vector<std::string>> specs = {
      {"/a"}, {"/b", "/a"}, {"/a/0"}, {"/a/b", "/0", "/c~0~1"}, {"/0"}, {"/1/a"}, {"/a/a/a"}, {"/"}};
  const simdjson::implementation* const chosen = simdjson::get_active_implementation();
  for (const simdjson::implementation* kernel : simdjson::get_available_implementations()) {
    if (!kernel->supported_by_runtime_system()) continue;
    simdjson::get_active_implementation() = kernel;
    std::vector<RecordReader> readers;
    for (const auto& spec : specs) {
      std::string text;
      for (const std::string& pointer : spec) text += (text.empty() ? "json:" : "+json:") + pointer;
      readers.push_back(IdReader(text));
    }
    RandomJson random(Seed());
    int states[3] = {};
    for (int i = 0; i < 60'000; ++i) {
      const std::string text = random.Document();
      const std::optional<test::NaiveJson> naive = test::NaiveParser::Parse(text);
      const size_t which = random.Below(specs.size());
      const std::optional<std::string> id = naive ? test::NaiveId(*naive, specs[which]) : std::nullopt;
      const RecordFields& fields = readers[which].Read({.value = text});
      const State expected = !naive ? State::kMalformed : id ? State::kPresent : State::kMissing;
      ASSERT_EQ(fields.id_state, expected) << kernel->name() << ": " << text << ": " << fields.reason;
      ASSERT_EQ(fields.id, id.value_or("")) << kernel->name() << ": " << text;
      ++states[static_cast<int>(expected)];
    }
    for (const int count : states) EXPECT_GT(count, 1000);
  }
  simdjson::get_active_implementation() = chosen;
}

}  // namespace
}  // namespace lethe
