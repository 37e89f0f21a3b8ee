// librdkafka's handles as C++ values, its errors as absl::Status, its properties with the reason why one
// was refused.
#ifndef LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_H_
#define LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_H_

#include <librdkafka/rdkafka.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "src/pipeline/options/options.h"

namespace lethe::kafka {

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* p) const {
    Destroy(p);
  }
};
// As rd_kafka_destroy(), also for a producer that was fenced with several requests on their way: they are
// purged first. (rd_kafka_txns_term() frees the text of the transaction's error, and the answer to the next
// such request frees it again, in all versions up to 2.15.)
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

// Collects properties for one client. The first that librdkafka refuses is what Make... says: its name, never
// its value.
class ClientConfig {
 public:
  ClientConfig();

  ClientConfig& Set(const std::string& name, const std::string& value);
  ClientConfig& Set(const std::vector<Property>& properties);

  // What was refused so far.
  const absl::Status& status() const { return status_; }

  rd_kafka_conf_t* raw() { return conf_.get(); }

  // Makes the client. InvalidArgument names the property that was refused, and why.
  absl::StatusOr<ClientPtr> MakeConsumer() { return Make(RD_KAFKA_CONSUMER); }
  absl::StatusOr<ClientPtr> MakeProducer() { return Make(RD_KAFKA_PRODUCER); }

 private:
  absl::StatusOr<ClientPtr> Make(rd_kafka_type_t type);

  std::unique_ptr<rd_kafka_conf_t, Destroyer<rd_kafka_conf_destroy>> conf_;
  absl::Status status_;
};

// What a client meets by itself while it connects: brokers that are away or do not let it in. Outlives the
// client. Thread safety: none; the client is polled by one thread.
class ClientErrors {
 public:
  // Before the client is made; takes the configuration's opaque pointer.
  void Watch(ClientConfig& config);
  // The last that it has met; OK if there was none. PermissionDenied: it was let in by none, since its
  // credentials are wrong.
  absl::Status Last(rd_kafka_t* client);

 private:
  absl::Status last_;
};

// Has a consumer fetch on while it is read from. Once its queue has been full (queued.min.messages,
// queued.max.messages.kbytes), librdkafka looks again after a second, whenever there is room: a reader that
// empties the queue sooner waits for the rest of that second, and reads a queue a second at most. Since 2.2 a
// property says when it looks again; before, the one public call that has its threads look, and changes
// nothing, is to give the credentials that it has once more. Thread safety: that of the consumer's reader.
class FetchOn {
 public:
  // The defaults of such a consumer, beside others.
  static std::vector<Property> Defaults(std::vector<Property> others = {});

  explicit FetchOn(rd_kafka_t* consumer);
  // As rd_kafka_consumer_poll().
  MessagePtr Poll(int timeout_ms);

 private:
  void Look(absl::Time now);

  rd_kafka_t* consumer_;
  std::string username_;
  std::string password_;
  int came_ = 0;  // messages since it was last made to look
  absl::Time next_ = absl::InfinitePast();
  absl::Time busy_until_;
};

// The configuration of one of the daemon's clients: `defaults`, then what the user passes through, which
// wins.
ClientConfig BaseConfig(const DaemonOptions& options, const std::vector<Property>& defaults = {});

// A property of a client, with its defaults; empty if there is none of that name.
std::string PropertyOf(rd_kafka_t* client, const char* name);

// What librdkafka says, without what it may quote of a secret.
std::string WithoutSecrets(absl::string_view text);

// The pointer that librdkafka wants of a key or value: null for none, and never null for an empty one.
void* DataOf(const std::optional<absl::string_view>& bytes);

// Creates the headers if they are null.
void AddHeader(HeadersPtr& headers, absl::string_view name, const std::optional<absl::string_view>& value);

absl::Status ErrorStatus(rd_kafka_resp_err_t code, absl::string_view doing);

// What a fatal error of a client is the consequence of: a call after the first may only say that it is in no
// state for it. Of another error, its code.
rd_kafka_resp_err_t CauseOf(rd_kafka_t* client, const rd_kafka_error_t* error);

// Whether another producer took the transactional id over, or its epoch ran out: a new producer cures that.
bool IsFence(rd_kafka_resp_err_t code);

// The remedy where a transactional producer of this group cannot start because of `code`; empty: none is
// known.
std::string TransactionRemedy(rd_kafka_t* producer, rd_kafka_resp_err_t code, const std::string& group);
// The error of init_transactions, with its remedy.
absl::Status StartError(rd_kafka_t* producer, const rd_kafka_error_t* error, absl::string_view doing,
                        const std::string& group);

// Sends an admin request and waits for its answer; null: none came in time.
EventPtr AskAdmin(rd_kafka_t* client, int timeout_ms, const std::function<void(rd_kafka_queue_t*)>& send);

struct TopicShape {
  int32_t partitions = 0;
  int replicas = 0;  // of the partition that has the fewest
};
// Of a topic, as a broker says now; errors as CountPartitions.
absl::StatusOr<TopicShape> ShapeOf(rd_kafka_t* client, const std::string& topic, int timeout_ms);

// How many partitions a topic has, as a broker says now; from then on the client knows them all. NotFound:
// there is no such topic.
absl::StatusOr<int32_t> CountPartitions(rd_kafka_t* client, const std::string& topic, int timeout_ms);

// Whether waiting and asking again may help: the broker is away, or is not ready yet.
bool IsTransient(rd_kafka_resp_err_t code);

}  // namespace lethe::kafka

#endif  // LETHE_CONNECTORS_KAFKA_CLIENT_CLIENT_H_
