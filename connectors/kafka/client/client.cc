#include "connectors/kafka/client/client.h"

#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "connectors/kafka/client/java_properties.h"
#include "connectors/kafka/client/message_view.h"
#include "src/pipeline/assign/instance_claim.h"
#include "src/pipeline/clock/repeats.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/pipeline/preflight/probe_rules.h"
#include "src/text/suggestion.h"

namespace lethe::kafka {
namespace {

// An input of 100 MB/s brings 2 MB in that time.
constexpr absl::Duration kLookAgain = absl::Milliseconds(20);
constexpr int kMessagesBetweenLooks = 1000;
// Small ones empty a queue sooner.
constexpr int kManyMessages = 10'000;
// A reader that got nothing for so long has an empty queue. Longer than librdkafka takes by itself.
constexpr absl::Duration kBusy = absl::Seconds(2);
// The first version with fetch.queue.backoff.ms.
constexpr int kHasQueueBackoff = 0x02020000;

// One fetch, over all partitions that a broker leads. The densest batches (zstd) make 2 GiB of it.
// Larger fetches are faster where batches are small and the brokers far away.
constexpr absl::string_view kFetchBytes = "65536";

size_t BytesOf(const rd_kafka_message_t& message) {
  size_t bytes = message.len + message.key_len;
  MessageView(message).ForEachHeader(
      [&](absl::string_view name, const std::optional<absl::string_view>& value) {
        bytes += name.size() + (value ? value->size() : 0);
      });
  return bytes;
}

// librdkafka's levels are syslog's. Most of its errors are brokers that are away for a moment, and lethe logs
// itself what it waits for: so each line is one level lower here.
void ForwardLog(const rd_kafka_t* /*client*/, int level, const char* facility, const char* text) {
  if (absl::string_view(facility) == "CONFWARN") return;  // a consumer's property in a producer, say
  const std::string harmless = WithoutSecrets(text);
  if (level <= 2) {
    spdlog::error("librdkafka {}: {}", facility, harmless);
  } else if (level <= 6) {
    // A coordinator that is still loading is asked forty times in a second, and each answer logged.
    static RepeatsByKind repeats;
    if (const auto like_it = repeats.Next(facility, SteadyNow())) {
      spdlog::info("librdkafka {}: {}{}", facility, harmless, *like_it);
    }
  } else {
    spdlog::debug("librdkafka {}: {}", facility, harmless);  // comes only to who asked for `debug`
  }
}

// librdkafka's main thread sleeps whole milliseconds and then polls until its timer is due, which costs up to
// a millisecond of CPU for each timer, 3.5 times a second in an idle consumer. With a millisecond of timer
// slack it wakes when the timer is due. Its other threads inherit the slack, so a lingering batch may leave a
// millisecond later.
class WakesLate {
 public:
  WakesLate() : before_(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)) { Set(1'000'000); }
  ~WakesLate() {
    if (before_ > 0) Set(before_);
  }
  WakesLate(const WakesLate&) = delete;
  WakesLate& operator=(const WakesLate&) = delete;

 private:
  static void Set(int nanoseconds) {
    prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(nanoseconds), 0, 0, 0);
  }

  const int before_;
};

// The first column of the table of properties that librdkafka prints.
std::vector<std::string> ReadPropertyNames() {
  char* table = nullptr;
  size_t size = 0;
  FILE* const out = open_memstream(&table, &size);
  if (out == nullptr) return {};
  rd_kafka_conf_properties_show(out);
  fclose(out);
  std::vector<std::string> names;
  for (const absl::string_view line : absl::StrSplit(absl::string_view(table, size), '\n')) {
    const absl::string_view name = absl::StripAsciiWhitespace(line.substr(0, line.find('|')));
    if (absl::StrContains(line, '|') && name != "Property") names.emplace_back(name);
  }
  free(table);
  return names;
}

// Read once: a file may have thousands of unknown keys.
const std::vector<std::string>& PropertyNames() {
  static const std::vector<std::string> names = ReadPropertyNames();
  return names;
}

// For the error of a connection.
absl::string_view RemedyOf(absl::string_view error) {
  if (absl::StrContains(error, "certificate")) return "";  // librdkafka says more of it
  if (absl::StrContains(error, "close connections") || absl::StrContains(error, "reset by peer")) {
    return "; check that brokers run there, and security.protocol";
  }
  if (absl::StrContains(error, "SSL") || absl::StrContains(error, "TLS")) {
    return "; see security.protocol: it is not that of the listener";
  }
  return "; check that the broker runs, and that this host reaches the address (advertised.listeners)";
}

using MetadataPtr = std::unique_ptr<const rd_kafka_metadata_t, Destroyer<rd_kafka_metadata_destroy>>;

// Of the topic; null: of all of which there are handles.
absl::StatusOr<MetadataPtr> AskMetadata(rd_kafka_t* client, rd_kafka_topic_t* topic, int timeout_ms) {
  const rd_kafka_metadata_t* raw = nullptr;
  const rd_kafka_resp_err_t code = rd_kafka_metadata(client, 0, topic, &raw, timeout_ms);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorStatus(code, "asking for topic metadata");
  return MetadataPtr(raw);
}

absl::StatusOr<TopicShape> ShapeIn(const rd_kafka_metadata_topic& described, const std::string& name) {
  if (described.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return ErrorStatus(described.err, absl::StrCat("topic ", name));
  }
  TopicShape shape{.partitions = described.partition_cnt};
  for (int i = 0; i < described.partition_cnt; ++i) {
    const rd_kafka_metadata_partition& partition = described.partitions[i];
    shape.replicas = i == 0 ? partition.replica_cnt : std::min(shape.replicas, partition.replica_cnt);
    shape.has_leaders = shape.has_leaders && partition.leader >= 0;
  }
  return shape;
}

std::string PropertyOf(const rd_kafka_conf_t* conf, const char* name) {
  std::string value(1024, '\0');
  size_t size = value.size();  // with the zero at its end
  if (rd_kafka_conf_get(conf, name, value.data(), &size) != RD_KAFKA_CONF_OK) return std::string();
  if (size > value.size()) {
    value.resize(size);
    rd_kafka_conf_get(conf, name, value.data(), &size);
  }
  value.resize(size - 1);
  return value;
}

// librdkafka assumes Kerberos then, and names what that lacks.
std::string SaslWithoutMechanism(const rd_kafka_conf_t* conf) {
  const std::string protocol = PropertyOf(conf, "security.protocol");
  if (!absl::StartsWithIgnoreCase(protocol, "sasl")) return "";
  return absl::StrCat("; security.protocol is ", protocol,
                      ", and sasl.mechanism is not set: set it to PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or "
                      "OAUTHBEARER (the default is GSSAPI, Kerberos)");
}

}  // namespace

std::string PropertyOf(rd_kafka_t* client, const char* name) {
  return PropertyOf(rd_kafka_conf(client), name);
}

int64_t NumberOf(rd_kafka_t* client, const char* name) {
  int64_t number = 0;
  return absl::SimpleAtoi(PropertyOf(client, name), &number) ? number : 0;
}

bool IsProperty(const std::string& name) {
  if (InsteadOfJavas(name)) return true;
  const std::vector<std::string>& names = PropertyNames();
  return std::find(names.begin(), names.end(), name) != names.end();
}

ClientConfig::ClientConfig() : conf_(rd_kafka_conf_new()) {
  rd_kafka_conf_set_log_cb(conf_.get(), ForwardLog);
}

ClientConfig& ClientConfig::Set(const std::string& name, const std::string& value) {
  if (!status_.ok()) return *this;
  has_mechanism_ = has_mechanism_ || name == "sasl.mechanism" || name == "sasl.mechanisms";
  char reason[512];
  const rd_kafka_conf_res_t result =
      rd_kafka_conf_set(conf_.get(), name.c_str(), value.c_str(), reason, sizeof reason);
  if (result == RD_KAFKA_CONF_OK) return *this;
  if (const auto instead = InsteadOfJavas(name)) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("a property of Kafka's Java clients, which librdkafka does not have; ", *instead));
    return *this;
  }
  if (result == RD_KAFKA_CONF_UNKNOWN) {
    const std::optional<std::string> nearest = Nearest(name, PropertyNames());
    status_ = absl::InvalidArgumentError(
        absl::StrCat("librdkafka has no property ", name, nearest ? "; did you mean " : "",
                     nearest ? absl::StrCat(*nearest, "?") : "; its CONFIGURATION.md lists them"));
    return *this;
  }
  const absl::string_view text(reason);
  constexpr absl::string_view kUnsupported = " not supported in this build: ";
  if (const size_t at = text.find(kUnsupported);
      absl::StartsWith(text, "Configuration property ") && at != absl::string_view::npos) {
    status_ = absl::InvalidArgumentError(absl::StrCat("librdkafka ", rd_kafka_version_str(), " cannot do ",
                                                      name, ": ", text.substr(at + kUnsupported.size())));
    return *this;
  }
  // The value may be a secret, whatever the name, and librdkafka's reason repeats it. Only the allowed range
  // behind the value is shown.
  constexpr absl::string_view kRange = "outside allowed range ";
  const size_t range = text.rfind(kRange);
  status_ = absl::InvalidArgumentError(absl::StrCat(
      "librdkafka property ", name, ": the value is not accepted",
      range == absl::string_view::npos
          ? "; librdkafka's CONFIGURATION.md lists them"
          : absl::StrCat("; allowed is ", absl::StripAsciiWhitespace(text.substr(range + kRange.size())))));
  return *this;
}

ClientConfig& ClientConfig::Set(const std::vector<Property>& properties) {
  for (const auto& [name, value] : properties) Set(name, value);
  return *this;
}

void DestroyClient(rd_kafka_t* client) {
  if (rd_kafka_type(client) == RD_KAFKA_PRODUCER) {
    rd_kafka_purge(client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  }
  rd_kafka_destroy(client);
}

void ClientConfig::OnNew(rd_kafka_interceptor_f_on_new_t* on_new, void* opaque) {
  rd_kafka_conf_interceptor_add_on_new(raw(), "lethe", on_new, opaque);
  is_intercepted_ = true;
}

absl::StatusOr<ClientPtr> ClientConfig::Make(rd_kafka_type_t type) {
  if (!status_.ok()) return status_;
  const WakesLate threads;
  char reason[512];
  rd_kafka_t* client = rd_kafka_new(type, conf_.get(), reason, sizeof reason);
  if (client == nullptr) {
    const std::string why = has_mechanism_ ? "" : SaslWithoutMechanism(conf_.get());
    // librdkafka has freed the interceptors with the client, and would free them again (2.0.2): this leaks
    // the configuration, once in the life of a process that cannot go on.
    if (is_intercepted_) conf_.release();
    return absl::InvalidArgumentError(absl::StrCat("librdkafka: ", WithoutSecrets(reason), why));
  }
  conf_.release();  // the client owns it now
  return ClientPtr(client);
}

std::string WithoutSecrets(absl::string_view text) {
  // librdkafka's messages quote parts of this property alone.
  for (const absl::string_view name : {"sasl.oauthbearer.config", "SASL/OAUTHBEARER extension"}) {
    const size_t at = text.find(name);
    if (at != absl::string_view::npos) {
      return absl::StrCat(text.substr(0, at + name.size()), ": the value is not accepted");
    }
  }
  return std::string(text);
}

void ClientErrors::Watch(ClientConfig& config) {
  rd_kafka_conf_set_opaque(config.raw(), this);
  rd_kafka_conf_set_error_cb(config.raw(), [](rd_kafka_t*, int code, const char* reason, void* opaque) {
    ClientErrors& errors = *static_cast<ClientErrors*>(opaque);
    // That all are down is then a consequence.
    const bool is_refused = code == RD_KAFKA_RESP_ERR__AUTHENTICATION;
    if (absl::IsPermissionDenied(errors.last_) && !is_refused) return;
    // " (after 3ms in state CONNECT, 2 identical error(s) suppressed)" makes a new text of the same error.
    std::string text = WithoutSecrets(reason);
    if (const size_t after = text.rfind(" (after "); after != text.npos) text.resize(after);
    if (is_refused) {
      errors.last_ = absl::PermissionDeniedError(
          absl::StrCat("the brokers do not let this user in: ", text, ": see to sasl.* and ssl.* of kafka"));
    } else if (code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
      errors.last_ = absl::UnavailableError(text);
    } else if (errors.last_.ok()) {
      // A broker that closes a connection gives no reason, and librdkafka reports nothing else.
      errors.last_ = absl::UnavailableError(
          absl::StrCat(text, ", or close connections, as a listener of TLS or SASL does with others"));
    } else {
      return;  // the error before it is the reason
    }
    errors.at_ = SteadyNow();
  });
}

absl::Status ClientErrors::Last(rd_kafka_t* client) {
  // Serves the callback. In a consumer that has read a log the messages that it did not take come by the same
  // queue, and at these rd_kafka_poll() ends the process. (Without a group it has read none.)
  const bool may_have_read = rd_kafka_type(client) == RD_KAFKA_CONSUMER &&
                             rd_kafka_poll_set_consumer(client) == RD_KAFKA_RESP_ERR_NO_ERROR;
  if (!may_have_read) {
    rd_kafka_poll(client, 0);
    return last_;
  }
  constexpr int kMostLeft = 1000;
  for (int left = 0; left < kMostLeft && MessagePtr(rd_kafka_consumer_poll(client, 0)) != nullptr;) ++left;
  return last_;
}

absl::Status ClientErrors::Explain(rd_kafka_t* client, const absl::Status& failed) {
  // librdkafka reports an error that repeats every half minute.
  constexpr absl::Duration kRecent = absl::Seconds(35);
  if (!absl::IsUnavailable(failed)) return failed;
  const absl::Status last = Last(client);
  if (last.ok() || SteadyNow() - at_ > kRecent) return failed;
  // It stays Unavailable where the brokers refuse a login, too: one that starts may do so for a moment.
  return absl::UnavailableError(absl::StrCat(failed.message(), ": ", last.message(),
                                             absl::IsPermissionDenied(last) ? "" : RemedyOf(last.message())));
}

std::vector<Property> FetchOn::Defaults(std::vector<Property> others) {
  others.emplace_back("fetch.max.bytes", std::string(kFetchBytes));
  if (rd_kafka_version() >= kHasQueueBackoff) {
    others.emplace_back("fetch.queue.backoff.ms", absl::StrCat(absl::ToInt64Milliseconds(kLookAgain)));
  }
  return others;
}

FetchOn::FetchOn(rd_kafka_t* consumer)
    : consumer_(consumer),
      room_({NumberOf(consumer, "fetch.max.bytes"), NumberOf(consumer, "queued.min.messages")}),
      busy_until_(SteadyNow() + kBusy) {
  Limit();
  if (rd_kafka_version() >= kHasQueueBackoff) next_ = absl::InfiniteFuture();
  username_ = PropertyOf(consumer, "sasl.username");
  password_ = PropertyOf(consumer, "sasl.password");
}

void FetchOn::Look(absl::Time now) {
  if (came_ > 0) busy_until_ = now + kBusy;
  if (now >= busy_until_ || (now < next_ && came_ < kManyMessages)) return;
  came_ = 0;
  next_ = now + kLookAgain;
  const ErrorPtr error(rd_kafka_sasl_set_credentials(consumer_, username_.c_str(), password_.c_str()));
}

// librdkafka reads both with each fetch, and has no call that changes them: its documentation hands out the
// configuration of a running client for reading. Creating the consumer again would rebalance the group.
void FetchOn::Limit() {
  rd_kafka_conf_t* const live = const_cast<rd_kafka_conf_t*>(rd_kafka_conf(consumer_));
  const auto set = [&](const char* name, int64_t value) {
    char reason[128];
    const std::string text = absl::StrCat(value);
    if (rd_kafka_conf_set(live, name, text.c_str(), reason, sizeof reason) != RD_KAFKA_CONF_OK) {
      spdlog::warn("limiting {} to {}: {}", name, text, reason);
    }
  };
  set("fetch.max.bytes", room_.limits().fetch_bytes);
  set("queued.min.messages", room_.limits().queued_records);
}

MessagePtr FetchOn::Poll(int timeout_ms) {
  MessagePtr message = Take(timeout_ms);
  if (message == nullptr || message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    last_bytes_ = 0;
    return message;
  }
  last_bytes_ = BytesOf(*message);
  if (room_.Add(last_bytes_)) Limit();
  return message;
}

MessagePtr FetchOn::Take(int timeout_ms) {
  if (next_ == absl::InfiniteFuture()) return MessagePtr(rd_kafka_consumer_poll(consumer_, timeout_ms));
  MessagePtr message(rd_kafka_consumer_poll(consumer_, 0));
  if (message != nullptr && ++came_ % kMessagesBetweenLooks != 0) return message;
  absl::Time now = SteadyNow();
  Look(now);
  // librdkafka does not check for room while it waits for a message.
  for (const absl::Time end = now + absl::Milliseconds(timeout_ms); message == nullptr && now < end;) {
    const absl::Duration wait = now < busy_until_ ? std::min(end - now, kLookAgain) : end - now;
    message.reset(rd_kafka_consumer_poll(
        consumer_, static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1))))));
    now = SteadyNow();
    came_ += message != nullptr ? 1 : 0;
    Look(now);
  }
  return message;
}

ClientConfig BaseConfig(const DaemonOptions& options, const std::vector<Property>& defaults) {
  ClientConfig config;
  config.Set("client.id", absl::StrCat(kClientIdPrefix, options.process.instance))
      .Set("log.connection.close", "false");
  // Otherwise a producer would make the brokers create a deleted topic with their defaults.
  config.Set("allow.auto.create.topics", "false");
  // librdkafka's default is five minutes, in which a topic can be deleted or get partitions unnoticed.
  config.Set("topic.metadata.refresh.interval.ms", "10000");
  config.Set(defaults).Set(options.process.properties);
  config.Set("bootstrap.servers", options.process.brokers);
  return config;
}

void* DataOf(const std::optional<absl::string_view>& bytes) {
  if (!bytes) return nullptr;
  return const_cast<char*>(bytes->data() == nullptr ? "" : bytes->data());
}

void AddHeader(HeadersPtr& headers, absl::string_view name, const std::optional<absl::string_view>& value) {
  constexpr size_t kUsual = 5;
  if (headers == nullptr) headers.reset(rd_kafka_headers_new(kUsual));
  rd_kafka_header_add(headers.get(), static_cast<const char*>(DataOf(name)),
                      static_cast<ssize_t>(name.size()), DataOf(value),
                      static_cast<ssize_t>(value.value_or("").size()));
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
    case RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT:
      return absl::FailedPreconditionError(message);
    default:
      return IsTransient(code) ? absl::UnavailableError(message) : absl::InternalError(message);
  }
}

rd_kafka_resp_err_t CauseOf(rd_kafka_t* client, const rd_kafka_error_t* error) {
  const rd_kafka_resp_err_t code = rd_kafka_error_code(error);
  if (!rd_kafka_error_is_fatal(error)) return code;
  char reason[256];
  const rd_kafka_resp_err_t cause = rd_kafka_fatal_error(client, reason, sizeof reason);
  return cause == RD_KAFKA_RESP_ERR_NO_ERROR ? code : cause;
}

bool IsFence(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR__FENCED || code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
         code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
}

absl::Status StartError(rd_kafka_t* producer, const rd_kafka_error_t* error, absl::string_view doing,
                        const std::string& group) {
  const absl::Status status = ErrorStatus(CauseOf(producer, error), doing);
  const std::string remedy = TransactionRemedy(status, PropertyOf(producer, "transaction.timeout.ms"), group);
  return absl::Status(status.code(), absl::StrCat(status.message(), remedy.empty() ? "" : ": ", remedy));
}

EventPtr AskAdmin(rd_kafka_t* client, int timeout_ms, const std::function<void(rd_kafka_queue_t*)>& send) {
  const QueuePtr queue(rd_kafka_queue_new(client));
  send(queue.get());
  return EventPtr(rd_kafka_queue_poll(queue.get(), timeout_ms));
}

absl::StatusOr<TopicShape> ShapeOf(rd_kafka_t* client, const std::string& name, int timeout_ms) {
  const TopicPtr topic(rd_kafka_topic_new(client, name.c_str(), nullptr));
  if (topic == nullptr)
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is no name of a topic"));
  const auto metadata = AskMetadata(client, topic.get(), timeout_ms);
  if (!metadata.ok()) return metadata.status();
  if ((*metadata)->topic_cnt != 1)
    return absl::UnavailableError("the broker returned no metadata for the topic");
  return ShapeIn((*metadata)->topics[0], name);
}

absl::StatusOr<std::map<std::string, absl::StatusOr<TopicShape>>> ShapesOfHandles(rd_kafka_t* client,
                                                                                  int timeout_ms) {
  const auto metadata = AskMetadata(client, nullptr, timeout_ms);
  if (!metadata.ok()) return metadata.status();
  std::map<std::string, absl::StatusOr<TopicShape>> shapes;
  for (int i = 0; i < (*metadata)->topic_cnt; ++i) {
    const rd_kafka_metadata_topic& described = (*metadata)->topics[i];
    shapes.insert_or_assign(described.topic, ShapeIn(described, described.topic));
  }
  return shapes;
}

absl::StatusOr<int32_t> CountPartitions(rd_kafka_t* client, const std::string& name, int timeout_ms) {
  const auto shape = ShapeOf(client, name, timeout_ms);
  if (!shape.ok()) return shape.status();
  return shape->partitions;
}

absl::StatusOr<std::vector<std::string>> LeadersOf(rd_kafka_t* client, const std::string& name,
                                                   int timeout_ms) {
  const TopicPtr topic(rd_kafka_topic_new(client, name.c_str(), nullptr));
  const auto metadata = AskMetadata(client, topic.get(), timeout_ms);
  if (!metadata.ok()) return metadata.status();
  std::set<int32_t> ids;
  for (int i = 0; i < (*metadata)->topic_cnt; ++i) {
    const rd_kafka_metadata_topic& described = (*metadata)->topics[i];
    for (int j = 0; j < described.partition_cnt; ++j) ids.insert(described.partitions[j].leader);
  }
  std::vector<std::string> leaders;
  for (int i = 0; i < (*metadata)->broker_cnt; ++i) {
    const rd_kafka_metadata_broker& broker = (*metadata)->brokers[i];
    if (ids.contains(broker.id)) {
      leaders.push_back(absl::StrCat("broker ", broker.id, " at ", broker.host, ":", broker.port));
    }
  }
  return leaders;
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
