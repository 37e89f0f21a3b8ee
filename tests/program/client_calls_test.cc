// Which calls of librdkafka lethe makes: all are in the table that says how long each may take.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace lethe {
namespace {

namespace fs = std::filesystem;

using Names = std::set<std::string>;

const std::regex& Call() {
  static const std::regex call(R"(\b(rd_kafka_\w+)\s*\()");
  return call;
}

void AddCalls(const std::string& line, Names& calls) {
  if (!absl::StrContains(line, "rd_kafka_")) return;
  const std::string code = line.substr(0, line.find("//"));
  for (std::sregex_iterator it(code.begin(), code.end(), Call()), end; it != end; ++it)
    calls.insert((*it)[1]);
}

Names CallsOfLethe() {
  Names calls;
  for (const char* room : {"src", "connectors"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(LETHE_SOURCE_DIR) / room)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cc" && extension != ".h") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) AddCalls(line, calls);
    }
  }
  return calls;
}

// The first word of each line of the table, and those that must not be called.
struct Table {
  Names known;
  Names never;
};

Table ReadTable() {
  std::ifstream file(fs::path(LETHE_SOURCE_DIR) / "connectors/kafka/client/calls.txt");
  Table table;
  bool is_never = false;
  for (std::string line; std::getline(file, line);) {
    is_never = is_never || absl::StartsWith(line, "NEVER");
    if (absl::StartsWith(line, "rd_kafka_"))
      (is_never ? table.never : table.known).insert(line.substr(0, line.find(' ')));
  }
  return table;
}

Names Without(Names names, const Names& others) {
  for (const std::string& other : others) names.erase(other);
  return names;
}

TEST(ClientCalls, EachIsInTheTable) {
  const Table table = ReadTable();
  EXPECT_EQ(Without(CallsOfLethe(), table.known), Names())
      << "find out in librdkafka's sources how long the call may take, and add it to calls.txt";
  EXPECT_EQ(Without(table.known, CallsOfLethe()), Names()) << "is not called any more";
  EXPECT_GT(table.never.size(), 1u);
}

TEST(ClientCalls, AreFoundInCodeAlone) {
  Names calls;
  AddCalls("  return rd_kafka_poll(client, rd_kafka_outq_len (client));  // not rd_kafka_commit()", calls);
  AddCalls("// rd_kafka_flush(client, -1)", calls);
  AddCalls("  rd_kafka_resp_err_t code;", calls);
  EXPECT_EQ(calls, (Names{"rd_kafka_outq_len", "rd_kafka_poll"}));
}

}  // namespace
}  // namespace lethe
