#include "connectors/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "connectors/http/responses.h"
#include "tests/support/status_matchers.h"

namespace lethe::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using std::chrono::steady_clock;

HttpRoutes Hello() {
  return {{"/hello",
           [](const HttpQuery&) {
             return HttpResponse{200, "text/plain; charset=utf-8", "hello\n"};
           }},
          {"/ready",
           [](const HttpQuery&) {
             return HttpResponse{503, "application/json", "{\"ready\":false}"};
           }},
          {"/throws", [](const HttpQuery&) -> HttpResponse { throw std::runtime_error("a secret"); }}};
}

std::unique_ptr<HttpServer> StartOn(const std::string& address, HttpRoutes routes) {
  absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start(address, std::move(routes));
  EXPECT_OK(server);
  return server.ok() ? *std::move(server) : nullptr;
}

// A connection to speak anything over.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { close(socket_); }
  bool is_connected() const { return is_connected_; }
  bool Send(absl::string_view data) {
    while (!data.empty()) {
      const ssize_t sent = send(socket_, data.data(), data.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      data.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void EndRequest() { shutdown(socket_, SHUT_WR); }
  // All until the server closes the connection.
  std::string Receive() {
    std::string all;
    char buffer[4096];
    for (ssize_t size = 0; (size = recv(socket_, buffer, sizeof(buffer), 0)) > 0;) {
      all.append(buffer, static_cast<size_t>(size));
    }
    return all;
  }
  std::string Ask(absl::string_view request) { return Send(request) ? Receive() : ""; }

 private:
  const int socket_;
  bool is_connected_ = false;
};

TEST(HttpAddress, TakesHostAndPort) {
  EXPECT_EQ(HttpAddress::Parse("127.0.0.1:9464")->host, "127.0.0.1");
  EXPECT_EQ(HttpAddress::Parse("127.0.0.1:9464")->port, 9464);
  EXPECT_EQ(HttpAddress::Parse("localhost:0")->port, 0);
  EXPECT_EQ(HttpAddress::Parse("[::1]:65535")->host, "::1");
  EXPECT_EQ(HttpAddress::Parse("[::1]:65535")->port, 65535);
  for (const std::string text : {"", ":", ":1", "a", "a:", "a:x", "a:-1", "a:65536", "::1:80", "[]:80",
                                 "[::1]", "[::1:80", "a:b:80", "[", "]:1"}) {
    EXPECT_FALSE(HttpAddress::Parse(text).ok()) << text;
  }
}

TEST(HttpServer, AnswersOnAFreePort) {
  const auto server = StartOn("127.0.0.1:0", Hello());
  ASSERT_GT(server->port(), 0);
  httplib::Client client("127.0.0.1", server->port());
  const httplib::Result hello = client.Get("/hello");
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->status, 200);
  EXPECT_EQ(hello->body, "hello\n");
  EXPECT_EQ(hello->get_header_value("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(client.Get("/hello?a=b")->body, "hello\n");
  const httplib::Result ready = client.Get("/ready");
  EXPECT_EQ(ready->status, 503);
  EXPECT_EQ(ready->get_header_value("Content-Type"), "application/json");
}

TEST(HttpServer, AnswersOnIpv6) {
  const absl::StatusOr<std::unique_ptr<HttpServer>> server = HttpServer::Start("[::1]:0", Hello());
  if (!server.ok()) {
    // A host without IPv6 says so clearly; there is nothing else to see on it.
    EXPECT_THAT(server.status().message(), HasSubstr("http: [::1]:0: "));
    return;
  }
  httplib::Client client("::1", (*server)->port());
  EXPECT_EQ(client.Get("/hello")->body, "hello\n");
}

TEST(HttpServer, AnswersOnlyWhatIsThereAndOnlyGet) {
  const auto server = StartOn("127.0.0.1:0", Hello());
  httplib::Client client("127.0.0.1", server->port());
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Get("/hello/")->status, 404);
  EXPECT_EQ(client.Get("/../hello")->status, 404);
  EXPECT_EQ(client.Head("/hello")->status, 405);
  EXPECT_EQ(client.Post("/hello", "body", "text/plain")->status, 405);
  EXPECT_EQ(client.Put("/hello", "body", "text/plain")->status, 405);
  EXPECT_EQ(client.Delete("/hello")->status, 405);
  EXPECT_EQ(client.Options("/hello")->status, 405);
  EXPECT_EQ(client.Post("/hello", "body", "text/plain")->get_header_value("Allow"), "GET");
}

TEST(HttpServer, ARouteThatThrowsTellsNothing) {
  const auto server = StartOn("127.0.0.1:0", Hello());
  const std::string answer = RawClient(server->port()).Ask("GET /throws HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(answer, Not(HasSubstr("secret")));
}

TEST(HttpServer, BadAddressesAndTakenPortsAreClear) {
  EXPECT_EQ(HttpServer::Start("nonsense", {}).status().message(),
            "http: \"nonsense\" is not valid: expected HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464, or "
            "0.0.0.0:9464 "
            "for all interfaces");
  // 192.0.2.0/24 is nobody's (RFC 5737).
  EXPECT_EQ(HttpServer::Start("192.0.2.1:0", {}).status(),
            absl::InvalidArgumentError("http: 192.0.2.1:0: this host does not have that address"));
  const auto server = StartOn("127.0.0.1:0", Hello());
  const std::string address = absl::StrCat("127.0.0.1:", server->port());
  EXPECT_EQ(HttpServer::Start(address, {}).status(),
            absl::AlreadyExistsError(absl::StrCat("http: ", address,
                                                  ": another program listens there already; choose "
                                                  "another port, or 0 for any free one")));
}

TEST(HttpServer, APortIsFreeOnceItsServerIsGone) {
  auto server = StartOn("127.0.0.1:0", Hello());
  const std::string address = absl::StrCat("127.0.0.1:", server->port());
  RawClient(server->port()).Ask("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  server.reset();
  server = StartOn(address, Hello());
  EXPECT_EQ(httplib::Client("127.0.0.1", server->port()).Get("/hello")->body, "hello\n");
}

TEST(HttpServer, RefusesALargeHead) {
  const auto server = StartOn("127.0.0.1:0", Hello());
  for (const std::string& start :
       {std::string("GET /"), std::string("GET /hello HTTP/1.1\r\nHost: localhost\r\nA: ")}) {
    RawClient client(server->port());
    client.Send(start + std::string(16 * HttpServer::kMaxRequestBytes, 'a') + "\r\n\r\n");
    // The rest that is left unread may reset the connection before the answer is read.
    const std::string answer = client.Receive();
    EXPECT_TRUE(answer.empty() || absl::StartsWith(answer, "HTTP/1.1 4")) << answer;
  }
  std::string request = "GET /hello HTTP/1.1\r\nHost: localhost\r\nA: ";
  request += std::string(HttpServer::kMaxRequestBytes - request.size() - 4, 'a') + "\r\n\r\n";
  EXPECT_THAT(RawClient(server->port()).Ask(request), StartsWith("HTTP/1.1 200 ")) << "the largest that fits";
}

TEST(HttpServer, ReadsARequestInPieces) {
  const auto server = StartOn("127.0.0.1:0", Hello());
  RawClient client(server->port());
  for (const char byte : std::string("GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r")) {
    ASSERT_TRUE(client.Send(std::string(1, byte)));
  }
  EXPECT_THAT(client.Ask("\n"), HasSubstr("\r\n\r\nhello\n"));
}

// Many connections that say nothing, or stop in the middle of a request, and stay open.
TEST(HttpServer, SilentClientsKeepNobodyOut) {
  const auto server = StartOn("127.0.0.1:0", Hello());
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 4 * HttpServer::kMaxConnections; ++i) {
    silent.push_back(std::make_unique<RawClient>(server->port()));
    ASSERT_TRUE(silent.back()->is_connected());
    if (i % 2 == 0) silent.back()->Send("GET /hello HT");
  }
  const steady_clock::time_point start = steady_clock::now();
  EXPECT_THAT(RawClient(server->port()).Ask("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              EndsWith("\r\n\r\nhello\n"));
  // Not only once the silent ones have had their five seconds.
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(4));
  // The oldest were closed to make room.
  EXPECT_EQ(silent.front()->Receive(), "");
}

// Connections that ask for a large body and do not read it.
TEST(HttpServer, BodiesThatNobodyReadsAreFew) {
  std::atomic<int> calls = 0;
  const auto server = StartOn("127.0.0.1:0", {{"/large", [&](const HttpQuery&) {
                                                 ++calls;
                                                 return HttpResponse{.body = std::string(8 << 20, 'x')};
                                               }}});
  constexpr absl::string_view kRequest = "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawClient first(server->port());
  ASSERT_TRUE(first.Send(kRequest));
  std::vector<std::unique_ptr<RawClient>> others;
  for (int i = 0; i < 2 * HttpServer::kMaxAnswers; ++i) {
    others.push_back(std::make_unique<RawClient>(server->port()));
    ASSERT_TRUE(others.back()->Send(kRequest));
  }
  EXPECT_GT(others.back()->Receive().size(), 8U << 20);
  EXPECT_EQ(calls, 2 * HttpServer::kMaxAnswers + 1);
  EXPECT_LT(first.Receive().size(), 8U << 20) << "it was closed";
}

TEST(HttpServer, AnswersOnlyUnderItsOwnName) {
  const auto server = StartOn("127.0.0.1:0", Hello());
  const auto status = [&](const std::string& host) {
    return RawClient(server->port())
        .Ask(absl::StrCat("GET /hello HTTP/1.1\r\nHost: ", host, "\r\n\r\n"))
        .substr(0, 12);
  };
  EXPECT_EQ(status(absl::StrCat("127.0.0.1:", server->port())), "HTTP/1.1 200");
  EXPECT_EQ(status("localhost:8080"), "HTTP/1.1 200") << "a forwarded port";
  EXPECT_EQ(status(absl::StrCat("rebound.example:", server->port())), "HTTP/1.1 421");
  EXPECT_EQ(status("127.0.0.1.rebound.example"), "HTTP/1.1 421");
}

TEST(HttpAddress, AnswersToNamesThatItListensOn) {
  const HttpAddress loopback = {"127.0.0.1", 9464}, name = {"lethe-1.example", 9464}, all = {"0.0.0.0", 9464},
                    all_ipv6 = {"::", 9464};
  for (const std::string host :
       {"127.0.0.1", "127.0.0.1:9464", "localhost", "LOCALHOST:1", "[::1]:9464", "10.1.2.3"}) {
    for (const HttpAddress& bound : {loopback, name, all, all_ipv6})
      EXPECT_TRUE(AnswersTo(bound, host)) << host;
  }
  for (const std::string host : {"lethe-1.example", "Lethe-1.Example:80"}) {
    EXPECT_FALSE(AnswersTo(loopback, host)) << host;
    EXPECT_TRUE(AnswersTo(name, host)) << host;
    EXPECT_TRUE(AnswersTo(all, host)) << host;
    EXPECT_TRUE(AnswersTo(all_ipv6, host)) << host;
  }
  for (const std::string host :
       {"", ":9464", "[", "[]", "1", "127.0.0.1.example", "x127.0.0.1", "localhost.example"}) {
    EXPECT_FALSE(AnswersTo(loopback, host)) << host;
  }
}

// Compression would let a request of some bytes cost seconds.
TEST(HttpServer, DoesNotCompress) {
  const auto server = StartOn("127.0.0.1:0", Hello());
  const std::string answer =
      RawClient(server->port())
          .Ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: br, gzip\r\n\r\n");
  EXPECT_THAT(answer, EndsWith("\r\n\r\nhello\n"));
  EXPECT_THAT(absl::AsciiStrToLower(answer), Not(HasSubstr("content-encoding"))) << answer;
}

TEST(HttpServer, HeadersForbidScriptsAndFrames) {
  const auto server = StartOn("127.0.0.1:0", {{"/", [](const HttpQuery&) { return Page(); }},
                                              {"/text", [](const HttpQuery&) { return HttpResponse{}; }}});
  httplib::Client client("127.0.0.1", server->port());
  for (const std::string path : {"/", "/text", "/missing"}) {
    const httplib::Result result = client.Get(path);
    ASSERT_TRUE(result);
    const std::string policy = result->get_header_value("Content-Security-Policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_EQ(absl::StrContains(policy, "script-src 'sha256-"), path == "/") << policy;
    EXPECT_EQ(result->get_header_value("X-Content-Type-Options"), "nosniff");
  }
}

TEST(HttpServer, StopsAtOnceWithSilentClients) {
  auto server = StartOn("127.0.0.1:0", Hello());
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 2 * HttpServer::kMaxConnections; ++i) {
    silent.push_back(std::make_unique<RawClient>(server->port()));
    ASSERT_TRUE(silent.back()->is_connected());
  }
  const steady_clock::time_point start = steady_clock::now();
  server.reset();
  // Far less than the deadline of a request, which it would wait for otherwise.
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(4));
}

TEST(HttpServer, WaitsForAHandlerThatRuns) {
  std::promise<void> entered, leave;
  std::atomic<bool> is_done = false;
  auto server = StartOn("127.0.0.1:0", {{"/slow", [&](const HttpQuery&) {
                                           entered.set_value();
                                           leave.get_future().wait();
                                           is_done = true;
                                           return HttpResponse{200, "text/plain", "done"};
                                         }}});
  RawClient client(server->port());
  ASSERT_TRUE(client.Send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  entered.get_future().wait();
  std::thread stop([&] { server.reset(); });
  leave.set_value();
  stop.join();
  EXPECT_TRUE(is_done);
}

TEST(HttpServer, ServesManyAtOnce) {
  std::atomic<int> calls = 0;
  const auto server =
      StartOn("127.0.0.1:0", {{"/count", [&](const HttpQuery&) {
                                 return HttpResponse{200, "text/plain", absl::StrCat(++calls)};
                               }}});
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 25; ++j) {
        if (absl::StartsWith(RawClient(server->port()).Ask("GET /count HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                             "HTTP/1.1 200 "))
          ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
  EXPECT_EQ(calls, 200);
}

TEST(HttpServer, SendsALargeBodyWhole) {
  const std::string body(8 << 20, 'x');
  const auto server = StartOn("127.0.0.1:0", {{"/large", [&](const HttpQuery&) {
                                                 return HttpResponse{200, "application/octet-stream", body};
                                               }}});
  const httplib::Result result = httplib::Client("127.0.0.1", server->port()).Get("/large");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->body == body, true);
}

// A request for thousands of overlapping ranges would make a huge response.
TEST(HttpServer, IgnoresRanges) {
  const auto server = StartOn("127.0.0.1:0", Hello());
  const std::string answer =
      RawClient(server->port())
          .Ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-,0-,0-,0-\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nhello\n"));
}

TEST(HttpServer, AnswersAnything) {
  const uint64_t seed = [] {
    const char* given = std::getenv("LETHE_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  }();
  SCOPED_TRACE(absl::StrCat("LETHE_SEED=", seed));
  std::mt19937_64 random(seed);
  const std::vector<std::string> pieces = {"GET",
                                           "POST",
                                           " ",
                                           "/hello",
                                           "/",
                                           "%",
                                           "%0",
                                           "%zz",
                                           "?",
                                           "a=b",
                                           "HTTP/1.1",
                                           "HTTP/9.9",
                                           "\r\n",
                                           "\n",
                                           "\r",
                                           ":",
                                           "Range: bytes=",
                                           "0-",
                                           ",",
                                           "-",
                                           "99999999999999999999",
                                           "Expect: 100-continue\r\n",
                                           "Content-Length: -1\r\n",
                                           "Transfer-Encoding: chunked\r\n",
                                           std::string(1, '\0'),
                                           "\xff"};
  const auto server = StartOn("127.0.0.1:0", Hello());
  for (int i = 0; i < 2000; ++i) {
    std::string request = random() % 2 == 0 ? "GET /hello HTTP/1.1\r\n" : "";
    for (uint64_t n = 2 + random() % 20; n > 0; --n) request += pieces[random() % pieces.size()];
    // A line that begins with a zero byte is empty to the library: it waits for another until it loses
    // patience.
    for (size_t at = 0; at < request.size(); ++at) {
      const bool begins_line = at == 0 || request[at - 1] == '\n' || request[at - 1] == '\r';
      if (begins_line && request[at] == '\0') request[at] = ' ';
    }
    RawClient client(server->port());
    client.Send(request + "\r\n\r\n");
    client.EndRequest();
    const std::string answer = client.Receive();
    ASSERT_TRUE(answer.empty() || absl::StartsWith(answer, "HTTP/1.1 "))
        << absl::CHexEscape(request) << answer;
  }
}

TEST(MetricsText, IsWhatPrometheusReads) {
  prometheus::Registry registry;
  prometheus::BuildCounter()
      .Name("lethe_records_total")
      .Help("Records read.")
      .Register(registry)
      .Add({{"topic", "a\"b\\c\nd"}})
      .Increment(3);
  const HttpResponse response = MetricsText(registry.Collect());
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(response.body,
            "# HELP lethe_records_total Records read.\n"
            "# TYPE lethe_records_total counter\n"
            "lethe_records_total{topic=\"a\\\"b\\\\c\\nd\"} 3\n");
}

}  // namespace
}  // namespace lethe::http
