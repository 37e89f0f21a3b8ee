#include "src/pipeline/preflight/probe_rules.h"

#include "absl/strings/str_cat.h"

namespace lethe {
namespace {

using Severity = Finding::Severity;

std::string WrittenTopic(const std::string& role, const std::string& topic) {
  return absl::StrCat(role, " topic ", topic);
}
std::string SeeWrite(const std::string& topic) {
  return absl::StrCat("see whether this user has Write on topic ", topic);
}

}  // namespace

std::string GrantGroup(const std::string& group) {
  return absl::StrCat("grant this user Read on group ", group);
}

std::string TransactionRemedy(const absl::Status& refused, absl::string_view timeout_ms,
                              const std::string& group) {
  if (absl::IsPermissionDenied(refused)) {
    return absl::StrCat("grant this user Write on transactional ids with the prefix ", group, "/");
  }
  if (absl::IsFailedPrecondition(refused)) {
    return absl::StrCat("transaction.timeout.ms is ", timeout_ms,
                        " here, and the brokers' transaction.max.timeout.ms is lower: set "
                        "transaction.timeout.ms under kafka to that at most, or raise that of the brokers");
  }
  return "";
}

std::vector<Finding> ApplyTransactionRules(const std::string& id, const std::string& group,
                                           const TriedTransaction& tried) {
  const std::string where = absl::StrCat("transactional id ", id);
  if (absl::IsInvalidArgument(tried.begun)) {
    return {{Severity::kError, "transactions", where, std::string(tried.begun.message()), "see kafka"}};
  }
  if (!tried.begun.ok()) {
    const std::string remedy = TransactionRemedy(tried.begun, tried.timeout_ms, group);
    return {{Severity::kError, "transactions", where, absl::StrCat("cannot be used: ", tried.begun.message()),
             remedy.empty() ? "check again" : remedy}};
  }
  Finding commits = {Severity::kOk, "commits", absl::StrCat("group ", group),
                     "takes offsets from this user (the attempt was aborted)", ""};
  if (!tried.offsets.ok()) {
    commits.severity = Severity::kError;
    commits.what = absl::StrCat("takes no offsets from this user: ", tried.offsets.message());
    commits.remedy = GrantGroup(group);
  }
  return {{Severity::kOk, "transactions", where,
           absl::StrCat("may be used; lanes need the prefix ", group, "/"), ""},
          std::move(commits)};
}

Finding ApplyWriteRule(const std::string& role, const std::string& topic, const absl::Status& tried) {
  const std::string where = WrittenTopic(role, topic);
  if (tried.ok() || absl::IsOutOfRange(tried))
    return {Severity::kOk, "write", where, "may be written to", ""};
  if (absl::IsInvalidArgument(tried)) {
    return {Severity::kError, "write", where, std::string(tried.message()), "see kafka"};
  }
  if (absl::IsPermissionDenied(tried)) {
    return {Severity::kError, "write", where, absl::StrCat("may not be written to: ", tried.message()),
            absl::StrCat("grant this user Write on topic ", topic)};
  }
  return {Severity::kWarning, "write", where,
          absl::StrCat("did not say whether it may be written to: ", tried.message()), SeeWrite(topic)};
}

Finding WriteNotTried(const std::string& role, const std::string& topic) {
  return {Severity::kWarning, "write", WrittenTopic(role, topic),
          "was not tried: its size limit is not known, or is very large", SeeWrite(topic)};
}

}  // namespace lethe
