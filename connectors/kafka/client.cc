#include "connectors/kafka/client.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace lethe::kafka {
namespace {

// librdkafka's levels are syslog's. What it calls an error is mostly a broker that went away for a moment,
// and the daemon says by itself what it waits for: so its lines are one level lower here.
void ForwardLog(const rd_kafka_t* /*client*/, int level, const char* facility, const char* text) {
  if (absl::string_view(facility) == "CONFWARN") return;  // a consumer's property in a producer, say
  if (level <= 2) {
    spdlog::error("librdkafka {}: {}", facility, text);
  } else {
    spdlog::info("librdkafka {}: {}", facility, text);  // level 7 comes only to who asked for `debug`
  }
}

}  // namespace

ClientConfig::ClientConfig() : conf_(rd_kafka_conf_new()) {
  rd_kafka_conf_set_log_cb(conf_.get(), ForwardLog);
}

ClientConfig& ClientConfig::Set(const std::string& name, const std::string& value) {
  if (!status_.ok()) return *this;
  char reason[512];
  if (rd_kafka_conf_set(conf_.get(), name.c_str(), value.c_str(), reason, sizeof reason) !=
      RD_KAFKA_CONF_OK) {
    // librdkafka's reason repeats the value, which may be a secret: the name has to do for those.
    const bool secret = name.find("password") != std::string::npos ||
                        name.find("secret") != std::string::npos || name.find("key") != std::string::npos ||
                        name.find("jaas") != std::string::npos;
    status_ = absl::InvalidArgumentError(
        absl::StrCat("librdkafka property ", name, ": ", secret ? "the value is not accepted" : reason));
  }
  return *this;
}

ClientConfig& ClientConfig::Set(const std::vector<Property>& properties) {
  for (const auto& [name, value] : properties) Set(name, value);
  return *this;
}

absl::StatusOr<ClientPtr> ClientConfig::Make(rd_kafka_type_t type) {
  if (!status_.ok()) return status_;
  char reason[512];
  rd_kafka_t* client = rd_kafka_new(type, conf_.get(), reason, sizeof reason);
  if (client == nullptr) return absl::InvalidArgumentError(absl::StrCat("librdkafka: ", reason));
  conf_.release();  // the client owns it now
  return ClientPtr(client);
}

ClientConfig BaseConfig(const DaemonOptions& options, const std::vector<Property>& defaults) {
  ClientConfig config;
  config.Set("client.id", absl::StrCat("lethe-", options.instance)).Set("log.connection.close", "false");
  config.Set(defaults).Set(options.properties);
  config.Set("bootstrap.servers", options.brokers);
  return config;
}

void AddHeader(HeadersPtr& headers, absl::string_view name, absl::string_view value) {
  constexpr size_t kMost = 5;  // that lethe adds at once
  if (headers == nullptr) headers.reset(rd_kafka_headers_new(kMost));
  rd_kafka_header_add(headers.get(), name.data(), static_cast<ssize_t>(name.size()), value.data(),
                      static_cast<ssize_t>(value.size()));
}

absl::Status ErrorStatus(rd_kafka_resp_err_t code, absl::string_view doing) {
  const std::string message =
      absl::StrCat(doing, ": ", rd_kafka_err2str(code), " (", rd_kafka_err2name(code), ")");
  switch (code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return absl::OkStatus();
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      return absl::NotFoundError(message);
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
      return absl::PermissionDeniedError(message);
    default:
      return IsTransient(code) ? absl::UnavailableError(message) : absl::InternalError(message);
  }
}

bool IsTransient(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR__IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS:
    case RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
    case RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT:
    case RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS:
    case RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_PREFERRED_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
      return true;
    default:
      return false;
  }
}

}  // namespace lethe::kafka
