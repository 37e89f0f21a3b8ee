#include "connectors/kafka/group/instance_claim.h"

#include <librdkafka/rdkafka.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "connectors/kafka/client/client.h"
#include "connectors/kafka/group/consumer.h"
#include "connectors/kafka/topics/topics.h"

namespace lethe::kafka {
namespace {

// Two processes that were both there first, after a network was cut, say: one of them must give in.
constexpr int kMostInARow = 3;
constexpr int kAskTimeoutMs = 3000;

std::string PropertyOr(const DaemonOptions& options, absl::string_view name, std::string fallback) {
  for (const auto& [key, value] : options.properties) {
    if (key == name) fallback = value;
  }
  return fallback;
}

absl::Duration SessionTimeout(const DaemonOptions& options) {
  int64_t ms = 0;
  const std::string given = PropertyOr(options, "session.timeout.ms", "");
  return absl::SimpleAtoi(given, &ms) ? absl::Milliseconds(ms) : absl::Seconds(45);  // librdkafka's default
}

}  // namespace

InstanceClaim::InstanceClaim(const DaemonOptions& options, AskMembers ask, std::function<absl::Time()> now)
    : options_(options),
      is_static_(options.static_membership != StaticMembership::kNever),
      session_timeout_(SessionTimeout(options)),
      ask_(std::move(ask)),
      now_(std::move(now)) {}

std::string InstanceClaim::NameOf(int lane) const {
  return is_static_ ? Consumer::InstanceName(options_, lane)
                    : PropertyOr(options_, "client.id", absl::StrCat("lethe-", options_.instance));
}

void InstanceClaim::Look() {
  const auto members = ask_();
  if (!members.ok()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const NamedMember& member : *members) {
    bool has_our_name = false;
    for (int lane = 0; lane < options_.lanes && !has_our_name; ++lane) {
      has_our_name = member.name == NameOf(lane);
    }
    if (!has_our_name) continue;
    newcomer_until_ = now_() + session_timeout_;
    spdlog::info(
        "group {} has a member named {}, on host {}: a former life of this process, whose place it takes; if "
        "that process lives, this one ends",
        options_.group, member.name, member.host);
    return;
  }
}

absl::StatusOr<std::string> InstanceClaim::HostOfOther(int lane, const std::string& own) const {
  const auto members = ask_();
  if (!members.ok()) return members.status();
  const std::string name = NameOf(lane);
  int of_this_name = 0;
  std::string host;
  for (const NamedMember& member : *members) {
    if (member.name != name) continue;
    ++of_this_name;
    if (member.id != own) host = member.host;
  }
  // Without static membership the process's lanes share a name.
  return of_this_name > (is_static_ ? 0 : options_.lanes) ? host : "";
}

absl::Status InstanceClaim::Fenced(int lane, const std::string& own) {
  const absl::StatusOr<std::string> asked = HostOfOther(lane, own);
  // librdkafka 2.0.2 fences itself: when the session has timed out, it may send a heartbeat without its
  // member's id, which a broker answers as if another had come. And a slow transaction is fenced, too.
  // A consumer of a static member is fenced by another for certain, whether the group can be asked or not.
  if (asked.ok() ? asked->empty() : !is_static_) return absl::OkStatus();
  const std::string host = asked.value_or("that the brokers do not tell");
  const std::lock_guard<std::mutex> lock(mutex_);
  const absl::Time now = now_();
  Row& row = rows_[lane];
  row.fences = now - std::exchange(row.last, now) < session_timeout_ / 4 ? row.fences + 1 : 1;
  const bool is_newcomer = now < newcomer_until_;
  if (!is_newcomer && row.fences <= kMostInARow) {
    spdlog::warn(
        "lane {}: another process, on host {}, runs as instance {} of group {}: taking the name back from "
        "it. "
        "Give each process its own instance",
        lane, host, options_.instance, options_.group);
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("another process, on host ", host, ", runs as instance ", options_.instance, " of group ",
                   options_.group,
                   " and stays: the two would fence each other. Give each process its own instance, such as "
                   "${HOSTNAME} in a StatefulSet"));
}

absl::StatusOr<std::vector<NamedMember>> AskGroupMembers(const DaemonOptions& options) {
  ClientErrors errors;
  auto client = MakeAskingClient(options, errors);
  if (!client.ok()) return client.status();
  const char* group = options.group.c_str();
  const EventPtr event = AskAdmin(client->get(), kAskTimeoutMs, [&](rd_kafka_queue_t* queue) {
    rd_kafka_DescribeConsumerGroups(client->get(), &group, 1, nullptr, queue);
  });
  const rd_kafka_DescribeConsumerGroups_result_t* result =
      event == nullptr ? nullptr : rd_kafka_event_DescribeConsumerGroups_result(event.get());
  if (result == nullptr) return absl::UnavailableError("the brokers did not describe the group in time");
  size_t count = 0;
  const rd_kafka_ConsumerGroupDescription_t** groups =
      rd_kafka_DescribeConsumerGroups_result_groups(result, &count);
  if (count != 1) return absl::UnavailableError("the brokers did not describe the group");
  const rd_kafka_error_t* error = rd_kafka_ConsumerGroupDescription_error(groups[0]);
  if (error != nullptr) return ErrorStatus(rd_kafka_error_code(error), "describing the group");
  std::vector<NamedMember> members;
  for (size_t i = 0; i < rd_kafka_ConsumerGroupDescription_member_count(groups[0]); ++i) {
    const rd_kafka_MemberDescription_t* member = rd_kafka_ConsumerGroupDescription_member(groups[0], i);
    const char* instance = rd_kafka_MemberDescription_group_instance_id(member);
    members.push_back({rd_kafka_MemberDescription_consumer_id(member),
                       instance != nullptr ? instance : rd_kafka_MemberDescription_client_id(member),
                       rd_kafka_MemberDescription_host(member)});
  }
  return members;
}

}  // namespace lethe::kafka
