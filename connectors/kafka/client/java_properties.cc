#include "connectors/kafka/client/java_properties.h"

#include <utility>

namespace lethe::kafka {
namespace {

constexpr absl::string_view kLogin =
    "set sasl.mechanism, sasl.username and sasl.password; for Kerberos sasl.kerberos.principal and "
    "sasl.kerberos.keytab; for OAuth sasl.oauthbearer.method: oidc and its client id, secret and endpoint";
constexpr absl::string_view kTrust =
    "set ssl.ca.location to a PEM file of the certificates (keytool -exportcert -rfc writes one)";
constexpr absl::string_view kBytes = "delete it: lethe copies keys and values as bytes";
constexpr absl::string_view kOAuth =
    "set sasl.oauthbearer.method: oidc, and its client id, secret and endpoint";
constexpr absl::string_view kOpenSsl = "delete it: OpenSSL's configuration sets the versions of TLS";
constexpr absl::string_view kRefresh = "delete it: librdkafka renews the login by itself";
constexpr absl::string_view kPackage = "delete it: ssl.keystore.location is a PKCS#12 file";

// Those that Java's clients document and librdkafka refuses.
constexpr std::pair<absl::string_view, absl::string_view> kInstead[] = {
    {"sasl.jaas.config", kLogin},
    {"sasl.client.callback.handler.class", kLogin},
    {"sasl.login.class", kLogin},
    {"sasl.login.callback.handler.class", kOAuth},
    {"ssl.truststore.location", kTrust},
    {"ssl.truststore.type", kTrust},
    {"ssl.truststore.password", "delete it: ssl.ca.location is a PEM file, which has none"},
    {"ssl.truststore.certificates", "set ssl.ca.pem"},
    {"ssl.keystore.type", kPackage},
    {"ssl.keystore.certificate.chain", "set ssl.certificate.pem"},
    {"ssl.keystore.key", "set ssl.key.pem"},
    {"ssl.protocol", kOpenSsl},
    {"ssl.enabled.protocols", kOpenSsl},
    {"sasl.login.refresh.buffer.seconds", kRefresh},
    {"sasl.login.refresh.min.period.seconds", kRefresh},
    {"sasl.login.refresh.window.factor", kRefresh},
    {"sasl.login.refresh.window.jitter", kRefresh},
    {"sasl.oauthbearer.client.credentials.client.id", "set sasl.oauthbearer.client.id"},
    {"sasl.oauthbearer.client.credentials.client.secret", "set sasl.oauthbearer.client.secret"},
    {"key.serializer", kBytes},
    {"value.serializer", kBytes},
    {"key.deserializer", kBytes},
    {"value.deserializer", kBytes},
    {"max.poll.records", "delete it: queued.min.messages bounds what is fetched ahead"},
    {"fetch.max.wait.ms", "set fetch.wait.max.ms"},
    {"default.api.timeout.ms", "set socket.timeout.ms"},
    {"buffer.memory", "set queue.buffering.max.kbytes, in KiB"},
    {"max.request.size", "set message.max.bytes"},
    {"max.block.ms", "delete it: lethe waits while its queue is full"},
    {"compression.gzip.level", "set compression.level"},
    {"compression.lz4.level", "set compression.level"},
    {"compression.zstd.level", "set compression.level"},
    {"partitioner.class", "delete it: lethe chooses the partition of each record"},
    {"schema.registry.url", "set schema_registry.url of lethe"},
    {"socket.connection.setup.timeout.max.ms", "set socket.connection.setup.timeout.ms"},
    {"send.buffer.bytes", "set socket.send.buffer.bytes"},
    {"receive.buffer.bytes", "set socket.receive.buffer.bytes"},
    {"interceptor.classes", "delete it: librdkafka loads plug-ins by plugin.library.paths"},
    {"metric.reporters", "delete it: /metrics has lethe's figures"},
};

}  // namespace

std::optional<absl::string_view> InsteadOfJavas(absl::string_view property) {
  for (const auto& [name, instead] : kInstead) {
    if (name == property) return instead;
  }
  return std::nullopt;
}

}  // namespace lethe::kafka
