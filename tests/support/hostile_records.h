// Records and schemas that make a reader work as hard as they can for each byte.
#ifndef LETHE_TESTS_SUPPORT_HOSTILE_RECORDS_H_
#define LETHE_TESTS_SUPPORT_HOSTILE_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/encodings.h"

namespace lethe::test {

struct HostileAvro {
  std::string name;
  std::string schema;
  std::vector<std::string> places;
  std::string bytes;
};

// A record that has a record, `depth` times, and a value of type `inner` in the last. Its name is C0.
inline std::string AvroChain(int depth, const std::string& inner) {
  // Flat: each names the one before it, and the union around them is read by no place.
  std::string types = absl::StrCat(R"({"type":"record","name":"C)", depth - 1,
                                   R"(","fields":[{"name":"a","type":)", inner, "}]}");
  for (int i = depth - 2; i >= 0; --i) {
    absl::StrAppend(&types, R"(,{"type":"record","name":"C)", i, R"(","fields":[{"name":"a","type":"C)",
                    i + 1, R"("}]})");
  }
  return types;
}

// A record of the chain's types, which no value has, and a field `id` before and behind a value of `type`.
inline std::string AvroAround(const std::string& types, const std::string& type) {
  return absl::StrCat(R"({"type":"record","name":"R","fields":[{"name":"types","type":["null",)", types,
                      R"(]},{"name":"id","type":"string"},{"name":"value","type":)", type,
                      R"(},{"name":"last","type":"string"}]})");
}

inline std::vector<HostileAvro> AllHostileAvro(size_t size) {
  const auto array = [](const std::string& item) {
    return absl::StrCat(R"({"type":"array","items":)", item, "}");
  };
  const auto map = [](const std::string& item) {
    return absl::StrCat(R"({"type":"map","values":)", item, "}");
  };
  const auto items = [](size_t count, const std::string& each) {
    std::string bytes = Zigzag(static_cast<int64_t>(count));
    for (size_t i = 0; i < count; ++i) bytes += each;
    return bytes + Zigzag(0);
  };
  const std::string zero(1, '\0');
  const std::vector<std::string> places = {"/id", "/last", "/value/0/a", "/value/x/a", "/none"};
  std::vector<HostileAvro> all;
  const auto add = [&](const std::string& name, const std::string& types, const std::string& type,
                       const std::string& value) {
    all.push_back(
        {name, AvroAround(types, type), places, Zigzag(0) + AvroString("i") + value + AvroString("l")});
  };
  const std::string blocks = [&] {
    std::string bytes;
    for (size_t i = 0; i < size; i += 10) bytes += Zigzag(int64_t{1} << 62);
    return bytes + zero;
  }();
  add("an array of chains", AvroChain(500, R"("long")"), array(R"("C0")"), items(size, zero));
  add("an array of chains of nulls", AvroChain(500, R"("null")"), array(R"("C0")"), blocks);
  add("an array of nulls", R"("string")", array(R"("null")"), blocks);
  add("a map of chains", AvroChain(500, R"("null")"), map(R"("C0")"), items(size, zero));
  add("a map of one key", AvroChain(500, R"("null")"), map(R"("C0")"), items(size / 2, AvroString("x")));
  // Each of them is read, and takes the place of the one before it.
  add("a map of decimals of one key", R"("long")",
      map(R"({"type":"bytes","logicalType":"decimal","precision":308,"scale":308})"),
      items(size / 130, AvroString("x") + AvroString("\x7F" + std::string(126, '\xFF'))));
  all.back().places = {"/value/x"};
  add("an array of unions of chains", AvroChain(500, R"(["null","long"])"), array(R"("C0")"),
      items(size, zero));
  add("an array of chains of empty arrays", AvroChain(500, array(R"("long")")), array(R"("C0")"),
      items(size, zero));
  add("an array of fixed ones", AvroChain(500, R"({"type":"fixed","name":"F","size":1})"), array(R"("C0")"),
      items(size, zero));
  // Records of two, of which one is a record of two.
  std::string twos = R"({"type":"record","name":"T0","fields":[{"name":"a","type":"long"}]})";
  for (int i = 1; i < 400; ++i) {
    absl::StrAppend(&twos, R"(,{"type":"record","name":"T)", i, R"(","fields":[{"name":"a","type":"T)", i - 1,
                    R"("},{"name":"b","type":"boolean"}]})");
  }
  add("an array of records of two", twos, array(R"("T399")"), items(size / 400, std::string(400, '\0')));
  add("an array of empty arrays", R"("string")", array(array(R"("long")")), items(size, zero));
  add("an array of short blocks", R"("string")", array(R"("boolean")"), [&] {
    std::string bytes;
    for (size_t i = 0; i < size; i += 2) bytes += Zigzag(1) + zero;
    return bytes + zero;
  }());
  return all;
}

struct HostileProtobuf {
  std::string name;
  std::string schema;
  std::vector<std::string> places;
  std::string bytes;
};

inline std::vector<HostileProtobuf> AllHostileProtobuf(size_t size) {
  const auto repeat = [&](const std::string& each) {
    std::string bytes;
    while (bytes.size() < size) bytes += each;
    return bytes;
  };
  const std::string zero(1, '\0');
  std::string oneof = "syntax = \"proto3\"; message M { oneof o { string id = 1;";
  for (int i = 2; i < 15'000; ++i) absl::StrAppend(&oneof, "int32 f", i, "=", i, ";");
  oneof += "} }";
  const std::string plain = R"(syntax = "proto2"; message M {
    optional string id = 1; optional int64 n = 2; optional M m = 3; map<string, M> map = 4;
    repeated bool flags = 5 [packed = true]; repeated M ms = 6; optional float real = 7;
    optional group G = 8 { optional group H = 9 { optional group I = 10 { optional string id = 1; } } } })";
  const std::vector<std::string> places = {"/id",   "/n",        "/m/m/m/id", "/map/a/id",
                                           "/real", "/flags/99", "/ms/99/n",  "/none"};
  std::vector<HostileProtobuf> all;
  all.push_back({"a oneof of many", oneof, {"/id"}, repeat(VarintField(7, 1))});
  const auto add = [&](const std::string& name, const std::string& bytes) {
    all.push_back({name, plain, places, bytes});
  };
  add("unknown fields", repeat(VarintField(15, 0)));
  add("one number again and again", repeat(VarintField(2, 0)));
  add("one real number again and again", repeat(Tag(7, 5) + "\1\2\3\4"));
  add("empty messages", repeat(BytesField(3, "")));
  add("messages in messages", BytesField(3, BytesField(3, BytesField(3, repeat(VarintField(2, 0))))));
  add("entries of a map", repeat(BytesField(4, "")));
  add("an entry with many keys", BytesField(4, repeat(BytesField(1, "a"))));
  add("packed flags", BytesField(5, repeat("\1")));
  add("empty groups", repeat(Tag(12, 3) + Tag(12, 4)));
  add("a deep group", repeat([] {
        std::string deep;
        for (int i = 0; i < 100; ++i) deep += Tag(12, 3);
        for (int i = 0; i < 100; ++i) deep += Tag(12, 4);
        return deep;
      }()));
  all.push_back(
      {"groups around a place",
       plain,
       {"/g/h/i/id"},
       Tag(8, 3) + Tag(9, 3) + Tag(10, 3) + repeat(VarintField(15, 0)) + Tag(10, 4) + Tag(9, 4) + Tag(8, 4)});
  return all;
}

struct HostileJson {
  std::string name;
  std::string bytes;
};

inline std::vector<HostileJson> AllHostileJson(size_t size) {
  const auto repeat = [&](const std::string& before, const std::string& each, const std::string& last) {
    std::string text = before;
    while (text.size() < size) text += each;
    return text + last;
  };
  return {{"digits", repeat("[", "1,", "1]")},
          {"brackets", repeat("", "[", "") + repeat("", "]", "")},
          {"one name again and again", repeat("{", R"("id":1,)", R"("id":1})")},
          {"empty names", repeat("{", R"("":1,)", R"("":1})")},
          {"objects in a list", repeat(R"({"a":[)", "{},", "{}]}")},
          {"spaces", repeat("[", " ", "1]")},
          {"escapes", repeat("[\"", "\\n", "\"]")},
          {"escaped names", repeat("{", R"("\u0069d":1,)", R"("id":1})")},
          {"a long number", repeat("[", "1", "]")}};
}

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_HOSTILE_RECORDS_H_
