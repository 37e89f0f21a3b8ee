#include "src/cli/commands/reconcile_command.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "connectors/kafka/client/fixed_properties.h"
#include "src/cli/config/units.h"
#include "src/cli/reconcile/peer_process.h"
#include "src/cli/reconcile/reconcile_messages.h"
#include "src/cli/reconcile/reconcile_side.h"
#include "src/cli/reconcile/reconcile_talk.h"
#include "src/cli/reconcile/reconcile_text.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/log.h"
#include "src/cli/terminal/plain_text.h"
#include "src/cli/terminal/terminal.h"
#include "src/pipeline/clock/steady_time.h"
#include "src/record/timestamp.h"

namespace lethe {
namespace {

using Copy = ReconcileCommandOptions::Copy;

constexpr int kExitEqual = 0;
constexpr int kExitDifferent = 1;
constexpr int kExitError = 2;

constexpr absl::Duration kLast = absl::Hours(24);
constexpr absl::Duration kSettle = absl::Minutes(1);
// The largest message, whatever the peer announces; a copied record must fit.
constexpr int64_t kLargestMessage = int64_t{64} << 20;

absl::Status StoreTime(absl::string_view text, std::optional<absl::Time>& target) {
  target = ParseRfc3339(text);
  return target ? absl::OkStatus()
                : BadValue(text, "expected a date and time as RFC 3339 has them: 2026-11-22T18:00:00Z");
}

constexpr Setting<ReconcileCommandOptions> kReconcileSettings[] = {
    BrokersSetting<ReconcileCommandOptions>("This side's Kafka cluster: one or more of its brokers"),
    {"topic", "TOPIC", "", true, "This side's topic", "orders",
     By<StoreTopic, At<&ReconcileCommandOptions::topic>>},
    {"id", "FIELD[+FIELD...]", "", true,
     "Where a record's id is: key, value, header:NAME, json:/pointer, avro:/pointer, protobuf:/name, "
     "framed.json:/pointer, or several joined with +; the same on both sides",
     "json:/order/id", Value<At<&ReconcileCommandOptions::id>>},
    {"peer", "COMMAND", "", false,
     "What /bin/sh runs to reach the other side: lethe reconcile --serve there, with its brokers and topic",
     "ssh site-b lethe reconcile --serve --brokers b:9092 --topic orders --id json:/order/id",
     Value<At<&ReconcileCommandOptions::peer>>},
    {"last", "DURATION", "24h", false, "Compare records that are at most this old, by their timestamps", "7d",
     Value<At<&ReconcileCommandOptions::window, &ReconcileWindow::last>>, "1ms or more"},
    {"since", "TIME", "--until less --last", false, "Compare records from this time on",
     "2026-11-22T18:00:00Z", By<StoreTime, At<&ReconcileCommandOptions::window, &ReconcileWindow::since>>},
    {"until", "TIME", "now less --settle", false, "Compare records before this time", "2026-11-22T19:00:00Z",
     By<StoreTime, At<&ReconcileCommandOptions::window, &ReconcileWindow::until>>},
    {"settle", "DURATION", "1m", false,
     "How long a record may take to be on both sides: until then it is not missing", "10m",
     Value<At<&ReconcileCommandOptions::window, &ReconcileWindow::settle>>, "1ms or more"},
    {"copy", "none|to-peer|from-peer|both", "none", false,
     "Which side gets its missing records; with --serve, what the other side may request", "both",
     Choice<At<&ReconcileCommandOptions::copy>, Copy::kNone, Copy::kToPeer, Copy::kFromPeer, Copy::kBoth>},
    {"method", "auto|table|filter", "auto", false,
     "How to find differences: lookup tables, Distributed Bloom Filters, or whichever costs less", "table",
     Choice<At<&ReconcileCommandOptions::method>, ReconcileMethod::kAuto, ReconcileMethod::kLookupTable,
            ReconcileMethod::kFilter>},
    {"memory", "SIZE", "256MiB", false,
     "Memory limit for ids on this side; with more ids it reads in several passes", "1GiB",
     Value<At<&ReconcileCommandOptions::memory_bytes>>, "1MiB or more"},
    {"timeout", "DURATION", "1m", false, "How long the other side may be silent", "5m",
     Value<At<&ReconcileCommandOptions::timeout>>, "2s or more"},
    FormatSetting<ReconcileCommandOptions>("How the report is printed", "output"),
    SwitchSetting<ReconcileCommandOptions, &ReconcileCommandOptions::serves>(
        "serve", "Run as the peer, on standard input and output"),
    RegistrySetting<ReconcileCommandOptions>("schema_registry.url"),
    RegistrySetting<ReconcileCommandOptions>("schema_registry.user"),
    RegistrySetting<ReconcileCommandOptions>("schema_registry.password"),
    RegistrySetting<ReconcileCommandOptions>("schema_registry.token"),
    RegistrySetting<ReconcileCommandOptions>("schema_registry.ca_file"),
    RegistrySetting<ReconcileCommandOptions>("schema_registry.timeout"),
    KafkaSetting<ReconcileCommandOptions>(),
};

bool Copies(const ReconcileCommandOptions& options, Copy direction) {
  const Copy copy = options.copy.value_or(Copy::kNone);
  return copy == direction || copy == Copy::kBoth;
}

absl::StatusOr<ReconcileAsk> AskOf(const ReconcileCommandOptions& options) {
  const ReconcileWindow& window = options.window;
  const absl::Duration settle = window.settle.value_or(kSettle);
  const absl::Time settled = absl::Now() - settle;
  const absl::Time end = std::min(window.until.value_or(settled), settled);
  const absl::Time begin = window.since ? *window.since : end - window.last.value_or(kLast);
  ReconcileAsk ask;
  ask.begin_ms = std::max<int64_t>(absl::ToUnixMillis(begin), 0);
  ask.end_ms = absl::ToUnixMillis(end);
  ask.settle_ms = absl::ToInt64Milliseconds(settle);
  ask.to_peer = Copies(options, Copy::kToPeer);
  ask.from_peer = Copies(options, Copy::kFromPeer);
  ask.method = options.method.value_or(ReconcileMethod::kAuto);
  ReconcileAsk checked;
  if (Decode(Encode(ask), checked)) return ask;
  return absl::InvalidArgumentError(
      absl::StrCat("the window from ", absl::FormatTime(absl::RFC3339_sec, begin, absl::UTCTimeZone()),
                   " to ", absl::FormatTime(absl::RFC3339_sec, end, absl::UTCTimeZone()),
                   " is empty: --since must be before --until, and before now less --settle"));
}

// The conversation from the first word to the last, of either side; reconcile_messages.h says who says what.
absl::Status Converse(const ReconcileCommandOptions& options, ReconcileTalk& talk, ReconcileText& text) {
  const bool initiates = !options.serves;
  ReconcileAsk ask = text.window;
  absl::Status status =
      initiates ? talk.Send(ReconcileWord::kAsk, Encode(ask)) : talk.Receive(ReconcileWord::kAsk, ask);
  if (!status.ok()) return status;
  if (!initiates) status = CheckAllowed(options, ask);
  if (!status.ok()) return status;
  const bool receives = initiates ? ask.from_peer : ask.to_peer;
  auto opened = ReconcileSide::Open(options, ask, receives, talk);
  if (!opened.ok()) return talk.status().ok() ? opened.status() : talk.status();
  ReconcileSide& side = **opened;
  ReconcileFacts theirs;
  status = talk.Exchange(ReconcileWord::kFacts, side.facts(), theirs);
  if (!status.ok()) return status;

  text.passes = std::max(side.facts().passes, theirs.passes);
  uint64_t only_there = 0;
  for (int64_t pass = 0; pass < text.passes; ++pass) {
    status = side.Read(pass, text.passes);
    if (!status.ok()) return status;
    std::vector<int64_t> whole_since(1);
    status = talk.Exchange(ReconcileWord::kReady, std::vector<int64_t>{side.whole_since_ms()}, whole_since);
    if (status.ok()) status = side.Narrow(std::max(side.whole_since_ms(), whole_since[0]));
    if (!status.ok()) return status;
    const absl::StatusOr<Difference> difference = talk.peers().Compare(side.Keys(), ask.method);
    if (!difference.ok()) return difference.status();
    side.Take(*difference);
    only_there += difference->only_there;
    text.compare_bytes += difference->bytes;
    text.table_rounds += difference->table_rounds;
    text.filter_rounds += difference->filter_rounds;
    text.bytes_by_tables += difference->bytes_by_tables;
    text.bytes_by_filters += difference->bytes_by_filters;
    text.bytes_of_all_keys += difference->bytes_of_all_keys;
    for (const bool is_to_peer : {true, false}) {
      if (is_to_peer ? !ask.to_peer : !ask.from_peer) continue;
      status =
          is_to_peer == initiates ? side.SendMissing() : side.ReceiveMissing(theirs, difference->only_there);
      if (!status.ok()) return status;
    }
  }
  absl::StatusOr<SideReport> report = side.Report();
  if (!report.ok()) return report.status();
  text.window = side.window();
  text.here = *std::move(report);
  status = talk.Exchange(ReconcileWord::kReport, text.here, text.there);
  if (!status.ok()) return status;
  const SideReport& there = text.there;
  const bool agrees = there.facts.cluster == theirs.cluster && there.facts.topic == theirs.topic &&
                      there.facts.partitions == theirs.partitions && there.copied == side.received() &&
                      static_cast<uint64_t>(there.only + there.unsettled) == only_there;
  return agrees ? absl::OkStatus() : ReconcileTalk::Contradiction();
}

absl::Status Reconcile(const ReconcileCommandOptions& options, FileChannel& channel,
                       const std::atomic<bool>& interrupted, ReconcileText& text, bool& peer_knows) {
  absl::StatusOr<Reconciliation> peers = Reconciliation::Begin(
      channel, {.initiates = !options.serves,
                .subject = absl::StrCat(options.id.ToString(), " (", options.id.Fingerprint(), ")"),
                .largest_message_bytes = kLargestMessage});
  if (!peers.ok()) return peers.status();
  ReconcileTalk talk(*peers, channel, interrupted, options.timeout, /*shows=*/!options.serves);
  absl::Status status = Converse(options, talk, text);
  if (!status.ok()) peer_knows = talk.Fail(status);
  text.bytes = peers->bytes();
  return status;
}

int Report(const absl::Status& status, std::ostream& err) {
  err << "lethe: " << Printable(status.message()) << "\n";
  return kExitError;
}

// The peer: the process that started it reports, including errors of this side.
int Serve(const ReconcileCommandOptions& options, const std::atomic<bool>& interrupted, std::ostream& err) {
  FileChannel channel(
      STDIN_FILENO, STDOUT_FILENO, options.timeout, [&] { return !interrupted.load(); },
      [] { return std::string(); });
  ReconcileText text;
  bool peer_knows = false;
  const absl::Status status = Reconcile(options, channel, interrupted, text, peer_knows);
  if (status.ok()) return kExitEqual;
  return peer_knows ? kExitError : Report(status, err);
}

constexpr absl::string_view kRunItAgain = "; run it again: no record is copied twice";

// The other side has gone, or a broker; not what is wrong with the request or the data.
bool IsWorthAnotherRun(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
}

int Initiate(const ReconcileCommandOptions& options, const std::atomic<bool>& interrupted, std::ostream& out,
             std::ostream& err) {
  const absl::Time begin = SteadyNow();
  const absl::StatusOr<ReconcileAsk> ask = AskOf(options);
  if (!ask.ok()) return Report(ask.status(), err);
  auto peer = PeerProcess::Start(options.peer);
  if (!peer.ok()) return Report(peer.status(), err);
  FileChannel channel((*peer)->in(), (*peer)->out(), options.timeout, [&] { return !interrupted.load(); },
                      [&] {
                        int code = 0;
                        if (!(*peer)->Ends(absl::Seconds(1), code)) return std::string();
                        return absl::StrCat(": its command has ended with code ", code,
                                            code == 0 ? "" : ", and its standard error may say why");
                      });
  ReconcileText text;
  text.id = options.id.ToString();
  text.window = *ask;
  text.asked_begin_ms = ask->begin_ms;
  bool peer_knows = false;
  const absl::Status status = Reconcile(options, channel, interrupted, text, peer_knows);
  if (IsWorthAnotherRun(status)) {
    return Report(absl::Status(status.code(), absl::StrCat(status.message(), kRunItAgain)), err);
  }
  if (!status.ok()) return Report(status, err);
  text.elapsed = SteadyNow() - begin;
  if (options.format == ReportFormat::kJson) {
    WriteReconcileJson(text, out);
  } else {
    WriteReconcile(text, TextStyle::Of(STDOUT_FILENO), out);
  }
  out.flush();
  return text.are_equal() ? kExitEqual : kExitDifferent;
}

}  // namespace

absl::Span<const Setting<ReconcileCommandOptions>> ReconcileSettings() { return kReconcileSettings; }

absl::Status CheckReconcile(const ReconcileCommandOptions& options) {
  const auto error = [](absl::string_view what) { return absl::InvalidArgumentError(what); };
  if (absl::Status checked = CheckRegistryOf({.id = options.id}, options.schema_registry); !checked.ok()) {
    return checked;
  }
  if (options.serves) {
    if (options.peer.empty() && !options.window.is_given() && !options.method) return absl::OkStatus();
    return error(
        "--serve does as the side with --peer says: give --peer, --last, --since, --until, --settle and "
        "--method there alone");
  }
  if (options.peer.empty()) {
    return error(
        "missing --peer, for example --peer 'ssh site-b lethe reconcile --serve --brokers b:9092 --topic "
        "orders --id json:/order/id'");
  }
  if (options.window.since && options.window.last)
    return error("--since and --last say both when the window begins");
  return absl::OkStatus();
}

absl::Status CheckAllowed(const ReconcileCommandOptions& options, const ReconcileAsk& ask) {
  const auto denied = [&](absl::string_view what, absl::string_view flag) {
    return absl::PermissionDeniedError(absl::StrCat("--serve does not let the other side ", what, " ",
                                                    options.topic, ": add --copy ", flag,
                                                    " (or both) to its command, after --serve"));
  };
  if (ask.to_peer && !Copies(options, Copy::kFromPeer)) return denied("write records into", "from-peer");
  if (ask.from_peer && !Copies(options, Copy::kToPeer)) return denied("copy records of", "to-peer");
  return absl::OkStatus();
}

int RunReconcile(const ReconcileCommandOptions& options, std::ostream& out, std::ostream& err) {
  // stdout is for the report, or the peer.
  StartLog({.level = LogLevel::kWarning});
  if (options.serves && isatty(STDIN_FILENO) != 0) {
    return Report(absl::InvalidArgumentError(
                      "--serve speaks with another lethe and not with people: it is for --peer's command"),
                  err);
  }
  const std::string warning = kafka::SecretsOnCommandLine(options.properties.exposed);
  if (!warning.empty()) spdlog::warn("{}", warning);
  // A peer that has gone is an error, and no signal.
  signal(SIGPIPE, SIG_IGN);
  const std::atomic<bool>& interrupted = CatchInterrupts();
  return options.serves ? Serve(options, interrupted, err) : Initiate(options, interrupted, out, err);
}

}  // namespace lethe
