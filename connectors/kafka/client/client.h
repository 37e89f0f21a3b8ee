// librdkafka's handles as C++ values, its errors as absl::Status, and its properties.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_H_

#include <librdkafka/rdkafka.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "connectors/kafka/client/fetch_room.h"
#include "src/pipeline/options/options.h"

namespace lethe::kafka {

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* p) const {
    Destroy(p);
  }
};
// rd_kafka_destroy(), after purging the requests of a producer: in all versions up to 2.15,
// rd_kafka_txns_term() frees the text of the transaction's error, and the answer to a later request of a
// fenced producer frees it again.
void DestroyClient(rd_kafka_t* client);
using ClientPtr = std::unique_ptr<rd_kafka_t, Destroyer<DestroyClient>>;
using TopicPtr = std::unique_ptr<rd_kafka_topic_t, Destroyer<rd_kafka_topic_destroy>>;
using MessagePtr = std::unique_ptr<rd_kafka_message_t, Destroyer<rd_kafka_message_destroy>>;
using PartitionListPtr =
    std::unique_ptr<rd_kafka_topic_partition_list_t, Destroyer<rd_kafka_topic_partition_list_destroy>>;
using GroupMetadataPtr =
    std::unique_ptr<rd_kafka_consumer_group_metadata_t, Destroyer<rd_kafka_consumer_group_metadata_destroy>>;
using HeadersPtr = std::unique_ptr<rd_kafka_headers_t, Destroyer<rd_kafka_headers_destroy>>;
using QueuePtr = std::unique_ptr<rd_kafka_queue_t, Destroyer<rd_kafka_queue_destroy>>;
using EventPtr = std::unique_ptr<rd_kafka_event_t, Destroyer<rd_kafka_event_destroy>>;
// An error of a transactional call; null is success.
using ErrorPtr = std::unique_ptr<rd_kafka_error_t, Destroyer<rd_kafka_error_destroy>>;

// Whether librdkafka, or another client of Kafka, has a property of that name.
bool IsProperty(const std::string& name);

// The properties of one client. Make...() reports the first that librdkafka refuses: its name, never its
// value.
class ClientConfig {
 public:
  ClientConfig();

  ClientConfig& Set(const std::string& name, const std::string& value);
  ClientConfig& Set(const std::vector<Property>& properties);

  const absl::Status& status() const { return status_; }

  rd_kafka_conf_t* raw() { return conf_.get(); }
  // Is called when the client is new, and may add interceptors.
  void OnNew(rd_kafka_interceptor_f_on_new_t* on_new, void* opaque);

  // InvalidArgument names the refused property, and why.
  absl::StatusOr<ClientPtr> MakeConsumer() { return Make(RD_KAFKA_CONSUMER); }
  absl::StatusOr<ClientPtr> MakeProducer() { return Make(RD_KAFKA_PRODUCER); }

 private:
  absl::StatusOr<ClientPtr> Make(rd_kafka_type_t type);

  std::unique_ptr<rd_kafka_conf_t, Destroyer<rd_kafka_conf_destroy>> conf_;
  bool is_intercepted_ = false;
  bool has_mechanism_ = false;  // sasl.mechanism was set
  absl::Status status_;
};

// The errors of a client while it connects. Outlives the client. Not thread-safe: one thread polls the
// client.
class ClientErrors {
 public:
  // Before the client exists; takes the configuration's opaque pointer.
  void Watch(ClientConfig& config);
  // The last error; OK if there was none. PermissionDenied: the brokers refuse its credentials.
  absl::Status Last(rd_kafka_t* client);
  // What failed, with the connection's error: a question whose connection fails just times out. Other
  // statuses than Unavailable stay as they are.
  absl::Status Explain(rd_kafka_t* client, const absl::Status& failed);

 private:
  absl::Status last_;
  absl::Time at_ = absl::InfinitePast();  // of `last_`
};

// Keeps a consumer fetching while it is read, and bounds what it fetches (FetchRoom). When its queue was full
// (queued.min.messages, queued.max.messages.kbytes), librdkafka waits a second before it checks for room: a
// fast reader gets one queue a second. Since 2.2 a property sets that interval. Before, setting the same
// credentials again is the one public call that makes its threads check and changes nothing else. Not
// thread-safe: it belongs to the reader.
class FetchOn {
 public:
  // The default properties of such a consumer, after `others`.
  static std::vector<Property> Defaults(std::vector<Property> others = {});

  explicit FetchOn(rd_kafka_t* consumer);
  // rd_kafka_consumer_poll().
  MessagePtr Poll(int timeout_ms);
  // What comes next may be anything: smaller fetches for a while.
  void ReadCarefully() {
    if (room_.Distrust()) Limit();
  }
  // Of the last message: its key, value and headers.
  size_t last_bytes() const { return last_bytes_; }

 private:
  MessagePtr Take(int timeout_ms);
  void Look(absl::Time now);
  void Limit();

  rd_kafka_t* consumer_;
  std::string username_;
  std::string password_;
  FetchRoom room_;
  size_t last_bytes_ = 0;
  int came_ = 0;  // messages since the last Look()
  absl::Time next_ = absl::InfinitePast();
  absl::Time busy_until_;
};

// The configuration of any client: `defaults`, overridden by the user's properties.
ClientConfig BaseConfig(const DaemonOptions& options, const std::vector<Property>& defaults = {});

// The value of a property, set or default; empty if there is no such property.
std::string PropertyOf(rd_kafka_t* client, const char* name);
// Likewise; 0 if there is no such number.
int64_t NumberOf(rd_kafka_t* client, const char* name);

// The text without parts of secrets that librdkafka may quote.
std::string WithoutSecrets(absl::string_view text);

// The pointer that librdkafka wants of a key or value: null for none, and never null for an empty one.
void* DataOf(const std::optional<absl::string_view>& bytes);

// Creates the headers if they are null.
void AddHeader(HeadersPtr& headers, absl::string_view name, const std::optional<absl::string_view>& value);

absl::Status ErrorStatus(rd_kafka_resp_err_t code, absl::string_view doing);

// The cause of a fatal error (calls after the first report only a wrong state); else the error's code.
rd_kafka_resp_err_t CauseOf(rd_kafka_t* client, const rd_kafka_error_t* error);

// Whether another producer took the transactional id over, or its epoch ran out: a new producer cures that.
bool IsFence(rd_kafka_resp_err_t code);

// The error of init_transactions, with its remedy.
absl::Status StartError(rd_kafka_t* producer, const rd_kafka_error_t* error, absl::string_view doing,
                        const std::string& group);

// Sends an admin request and waits for its answer; null: none came in time.
EventPtr AskAdmin(rd_kafka_t* client, int timeout_ms, const std::function<void(rd_kafka_queue_t*)>& send);

struct TopicShape {
  int32_t partitions = 0;
  int replicas = 0;         // of the partition that has the fewest
  bool has_leaders = true;  // each partition has one
};
// Asks a broker; errors as CountPartitions.
absl::StatusOr<TopicShape> ShapeOf(rd_kafka_t* client, const std::string& topic, int timeout_ms);

// The same of all topics of which there are handles of this client, in one request. Not OK: no answer came.
absl::StatusOr<std::map<std::string, absl::StatusOr<TopicShape>>> ShapesOfHandles(rd_kafka_t* client,
                                                                                  int timeout_ms);

// Asks a broker; the client then knows all partitions. NotFound: there is no such topic.
absl::StatusOr<int32_t> CountPartitions(rd_kafka_t* client, const std::string& topic, int timeout_ms);

// The brokers that lead partitions of the topic, as the cluster tells their addresses to clients, each once:
// "broker 1 at 10.0.0.1:9092".
absl::StatusOr<std::vector<std::string>> LeadersOf(rd_kafka_t* client, const std::string& topic,
                                                   int timeout_ms);

// Whether a retry may help: the broker is away, or not ready yet.
bool IsTransient(rd_kafka_resp_err_t code);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_H_
