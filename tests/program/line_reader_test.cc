// Lines out of files and pipes, plain and compressed, however the bytes arrive.
#include "connectors/lines/line_reader.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace lethe::lines {
namespace {

using testing::HasSubstr;

std::string Gzip(const std::string& text, int flush = Z_FINISH) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, flush);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

// A pipe whose writing end is fed by the test.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  ~Pipe() {
    close(ends_[0]);
    CloseWriter();
  }
  int reader() const { return ends_[0]; }
  void Write(const std::string& bytes) const {
    EXPECT_EQ(write(ends_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void CloseWriter() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

// A file with these bytes, which is gone when it is closed.
int TemporaryFile(const std::string& bytes) {
  std::string path = ::testing::TempDir() + "lethe_lines_XXXXXX";
  const int fd = mkstemp(path.data());
  EXPECT_GE(fd, 0);
  unlink(path.c_str());
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(lseek(fd, 0, SEEK_SET), 0);
  return fd;
}

struct Result {
  std::vector<std::string> lines;
  absl::Status status;
};

Result ReadAll(LineReader* reader) {
  Result result;
  while (true) {
    const auto lines = reader->Read();
    if (!lines.ok()) {
      result.status = lines.status();
      return result;
    }
    if (lines->empty()) return result;
    for (absl::string_view line : *lines) result.lines.emplace_back(line);
  }
}

Result ReadFile(const std::string& bytes, size_t max_line_bytes = LineReader::kDefaultMaxLineBytes) {
  const int fd = TemporaryFile(bytes);
  LineReader reader(fd, "the file", max_line_bytes);
  Result result = ReadAll(&reader);
  EXPECT_EQ(reader.Read().status(), result.status);  // the end stays the end
  close(fd);
  return result;
}

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

TEST(LineReaderTest, LinesKeepTheirBytes) {
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("a"), std::string("a\nb\n"), std::string("a\r\nb"),
        std::string("\n\n x \n"), std::string("a\0b\nc\0", 6), std::string("\x1f"), std::string("\x1f\n"),
        std::string("\x1fx")}) {
    for (const std::string& bytes : {text, Gzip(text)}) {
      const Result result = ReadFile(bytes);
      EXPECT_OK(result.status);
      EXPECT_EQ(result.lines, Split(text));
    }
  }
}

TEST(LineReaderTest, LimitIsExact) {
  const std::string line(100, 'x');
  for (const char* end : {"\n", ""}) {
    EXPECT_EQ(ReadFile("a\n" + line + end, 100).lines.size(), 2);
    const Result result = ReadFile("a\n" + line + "y" + end, 100);
    EXPECT_EQ(result.lines, Split("a\n"));
    EXPECT_THAT(result.status,
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("line 2 is longer than 100 bytes")));
  }
}

TEST(LineReaderTest, LongLines) {
  const std::string text = std::string(5'000'000, 'x') + "\n" + std::string(3'000'000, 'y') + "\nz";
  EXPECT_EQ(ReadFile(text).lines, Split(text));
  EXPECT_EQ(ReadFile(Gzip(text)).lines, Split(text));  // five thousand to one
  EXPECT_THAT(ReadFile(text, 4'000'000).status, StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(LineReaderTest, GzipMembersAreOneText) {
  EXPECT_EQ(ReadFile(Gzip("a\nb") + Gzip("c\n") + Gzip("") + Gzip("d\n")).lines, Split("a\nbc\nd\n"));
  EXPECT_EQ(ReadFile(Gzip("a\n") + std::string(10, '\0')).lines, Split("a\n"));
  for (const std::string& rest : {std::string("x"), std::string(3, '\0') + "x", std::string("\x1f\x8bx")}) {
    const Result result = ReadFile(Gzip("a\n") + rest);
    EXPECT_EQ(result.lines, Split("a\n"));
    EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST(LineReaderTest, CutOffGzipGivesWholeLinesOnly) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "line " + std::to_string(i * 7919) + "\n";
  const std::string whole = Gzip(text);
  const std::vector<std::string> lines = Split(text);
  for (const size_t size : {size_t{10}, whole.size() / 2, whole.size() - 1}) {
    const Result result = ReadFile(whole.substr(0, size));
    EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("cut off")));
    ASSERT_LE(result.lines.size(), lines.size());
    EXPECT_TRUE(std::equal(result.lines.begin(), result.lines.end(), lines.begin()));
  }
  std::string damaged = whole;
  damaged[whole.size() - 6] = static_cast<char>(damaged[whole.size() - 6] ^ 1);  // the checksum
  EXPECT_THAT(ReadFile(damaged).status.message(), HasSubstr("damaged"));
}

TEST(LineReaderTest, SaysWhatReadingSaid) {
  LineReader reader(-1, "the pipe");
  const absl::Status status = reader.Read().status();
  EXPECT_THAT(status.message(), HasSubstr("reading the pipe"));
}

// What has come is given out before more is waited for: line by line if that is how it comes.
TEST(LineReaderTest, DoesNotWaitForMore) {
  Pipe plain;
  LineReader reader(plain.reader(), "the pipe");
  plain.Write("a\nb");
  EXPECT_EQ(reader.Read()->size(), 1);
  plain.Write("c\nd\n");
  EXPECT_EQ(reader.Read()->at(0), "bc\n");
  plain.Write("e");
  plain.CloseWriter();
  EXPECT_EQ(reader.Read()->at(0), "e");
  EXPECT_TRUE(reader.Read()->empty());
}

// The same of compressed input that was flushed, also where it inflates to more than the buffer holds.
TEST(LineReaderTest, DoesNotWaitForMoreCompressed) {
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += "xxxxxxx\n";
  Pipe pipe;
  const std::string bytes = Gzip(text, Z_SYNC_FLUSH);
  ASSERT_LT(bytes.size(), 60'000);
  pipe.Write(bytes);
  LineReader reader(pipe.reader(), "the pipe");
  size_t count = 0;
  while (count < 400'000) count += reader.Read()->size();
  EXPECT_EQ(count, 400'000);
}

TEST(LineReaderTest, WaitsOnADescriptorThatDoesNotBlock) {
  Pipe pipe;
  ASSERT_EQ(fcntl(pipe.reader(), F_SETFL, O_NONBLOCK), 0);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + "\n";
  std::thread feeder([&] {
    for (size_t at = 0; at < text.size(); at += 7) pipe.Write(text.substr(at, 7));
    pipe.CloseWriter();
  });
  LineReader reader(pipe.reader(), "the pipe");
  EXPECT_EQ(ReadAll(&reader).lines, Split(text));
  feeder.join();
}

TEST(LineReaderTest, RandomTextsInRandomPieces) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&random](uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 60; ++round) {
    std::string text;
    const uint64_t longest = uint64_t{1} << below(21);
    while (text.size() < 3 * longest + 100) {
      text.append(below(longest), static_cast<char>('a' + below(26)));
      if (below(20) != 0) text += '\n';
    }
    std::string bytes = text;
    if (round % 2 == 1) {
      const size_t half = below(text.size());
      bytes = Gzip(text.substr(0, half)) + Gzip(text.substr(half));
    }
    Pipe pipe;
    std::vector<size_t> pieces;
    for (size_t sum = 0; sum < bytes.size(); sum += pieces.back())
      pieces.push_back(1 + below(bytes.size() / 4 + 10));
    std::thread feeder([&] {
      size_t at = 0;
      for (const size_t piece : pieces) {
        if (at < bytes.size()) pipe.Write(bytes.substr(at, piece));
        at += piece;
      }
      pipe.CloseWriter();
    });
    LineReader reader(pipe.reader(), "the pipe");
    const Result result = ReadAll(&reader);
    feeder.join();
    ASSERT_OK(result.status);
    ASSERT_EQ(result.lines, Split(text));
  }
}

}  // namespace
}  // namespace lethe::lines
