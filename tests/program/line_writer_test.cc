#include "connectors/lines/line_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace lethe::lines {
namespace {

using testing::HasSubstr;

std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(fd, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

class LineWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(signal(SIGPIPE, SIG_IGN), SIG_ERR);
    ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0);
  }
  void TearDown() override {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  void Close(int which) {
    close(ends_[which]);
    ends_[which] = -1;
  }
  int ends_[2] = {-1, -1};
};

TEST_F(LineWriterTest, WritesPiecesInOrder) {
  LineWriter writer(ends_[1], "the pipe");
  const std::string text = "one\ntwo\nthree\n";
  writer.Append(absl::string_view(text).substr(0, 4));
  writer.Append(absl::string_view(text).substr(4, 4));
  writer.Append("");
  writer.Append("tag");
  writer.Append(absl::string_view(text).substr(8));
  EXPECT_OK(writer.Flush());
  EXPECT_OK(writer.Flush());
  writer.Append("end");
  EXPECT_OK(writer.Flush());
  Close(1);
  EXPECT_EQ(ReadToEnd(ends_[0]), "one\ntwo\ntagthree\nend");
}

// More pieces than one call takes, more bytes than the pipe holds, and a descriptor that does not block.
TEST_F(LineWriterTest, WritesAllOfMuch) {
  ASSERT_EQ(fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
  std::string source;
  for (int i = 0; i < 200'000; ++i) source += "line " + std::to_string(i) + "\n";
  std::string expected;
  LineWriter writer(ends_[1], "the pipe");
  for (size_t at = 0; at + 10 < source.size(); at += 10) {
    const absl::string_view piece = absl::string_view(source).substr(at, 3 + at / 10 % 8);
    writer.Append(piece);
    expected.append(piece.data(), piece.size());
  }
  std::string received;
  std::thread reader([&] { received = ReadToEnd(ends_[0]); });
  EXPECT_OK(writer.Flush());
  Close(1);
  reader.join();
  EXPECT_EQ(received, expected);
}

TEST_F(LineWriterTest, SaysThatNobodyReads) {
  Close(0);
  LineWriter writer(ends_[1], "standard output");
  writer.Append("x");
  EXPECT_THAT(writer.Flush(), StatusIs(absl::StatusCode::kCancelled));
  writer.Append("y");
  EXPECT_THAT(writer.Flush(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(LineWriterTest, SaysThatTheDeviceIsFull) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  LineWriter writer(full, "standard output");
  writer.Append("x");
  const absl::Status status = writer.Flush();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("writing standard output: no space left")));
  close(full);
}

TEST_F(LineWriterTest, SaysWhatWritingSaid) {
  LineWriter writer(ends_[0], "standard output");  // the end that is for reading
  writer.Append("x");
  EXPECT_THAT(writer.Flush().message(), HasSubstr("writing standard output"));
}

}  // namespace
}  // namespace lethe::lines
