#include "tests/support/prometheus.h"

#include <httplib.h>
#include <simdjson.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/support/free_port.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {
namespace {

using simdjson::dom::element;

constexpr absl::Duration kPrometheusStartTimeout = absl::Seconds(30);

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      escaped += c;
    } else {
      absl::StrAppend(&escaped, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return escaped;
}

std::pair<double, double> Point(const element& pair) {
  double value = 0;
  const std::string_view text = pair.at(1).get_string().value();
  if (!absl::SimpleAtod(absl::string_view(text.data(), text.size()), &value)) {
    throw std::runtime_error(absl::StrCat("no number: ", absl::string_view(text.data(), text.size())));
  }
  return {pair.at(0).get_double().value(), value};
}

std::vector<Series> Parse(const std::string& answer) {
  simdjson::dom::parser parser;
  const element root = parser.parse(answer);
  std::vector<Series> all;
  for (const element result : root["data"]["result"].get_array()) {
    Series series;
    for (const auto field : result["metric"].get_object()) {
      series.labels[std::string(field.key)] = std::string(field.value.get_string().value());
    }
    element one;
    if (result["value"].get(one) == simdjson::SUCCESS) {
      series.points.push_back(Point(one));
    } else {
      for (const element point : result["values"].get_array()) series.points.push_back(Point(point));
    }
    all.push_back(std::move(series));
  }
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Prometheus>> Prometheus::Start(const std::vector<int>& ports,
                                                              const std::string& rule_file) {
  std::string folder = std::filesystem::temp_directory_path() / "lethe-prometheus-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return absl::ErrnoToStatus(errno, "mkdtemp");
  std::unique_ptr<Prometheus> prometheus(new Prometheus(folder));
  std::ofstream config(folder + "/prometheus.yml");
  config << "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
         << "scrape_configs:\n"
         << "  - job_name: lethe\n"
         << "    static_configs: [{targets: [\"127.0.0.1:" << absl::StrJoin(ports, "\", \"127.0.0.1:")
         << "\"]}]\n";
  if (!rule_file.empty()) config << "rule_files: [\"" << rule_file << "\"]\n";
  config.close();
  prometheus->port_ = FreePort();
  ProcessOptions program;
  program.args = {"prometheus", "--config.file=" + folder + "/prometheus.yml",
                  "--storage.tsdb.path=" + folder + "/data",
                  absl::StrCat("--web.listen-address=127.0.0.1:", prometheus->port_), "--log.level=warn"};
  auto process = Process::Start(program);
  if (!process.ok()) return process.status();
  prometheus->process_ = *std::move(process);
  const bool ready =
      WaitUntil([&] { return prometheus->Get("/-/ready").ok() || !prometheus->process_->Running(); },
                kPrometheusStartTimeout);
  if (!ready || !prometheus->process_->Running()) {
    return absl::UnavailableError(
        absl::StrCat("Debian's package prometheus is needed. It says: ", prometheus->process_->Stderr()));
  }
  return prometheus;
}

Prometheus::~Prometheus() {
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::string> Prometheus::Get(const std::string& path) const {
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(30);
  const httplib::Result result = client.Get(path.c_str());
  if (!result) return absl::UnavailableError(absl::StrCat(path, ": no answer"));
  if (result->status != 200) return absl::InvalidArgumentError(absl::StrCat(path, ": ", result->body));
  return result->body;
}

absl::StatusOr<std::vector<Series>> Prometheus::Query(const std::string& expression, absl::Time at) const {
  auto answer =
      Get(absl::StrCat("/api/v1/query?query=", Escaped(expression), "&time=", absl::ToUnixMillis(at) / 1000));
  if (!answer.ok()) return answer.status();
  return Parse(*answer);
}

absl::StatusOr<std::vector<Series>> Prometheus::QueryRange(const std::string& expression, absl::Time from,
                                                           absl::Time to) const {
  auto answer =
      Get(absl::StrCat("/api/v1/query_range?query=", Escaped(expression),
                       "&start=", absl::ToUnixSeconds(from), "&end=", absl::ToUnixSeconds(to), "&step=1"));
  if (!answer.ok()) return answer.status();
  return Parse(*answer);
}

}  // namespace lethe::test
