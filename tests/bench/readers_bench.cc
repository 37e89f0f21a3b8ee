// What it costs to find an id in a record of each format, beside the generic reader of the format's library.
#include <avro.h>
#include <benchmark/benchmark.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/record/avro_schema.h"
#include "src/record/avro_walk.h"
#include "src/record/json_scanner.h"
#include "src/record/pointer.h"
#include "src/record/protobuf_schema.h"
#include "src/record/protobuf_walk.h"
#include "tests/support/encodings.h"
#include "tests/support/hostile_records.h"

namespace lethe {
namespace {

namespace pb = google::protobuf;
using test::AvroString;
using test::BytesField;
using test::Fixed;
using test::VarintField;
using test::Zigzag;

constexpr size_t kRecords = 1000;
// A text that comes early, and a number behind a list and a map.
const char* const kPlaces[] = {"/order/id", "/sequence"};
const char* const kNumbers[] = {"/1/1", "/5"};

struct Encoded {
  std::string json, avro, protobuf;
  std::string values[2];
};

Encoded Encode(uint64_t i) {
  const std::string id = absl::StrCat("order-", 7'000'000'000 + i * 7919);
  const std::string name = absl::StrCat("customer ", i % 97);
  const auto cents = static_cast<int64_t>(1000 + i % 5000);
  const int64_t sequence = 1'700'000'000'000 + static_cast<int64_t>(i);
  Encoded record;
  record.values[0] = id;
  record.values[1] = absl::StrCat(sequence);
  absl::StrAppend(&record.json, R"({"order":{"id":")", id, R"(","customer":")", name, R"(","total":)", cents,
                  R"(,"weight":1.25,"paid":true},"items":[)");
  std::string order = BytesField(1, id) + BytesField(2, name) + VarintField(3, static_cast<uint64_t>(cents)) +
                      test::Tag(4, 1) + Fixed(1.25) + VarintField(5, 1);
  record.protobuf = BytesField(1, order);
  record.avro = AvroString(id) + AvroString(name) + Zigzag(cents) + Fixed(1.25) + "\1" + Zigzag(3);
  for (int64_t item = 0; item < 3; ++item) {
    const std::string sku = absl::StrCat("sku-", 100 * i + static_cast<uint64_t>(item));
    absl::StrAppend(&record.json, item == 0 ? "" : ",", R"({"sku":")", sku, R"(","count":)", item, "}");
    record.protobuf += BytesField(2, BytesField(1, sku) + VarintField(2, static_cast<uint64_t>(item)));
    record.avro += AvroString(sku) + Zigzag(item);
  }
  record.avro += Zigzag(0) + Zigzag(2);
  record.json += R"(],"tags":{)";
  for (const auto& [key, value] : {std::pair("channel", "web"), std::pair("region", "eu-west")}) {
    absl::StrAppend(&record.json, record.json.back() == '{' ? "" : ",", "\"", key, "\":\"", value, "\"");
    record.protobuf += BytesField(3, BytesField(1, key) + BytesField(2, value));
    record.avro += AvroString(key) + AvroString(value);
  }
  absl::StrAppend(&record.json, R"(},"note":null,"sequence":)", sequence, "}");
  record.protobuf += VarintField(5, static_cast<uint64_t>(sequence));
  record.avro += Zigzag(0) + Zigzag(0) + Zigzag(sequence);
  return record;
}

const std::vector<Encoded>& Records() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<Encoded>;
    for (size_t i = 0; i < kRecords; ++i) all->push_back(Encode(i));
    return all;
  }();
  return *kAll;
}

constexpr char kAvro[] = R"({"type":"record","name":"Event","fields":[
  {"name":"order","type":{"type":"record","name":"Order","fields":[
    {"name":"id","type":"string"},{"name":"customer","type":"string"},{"name":"total","type":"long"},
    {"name":"weight","type":"double"},{"name":"paid","type":"boolean"}]}},
  {"name":"items","type":{"type":"array","items":{"type":"record","name":"Item","fields":[
    {"name":"sku","type":"string"},{"name":"count","type":"int"}]}}},
  {"name":"tags","type":{"type":"map","values":"string"}},
  {"name":"note","type":["null","string"]},{"name":"sequence","type":"long"}]})";
constexpr char kProtobuf[] = R"(syntax = "proto3"; message Event {
  message Order { string id = 1; string customer = 2; int64 total = 3; double weight = 4; bool paid = 5; }
  message Item { string sku = 1; int32 count = 2; }
  Order order = 1; repeated Item items = 2; map<string, string> tags = 3; optional string note = 4;
  int64 sequence = 5; })";

[[noreturn]] void Die(absl::string_view what) {
  std::fprintf(stderr, "%s\n", std::string(what).c_str());
  std::exit(1);
}

// `read(record)` gives the value at the place.
template <class Read>
void Measure(benchmark::State& state, std::string Encoded::*part, Read read) {
  const auto place = static_cast<size_t>(state.range(0));
  size_t bytes = 0;
  for (const Encoded& record : Records()) {
    bytes += (record.*part).size();
    if (read(record.*part) != record.values[place]) Die(absl::StrCat("it reads a wrong ", kPlaces[place]));
  }
  size_t i = 0;
  for (auto step : state) {
    benchmark::DoNotOptimize(read(Records()[i].*part));
    if (++i == kRecords) i = 0;
  }
  state.SetLabel(kPlaces[place]);
  state.counters["record_bytes"] = static_cast<double>(bytes) / kRecords;
}

void Json(benchmark::State& state) {
  JsonScanner scanner({kPlaces[state.range(0)]});
  Measure(state, &Encoded::json, [&](const std::string& bytes) {
    return scanner.Scan(bytes) ? scanner.value(0).text : absl::string_view();
  });
}

void Avro(benchmark::State& state) {
  const auto program =
      AvroProgram::Compile({Schema::Type::kAvro, kAvro, {}}, {kPlaces[state.range(0)]}).value();
  AvroWalk walk(1);
  Measure(state, &Encoded::avro, [&](const std::string& bytes) {
    return walk.Walk(program, bytes) ? walk.value(0).text : absl::string_view();
  });
}

void MeasureProtobuf(benchmark::State& state, ProtobufWalk walk) {
  Measure(state, &Encoded::protobuf, [&](const std::string& bytes) {
    return walk.Walk(bytes) ? walk.value(0).text : absl::string_view();
  });
}

void ProtobufByNames(benchmark::State& state) {
  const auto schema = ProtobufSchema::Compile({Schema::Type::kProtobuf, kProtobuf, {}}).value();
  MeasureProtobuf(state, ProtobufWalk(schema.Places({}, {kPlaces[state.range(0)]}).value()));
}

void ProtobufByNumbers(benchmark::State& state) {
  ProtobufPlace place;
  for (const PointerStep& step : StepsOf(kNumbers[state.range(0)])) {
    place.path.push_back(static_cast<uint32_t>(step.index));
  }
  MeasureProtobuf(state, ProtobufWalk({place}));
}

// The whole value, in an object that is used again.
void LibavroGeneric(benchmark::State& state) {
  avro_schema_t schema = nullptr;
  if (avro_schema_from_json_length(kAvro, sizeof kAvro - 1, &schema) != 0) Die(avro_strerror());
  avro_value_iface_t* const type = avro_generic_class_from_schema(schema);
  avro_value_t value;
  avro_generic_value_new(type, &value);
  avro_reader_t reader = avro_reader_memory("", 0);
  std::string number;
  Measure(state, &Encoded::avro, [&](const std::string& bytes) -> absl::string_view {
    avro_value_reset(&value);
    avro_reader_memory_set_source(reader, bytes.data(), static_cast<int64_t>(bytes.size()));
    if (avro_value_read(reader, &value) != 0) return {};
    avro_value_t field;
    if (state.range(0) != 0) {
      int64_t sequence = 0;
      avro_value_get_by_name(&value, "sequence", &field, nullptr);
      avro_value_get_long(&field, &sequence);
      return number = absl::StrCat(sequence);
    }
    avro_value_t order;
    const char* text = nullptr;
    size_t size = 0;
    avro_value_get_by_name(&value, "order", &order, nullptr);
    avro_value_get_by_name(&order, "id", &field, nullptr);
    avro_value_get_string(&field, &text, &size);
    return {text, size - 1};
  });
  avro_reader_free(reader);
  avro_value_decref(&value);
  avro_value_iface_decref(type);
  avro_schema_decref(schema);
}

void LibprotobufDynamic(benchmark::State& state) {
  pb::io::ArrayInputStream stream(kProtobuf, sizeof kProtobuf - 1);
  pb::io::Tokenizer tokenizer(&stream, nullptr);
  pb::FileDescriptorProto file;
  if (!pb::compiler::Parser().Parse(&tokenizer, &file)) Die("it is no schema");
  file.set_name("event.proto");
  pb::DescriptorPool pool;
  const pb::Descriptor* const event = pool.BuildFile(file)->message_type(0);
  const pb::FieldDescriptor* const order = event->FindFieldByName("order");
  const pb::FieldDescriptor* const id = order->message_type()->FindFieldByName("id");
  const pb::FieldDescriptor* const sequence = event->FindFieldByName("sequence");
  pb::DynamicMessageFactory factory;
  const std::unique_ptr<pb::Message> message(factory.GetPrototype(event)->New());
  std::string text;
  Measure(state, &Encoded::protobuf, [&](const std::string& bytes) -> absl::string_view {
    if (!message->ParseFromString(bytes)) return {};
    const pb::Reflection& read = *message->GetReflection();
    if (state.range(0) != 0) return text = absl::StrCat(read.GetInt64(*message, sequence));
    const pb::Message& inner = read.GetMessage(*message, order);
    return inner.GetReflection()->GetStringReference(inner, id, &text);
  });
}

// Of the records that make a reader work hardest: ns a byte of the worst place.
template <class Cases, class Walks>
void RegisterHostile(const char* format, const Cases& cases, const Walks& walks) {
  for (const auto& each : cases) {
    for (auto& [place, walk] : walks(each)) {
      benchmark::RegisterBenchmark(absl::StrCat("Hostile", format, "/", each.name, place).c_str(),
                                   [walk = walk, bytes = each.bytes](benchmark::State& state) {
                                     for (auto step : state) {
                                       if (!walk(bytes)) Die("it is malformed");
                                     }
                                     state.counters["s_a_byte"] =
                                         benchmark::Counter(static_cast<double>(bytes.size()),
                                                            benchmark::Counter::kIsIterationInvariantRate |
                                                                benchmark::Counter::kInvert);
                                   });
    }
  }
}

using Walk = std::function<bool(const std::string&)>;
using Walks = std::vector<std::pair<std::string, Walk>>;

const bool kHostileAreRegistered = [] {
  constexpr size_t kBytes = 1'000'000;
  RegisterHostile("Avro", test::AllHostileAvro(kBytes), [](const test::HostileAvro& each) {
    Walks walks;
    for (const std::string& place : each.places) {
      auto program = std::make_shared<const AvroProgram>(
          AvroProgram::Compile({Schema::Type::kAvro, each.schema, {}}, {place}).value());
      auto walk = std::make_shared<AvroWalk>(1);
      walks.emplace_back(place, [=](const std::string& bytes) { return walk->Walk(*program, bytes); });
    }
    return walks;
  });
  RegisterHostile("Protobuf", test::AllHostileProtobuf(kBytes), [](const test::HostileProtobuf& each) {
    const auto schema = ProtobufSchema::Compile({Schema::Type::kProtobuf, each.schema, {}}).value();
    Walks walks;
    for (const std::string& place : each.places) {
      auto walk = std::make_shared<ProtobufWalk>(schema.Places({}, {place}).value());
      walks.emplace_back(place, [=](const std::string& bytes) { return walk->Walk(bytes); });
    }
    return walks;
  });
  RegisterHostile("Json", test::AllHostileJson(kBytes), [](const test::HostileJson& /*each*/) {
    Walks walks;
    for (const char* const place : {"/id", "/0"}) {
      auto scanner = std::make_shared<JsonScanner>(std::vector<std::string>{place});
      walks.emplace_back(place, [=](const std::string& bytes) { return scanner->Scan(bytes); });
    }
    return walks;
  });
  return true;
}();

BENCHMARK(Json)->DenseRange(0, 1);
BENCHMARK(Avro)->DenseRange(0, 1);
BENCHMARK(LibavroGeneric)->DenseRange(0, 1);
BENCHMARK(ProtobufByNumbers)->DenseRange(0, 1);
BENCHMARK(ProtobufByNames)->DenseRange(0, 1);
BENCHMARK(LibprotobufDynamic)->DenseRange(0, 1);

}  // namespace
}  // namespace lethe
