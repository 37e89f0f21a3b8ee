#include "tests/support/acls.h"

#include <functional>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "tests/support/kafka_tools.h"

namespace lethe::test {
namespace {

constexpr int kAclTimeoutMs = 30'000;

using Binding = std::unique_ptr<rd_kafka_AclBinding_t, decltype(&rd_kafka_AclBinding_destroy)>;
using Event = std::unique_ptr<rd_kafka_event_t, decltype(&rd_kafka_event_destroy)>;

Handle NewClient(const std::string& bootstrap) {
  char reason[512];
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap.c_str(), reason, sizeof reason);
  rd_kafka_conf_set_log_cb(conf, nullptr);
  rd_kafka_t* client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, reason, sizeof reason);
  if (client == nullptr) throw std::runtime_error(reason);
  return Handle(client);
}

Binding Made(const Acl& acl, bool as_filter) {
  char reason[512];
  rd_kafka_AclBinding_t* binding = (as_filter ? rd_kafka_AclBindingFilter_new : rd_kafka_AclBinding_new)(
      acl.resource == Acl::Resource::kGroup ? RD_KAFKA_RESOURCE_GROUP : RD_KAFKA_RESOURCE_TOPIC,
      acl.name.c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL, acl.principal.c_str(), "*", acl.operation,
      RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW, reason, sizeof reason);
  if (binding == nullptr) throw std::runtime_error(reason);
  return Binding(binding, &rd_kafka_AclBinding_destroy);
}

// The answer to one request; null if there is none.
Event Ask(rd_kafka_t* client, const std::function<void(rd_kafka_queue_t*)>& start) {
  const std::unique_ptr<rd_kafka_queue_t, decltype(&rd_kafka_queue_destroy)> queue(rd_kafka_queue_new(client),
                                                                                   &rd_kafka_queue_destroy);
  start(queue.get());
  return Event(rd_kafka_queue_poll(queue.get(), kAclTimeoutMs), &rd_kafka_event_destroy);
}

absl::Status StatusOf(const Event& answer) {
  if (answer == nullptr) return absl::DeadlineExceededError("no answer to a request for ACLs");
  if (rd_kafka_event_error(answer.get()) == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
  return absl::UnknownError(rd_kafka_event_error_string(answer.get()));
}

}  // namespace

Acls::Acls(const std::string& bootstrap) : bootstrap_(bootstrap), client_(NewClient(bootstrap)) {}

absl::Status Acls::RunTool(const Acl& acl, bool add) {
  const absl::StatusOr<Finished> finished =
      RunKafkaTool({"kafka-acls.sh", "--bootstrap-server", bootstrap_, add ? "--add" : "--remove", "--force",
                    "--allow-principal", acl.principal, "--operation", "Write", "--transactional-id",
                    acl.name, "--resource-pattern-type", "prefixed"});
  if (!finished.ok()) return finished.status();
  if (finished->exit_code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("kafka-acls.sh failed:\n", finished->out, finished->err));
}

bool Acls::IsThere(const Acl& acl) {
  const Binding filter = Made(acl, /*as_filter=*/true);
  const Event answer = Ask(client_.get(), [&](rd_kafka_queue_t* queue) {
    rd_kafka_DescribeAcls(client_.get(), filter.get(), nullptr, queue);
  });
  size_t count = 0;
  if (StatusOf(answer).ok()) {
    rd_kafka_DescribeAcls_result_acls(rd_kafka_event_DescribeAcls_result(answer.get()), &count);
  }
  return count > 0;
}

absl::Status Acls::Grant(const Acl& acl) {
  if (acl.resource == Acl::Resource::kTransactionalIdPrefix) return RunTool(acl, /*add=*/true);
  const Binding binding = Made(acl, /*as_filter=*/false);
  rd_kafka_AclBinding_t* bindings[] = {binding.get()};
  const absl::Status status = StatusOf(Ask(client_.get(), [&](rd_kafka_queue_t* queue) {
    rd_kafka_CreateAcls(client_.get(), bindings, 1, nullptr, queue);
  }));
  if (!status.ok()) return status;
  // The controller has it; the broker hears of it a moment later.
  return WaitUntil([&] { return IsThere(acl); }, absl::Seconds(30))
             ? absl::OkStatus()
             : absl::DeadlineExceededError(absl::StrCat("the ACL on ", acl.name, " does not appear"));
}

absl::Status Acls::Revoke(const Acl& acl) {
  if (acl.resource == Acl::Resource::kTransactionalIdPrefix) return RunTool(acl, /*add=*/false);
  const Binding filter = Made(acl, /*as_filter=*/true);
  rd_kafka_AclBindingFilter_t* filters[] = {filter.get()};
  const absl::Status status = StatusOf(Ask(client_.get(), [&](rd_kafka_queue_t* queue) {
    rd_kafka_DeleteAcls(client_.get(), filters, 1, nullptr, queue);
  }));
  if (!status.ok()) return status;
  return WaitUntil([&] { return !IsThere(acl); }, absl::Seconds(30))
             ? absl::OkStatus()
             : absl::DeadlineExceededError(absl::StrCat("the ACL on ", acl.name, " does not go"));
}

}  // namespace lethe::test
