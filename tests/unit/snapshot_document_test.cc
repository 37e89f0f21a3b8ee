// The page that documents a snapshot's format (src/snapshot/README.md) is held against files: what reads them
// here knows the page's fields, and nothing of the code that writes them.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "lethe/snapshot.h"
#include "lethe/stage.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Field {
  std::string name;
  std::string type;
};

// The fields in the fenced blocks, by heading: name, type and meaning, two spaces or more apart.
std::map<std::string, std::vector<Field>> Tables() {
  std::map<std::string, std::vector<Field>> tables;
  std::string heading;
  bool is_block = false;
  for (const absl::string_view line :
       absl::StrSplit(Contents(LETHE_SOURCE_DIR "/src/snapshot/README.md"), '\n')) {
    if (absl::StartsWith(line, "## ")) heading = std::string(line.substr(3));
    if (absl::StartsWith(line, "```")) {
      is_block = !is_block;
    } else if (is_block) {
      const std::vector<absl::string_view> cells = absl::StrSplit(line, "  ", absl::SkipEmpty());
      if (cells.size() < 2) {
        ADD_FAILURE() << line;
        continue;
      }
      tables[heading].push_back({std::string(absl::StripAsciiWhitespace(cells[0])),
                                 std::string(absl::StripAsciiWhitespace(cells[1]))});
    }
  }
  return tables;
}

// Takes the fields of a piece as their types say.
class Piece {
 public:
  explicit Piece(std::string bytes) : bytes_(std::move(bytes)) {}

  void Take(const std::vector<Field>& fields) {
    for (const Field& field : fields) {
      name_ = field.name;
      absl::string_view type = field.type;
      TakeOne(&type);
      EXPECT_EQ(type, "") << "is left of the type of " << name_;
    }
  }

  int64_t number(const std::string& name) const {
    const auto found = numbers_.find(name);
    EXPECT_NE(found, numbers_.end()) << name;
    return found == numbers_.end() ? 0 : found->second;
  }
  std::string text(const std::string& name) const {
    const auto found = texts_.find(name);
    return found == texts_.end() ? "no " + name : found->second;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  void TakeOne(absl::string_view* type) {
    int64_t times = 0;
    if (absl::ConsumePrefix(type, "list of ")) {
      Repeat(Number(), type);
    } else if (TakeTimes(type, &times)) {
      Repeat(times, type);
    } else if (absl::ConsumePrefix(type, "(")) {
      do {
        TakeOne(type);
      } while (absl::ConsumePrefix(type, ", "));
      EXPECT_TRUE(absl::ConsumePrefix(type, ")")) << *type << " in the type of " << name_;
    } else if (absl::ConsumePrefix(type, "text")) {
      const auto size = static_cast<size_t>(Number());
      texts_[name_] = Bytes(size);
      Bytes((8 - size % 8) % 8);
    } else {
      EXPECT_TRUE(absl::ConsumePrefix(type, "int") || absl::ConsumePrefix(type, "time") ||
                  absl::ConsumePrefix(type, "float") || absl::ConsumePrefix(type, "word"))
          << *type << ", the type of " << name_;
      numbers_[name_] = Number();
    }
  }

  // `n times `, `name times `, `name + n times `, where the name is not within a parenthesis further on.
  bool TakeTimes(absl::string_view* type, int64_t* times) const {
    const size_t at = type->find(" times ");
    if (at == type->npos || type->substr(0, at).find('(') != type->npos) return false;
    *times = 0;
    for (const absl::string_view part : absl::StrSplit(type->substr(0, at), " + ")) {
      int64_t value = 0;
      *times += absl::SimpleAtoi(part, &value) ? value : number(std::string(part));
    }
    type->remove_prefix(at + strlen(" times "));
    return true;
  }

  void Repeat(int64_t times, absl::string_view* type) {
    const absl::string_view each = *type;
    ASSERT_LE(times, 1'000'000) << name_;
    for (int64_t i = 0; i < times; ++i) {
      *type = each;
      TakeOne(type);
    }
    if (times > 0) return;
    // To know where the type ends, it is read from zeros.
    Piece zeros(std::string(4096, '\0'));
    zeros.numbers_ = numbers_;
    zeros.TakeOne(type);
  }

  int64_t Number() {
    const std::string eight = Bytes(8);
    int64_t value = 0;
    std::memcpy(&value, eight.data(), std::min<size_t>(8, eight.size()));
    return value;
  }
  std::string Bytes(size_t count) {
    EXPECT_LE(at_ + count, bytes_.size()) << "the piece ends within " << name_;
    const std::string bytes = bytes_.substr(std::min(at_, bytes_.size()), count);
    at_ += bytes.size();
    return bytes;
  }

  const std::string bytes_;
  size_t at_ = 0;
  std::string name_;
  std::map<std::string, int64_t> numbers_;
  std::map<std::string, std::string> texts_;
};

class File {
 public:
  explicit File(std::string bytes) : bytes_(std::move(bytes)) {}

  std::string Take(int64_t size) {
    const auto bytes = static_cast<size_t>(size);
    EXPECT_LE(at_ + bytes + 8, bytes_.size());
    if (at_ + bytes + 8 > bytes_.size()) return std::string(bytes, '\0');
    const std::string content = bytes_.substr(at_, bytes);
    uint64_t checksum = 0;
    std::memcpy(&checksum, bytes_.data() + at_ + bytes, 8);
    EXPECT_EQ(checksum, XXH3_64bits_withSeed(content.data(), content.size(), at_))
        << "of the piece at " << at_;
    at_ += bytes + 8;
    return content;
  }
  // Of so many bytes in all, in pieces of `most`.
  void TakeAll(int64_t size, int64_t most) {
    for (; size > 0; size -= most) Take(std::min(size, most));
  }
  int64_t at() const { return static_cast<int64_t>(at_); }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  const std::string bytes_;
  size_t at_ = 0;
};

class SnapshotDocument : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Shards, SnapshotDocument, testing::Values(1, 4));

// Reads what was saved of 40,000 events, of which each fourth is a copy.
TEST_P(SnapshotDocument, ReadsAFileToItsEnd) {
  const int shards = GetParam();
  const auto stage = *DedupStage::Create({.horizon = absl::Seconds(100),
                                          .target_fpp = 1e-2,
                                          .memory_limit_bytes = 16 << 20,
                                          .shards = shards,
                                          .audit_share = 0.25,
                                          .hash_seed = 11});
  const auto partition = *stage->Open("orders-3");
  constexpr int64_t kEvents = 40'000;
  constexpr int64_t kStartMs = 1'700'000'000'000;
  for (int64_t i = 0; i < kEvents; ++i) {
    EXPECT_OK(
        partition->Judge(absl::StrCat("id", i % 4 == 3 ? i - 1 : i), absl::FromUnixMillis(kStartMs + i)));
  }
  std::string path = std::filesystem::temp_directory_path() / "lethe-document-XXXXXX";
  path = mkdtemp(path.data());
  ASSERT_OK(partition->Save(path + "/p.snapshot", {"orders", 3, "fingerprint"},
                            {.offset = 40'000, .end_offset = 40'001, .record_before = 5, .notes = "note"}));
  File file(Contents(path + "/p.snapshot"));
  std::filesystem::remove_all(path);

  const auto tables = Tables();
  const std::string preamble = file.Take(16);
  EXPECT_EQ(preamble.substr(0, 8), "LETHESNP");
  uint32_t numbers[2];
  std::memcpy(numbers, preamble.data() + 8, 8);
  Piece header(file.Take(numbers[1]));
  header.Take(tables.at("Header"));
  EXPECT_TRUE(header.at_end());
  EXPECT_EQ(header.text("topic"), "orders");
  EXPECT_EQ(header.text("engine"), "compact");
  EXPECT_EQ(header.text("notes"), "note");
  EXPECT_EQ(header.number("partition"), 3);
  EXPECT_EQ(header.number("end_offset"), 40'001);
  EXPECT_EQ(header.number("horizon"), 100'000'000'000);
  EXPECT_NE(header.number("key_check"), 0);
  EXPECT_EQ(header.number("renew"), 0);
  ASSERT_EQ(header.number("shards"), shards);

  int64_t events = 0;
  for (int64_t i = 0; i < shards; ++i) {
    Piece shard(file.Take(152));
    shard.Take(tables.at("Shard"));
    EXPECT_TRUE(shard.at_end());
    EXPECT_EQ(shard.number("shard"), i);
    events += shard.number("unique") + shard.number("duplicates");
    Piece state(file.Take(shard.number("state_bytes")));
    state.Take(tables.at("Compact"));
    EXPECT_TRUE(state.at_end());
    EXPECT_GE(state.number("now"), kStartMs);
    EXPECT_EQ(shard.number("memory_bytes"), state.number("lines") * 64);
    file.TakeAll(shard.number("memory_bytes"), 1 << 20);
    int64_t audited = shard.number("audited_places");
    int64_t timed = 0;
    for (; audited > 0; audited -= 4096) {
      const int64_t places = std::min<int64_t>(audited, 4096);
      Piece ids(file.Take(40 * places));
      for (int64_t place = 0; place < places; ++place) {
        ids.Take(tables.at("Audited place"));
        timed += ids.number("seen") >= kStartMs ? 1 : 0;
      }
      EXPECT_TRUE(ids.at_end());
    }
    EXPECT_GT(timed, 1000);
  }
  EXPECT_EQ(events, kEvents);
  const std::string last = file.Take(16);
  EXPECT_EQ(last.substr(0, 8), "LETHEEND");
  int64_t told = 0;
  std::memcpy(&told, last.data() + 8, 8);
  EXPECT_EQ(told, file.at());
  EXPECT_TRUE(file.at_end());
}

}  // namespace
}  // namespace lethe
