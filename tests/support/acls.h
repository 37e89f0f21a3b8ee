// Permissions on a broker that has an authorizer.
#ifndef LETHE_TESTS_SUPPORT_ACLS_H_
#define LETHE_TESTS_SUPPORT_ACLS_H_

#include <librdkafka/rdkafka.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tests/support/kafka_client.h"

namespace lethe::test {

// What somebody may do to something, from any host.
struct Acl {
  enum class Resource { kTopic, kGroup, kTransactionalIdPrefix };
  std::string principal;  // User:lethe
  Resource resource = Resource::kTopic;
  std::string name;
  rd_kafka_AclOperation_t operation = RD_KAFKA_ACL_OPERATION_READ;
};

// Thread-compatible.
class Acls {
 public:
  // Of the cluster; by a listener that may administer it.
  explicit Acls(const std::string& bootstrap);

  // Return when the broker acts by it. Both may be done again. Those on transactional ids, of which
  // librdkafka knows nothing, are made by Kafka's own tool: the broker acts by them at the latest when it
  // does by the next of the others.
  absl::Status Grant(const Acl& acl);
  absl::Status Revoke(const Acl& acl);

 private:
  bool IsThere(const Acl& acl);

  absl::Status RunTool(const Acl& acl, bool add);

  const std::string bootstrap_;
  const Handle client_;
};

}  // namespace lethe::test

#endif  // LETHE_TESTS_SUPPORT_ACLS_H_
