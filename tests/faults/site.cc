#include "tests/faults/site.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kTakenOver = absl::Minutes(1);

// As Java hashes strings, and as Kafka finds the partition of a group or a transactional id by it.
size_t InternalPartition(const std::string& name, size_t partitions) {
  uint32_t hash = 0;
  for (const char c : name) hash = 31 * hash + static_cast<unsigned char>(c);
  return (hash & 0x7fffffff) % partitions;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Site>> Site::Start(int brokers) {
  std::unique_ptr<Site> site(new Site);
  std::vector<KafkaBrokerOptions> nodes(static_cast<size_t>(brokers));
  std::vector<std::vector<int>> ports;  // by wire and broker
  for (int w = 0; w < kMaxInstances + 1; ++w) {
    auto proxy = TcpProxy::Start();
    if (!proxy.ok()) return proxy.status();
    std::vector<std::string> addresses;
    ports.emplace_back();
    for (KafkaBrokerOptions& node : nodes) {
      auto port = (*proxy)->Listen();
      if (!port.ok()) return port.status();
      node.proxied.emplace_back(absl::StrCat("WIRE", w), *port);
      ports.back().push_back(*port);
      addresses.push_back(absl::StrCat("127.0.0.1:", *port));
    }
    site->wires_.push_back({*std::move(proxy), absl::StrJoin(addresses, ",")});
  }
  for (KafkaBrokerOptions& node : nodes) {
    node.heap = brokers == 1 ? "384m" : "256m";
    node.properties = {{"group.min.session.timeout.ms", "500"}};
  }
  auto started = KafkaBroker::StartCluster(std::move(nodes));
  if (!started.ok()) return started.status();
  site->brokers_ = *std::move(started);
  std::vector<std::string> addresses;
  for (size_t b = 0; b < site->brokers_.size(); ++b) {
    addresses.push_back(site->brokers_[b]->bootstrap());
    for (size_t w = 0; w < site->wires_.size(); ++w) {
      site->wires_[w].proxy->Forward(ports[w][b], site->brokers_[b]->port(absl::StrCat("WIRE", w)));
    }
  }
  site->bootstrap_ = absl::StrJoin(addresses, ",");
  auto client = KafkaClient::Connect(site->bootstrap_);
  if (!client.ok()) return client.status();
  site->client_ = *std::move(client);
  return site;
}

absl::StatusOr<int> Site::Leader(const std::string& topic, int partition) {
  const auto leaders = client_->Leaders(topic);
  if (!leaders.ok()) return leaders.status();
  if (static_cast<size_t>(partition) >= leaders->size()) {
    return absl::NotFoundError(absl::StrCat("no ", topic, "-", partition));
  }
  return (*leaders)[static_cast<size_t>(partition)];
}

absl::StatusOr<int> Site::GroupCoordinator(const std::string& group) {
  return Leader("__consumer_offsets", static_cast<int>(InternalPartition(group, kInternalPartitions)));
}

absl::StatusOr<int> Site::TransactionCoordinator(const std::string& transactional_id) {
  return Leader("__transaction_state",
                static_cast<int>(InternalPartition(transactional_id, kInternalPartitions)));
}

absl::Status Site::TakeDown(int id, bool kill) {
  if (id < 1 || id > static_cast<int>(brokers_.size())) {
    return absl::NotFoundError(absl::StrCat("no broker ", id));
  }
  if (absl::Status settled = Settle(); !settled.ok()) return settled;
  settled_ = false;
  down_ = id;
  killed_ = kill;
  return kill ? broker(id).Kill() : broker(id).Stop();
}

absl::Status Site::Relaunch() {
  if (down_ == 0) return absl::OkStatus();
  const int id = std::exchange(down_, 0);
  if (std::exchange(killed_, false) && brokers_.size() > 1) {
    const auto is_out = [&] {
      const absl::StatusOr<int> in = client_->BrokerCount(absl::Seconds(1));
      return in.ok() && *in < static_cast<int>(brokers_.size());
    };
    if (!WaitUntil(is_out, kTakenOver)) {
      return absl::DeadlineExceededError(
          absl::StrCat("nobody takes over from broker ", id, ", which was killed"));
    }
  }
  return broker(id).Launch();
}

absl::Status Site::Heal() {
  for (Wire& wire : wires_) {
    wire.proxy->SetDelay(absl::ZeroDuration());
    wire.proxy->SetStalled(false);
    wire.proxy->SetLosingReplies(false);
  }
  return Settle();
}

absl::Status Site::Settle() {
  if (settled_) return absl::OkStatus();
  if (absl::Status launched = Relaunch(); !launched.ok()) return launched;
  for (const auto& broker : brokers_) {
    if (absl::Status ready = broker->AwaitReady(); !ready.ok()) return ready;
  }
  settled_ = true;
  return absl::OkStatus();
}

void Site::KeepLogs(const std::string& folder) const {
  for (const auto& broker : brokers_) {
    for (const char* suffix : {"", ".before"}) {
      std::error_code ignored;
      std::filesystem::copy_file(broker->LogFile() + suffix,
                                 absl::StrCat(folder, "/broker-", broker->id(), ".log", suffix),
                                 std::filesystem::copy_options::overwrite_existing, ignored);
    }
  }
}

}  // namespace lethe::test
