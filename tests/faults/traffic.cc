#include "tests/faults/traffic.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/faults/schedule.h"

namespace lethe::test {
namespace {

constexpr absl::Duration kTick = absl::Milliseconds(10);
constexpr int kFlushTimeoutMs = 120'000;
constexpr std::array<const char*, 5> kCountries = {"at", "de", "is", "jp", "uy"};
constexpr int64_t kWildTimes[] = {1, 631'152'000'000, 4'102'444'800'000};  // 1970, 1990, 2100

// The same for the same number, whatever else was drawn.
uint64_t Scatter(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Too large for the output however it is compressed.
std::string Incompressible(uint64_t seed) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text(2 * kOutputMaxMessageBytes, ' ');
  for (char& c : text) c = kDigits[(seed = Scatter(seed)) % 64];
  return text;
}

absl::StatusOr<rd_kafka_t*> NewRetryingProducer(const std::string& bootstrap, void* opaque,
                                                void (*on_delivery)(rd_kafka_t*, const rd_kafka_message_t*,
                                                                    void*)) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 512> error;
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"bootstrap.servers", bootstrap.c_str()},
                                                        {"enable.idempotence", "false"},
                                                        {"acks", "all"},
                                                        {"retries", "1000"},
                                                        {"retry.backoff.ms", "50"},
                                                        {"request.timeout.ms", "500"},
                                                        {"socket.timeout.ms", "700"},
                                                        {"message.timeout.ms", "90000"},
                                                        {"reconnect.backoff.ms", "20"},
                                                        {"reconnect.backoff.max.ms", "200"},
                                                        {"topic.metadata.refresh.interval.ms", "500"},
                                                        {"linger.ms", "5"},
                                                        {"batch.num.messages", "100"}}) {
    if (rd_kafka_conf_set(conf, name, value, error.data(), error.size()) != RD_KAFKA_CONF_OK) {
      rd_kafka_conf_destroy(conf);
      return absl::InvalidArgumentError(error.data());
    }
  }
  rd_kafka_conf_set_log_cb(conf, nullptr);
  rd_kafka_conf_set_opaque(conf, opaque);
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  rd_kafka_t* producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error.data(), error.size());
  if (producer != nullptr) return producer;
  rd_kafka_conf_destroy(conf);
  return absl::InternalError(error.data());
}

Record MakeRecord(const FaultyEvent& event, int32_t partition, int64_t at_ms) {
  Record record;
  record.key = absl::StrCat("key of ", event.id);
  record.value = event.ToJson();
  record.headers = {{"sending", absl::StrCat(event.send)}, {"null", std::nullopt}};
  record.timestamp_ms = at_ms;
  record.partition = partition;
  return record;
}

}  // namespace

Traffic::Traffic(TrafficOptions options)
    : options_(std::move(options)),
      begin_ms_(absl::ToUnixMillis(absl::Now() - options_.begins_ago)),
      partitions_(options_.partitions),
      random_(options_.seed) {}

absl::StatusOr<std::unique_ptr<Traffic>> Traffic::Start(TrafficOptions options) {
  std::unique_ptr<Traffic> traffic(new Traffic(std::move(options)));
  auto producer = NewRetryingProducer(traffic->options_.bootstrap, traffic.get(), OnDelivery);
  if (!producer.ok()) return producer.status();
  traffic->producer_.reset(*producer);
  traffic->thread_ = std::thread([t = traffic.get()] { t->Run(); });
  return traffic;
}

Traffic::~Traffic() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  if (producer_ != nullptr)
    rd_kafka_purge(producer_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

void Traffic::OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) ++static_cast<Traffic*>(opaque)->given_up_;
}

void Traffic::Run() {
  const absl::Time begin = SteadyNow();
  while (!stopping_) {
    const int64_t due = options_.per_second * absl::ToInt64Milliseconds(SteadyNow() - begin) / 1000;
    while (sent_ < due && !stopping_) SendNext();
    rd_kafka_poll(producer_.get(), static_cast<int>(absl::ToInt64Milliseconds(kTick)));
  }
}

FaultyEvent Traffic::EventNumber(int64_t number) const {
  const uint64_t dice = Scatter(options_.seed ^ static_cast<uint64_t>(number));
  FaultyEvent event;
  if (dice % 100 != 0) event.id = absl::StrCat("e-", number);
  event.country = kCountries[(dice >> 8) % kCountries.size()];
  event.amount = static_cast<int64_t>((dice >> 16) % 2001) - 1000;
  if (static_cast<int>((dice >> 32) % 1000) < options_.oversized_per_mille) event.pad = Incompressible(dice);
  return event;
}

int32_t Traffic::PartitionOf(const std::string& id) const {
  return static_cast<int32_t>(std::hash<std::string>{}(id) % static_cast<size_t>(partitions_));
}

int32_t Traffic::AnyPartition() {
  const int partitions = partitions_;
  int32_t partition = 0;
  while (partition + 1 < partitions && random_() % 3 == 0) ++partition;
  return partition;
}

int64_t Traffic::TimeAt(int64_t position) {
  const int64_t right = RightTimeAt(position);
  const int64_t ten_years = absl::ToInt64Milliseconds(absl::Hours(24 * 3653));
  switch (bad_clock_) {
    case 0:
      return right + ten_years;
    case 1:
      return right * 1000;
    case 2:
      return 1;
    case 3:
      return std::max<int64_t>(1, right - ten_years);  // a client takes 0 and less for "now"
    default:
      return right;
  }
}

int64_t Traffic::RightTimeAt(int64_t position) {
  if (static_cast<int>(random_() % 1000) < options_.wild_per_mille) {
    return kWildTimes[random_() % std::size(kWildTimes)];
  }
  const int64_t jitter = static_cast<int64_t>(random_() % 21) - 10;
  return begin_ms_ + (position + jitter) * absl::ToInt64Milliseconds(options_.step);
}

void Traffic::SendNext() {
  const int64_t position = sent_;
  if (!copies_.empty() && copies_.top().due <= position) {
    Copy copy = copies_.top();
    copies_.pop();
    copy.event.send = position;
    if (random_() % 2 == 0) copy.event.pad.clear();
    return Send(copy.event, options_.scattered ? AnyPartition() : copy.partition, TimeAt(position));
  }
  FaultyEvent event = EventNumber(next_number_++);
  event.send = position;
  const int32_t partition =
      options_.scattered ? AnyPartition() : PartitionOf(event.id.empty() ? absl::StrCat(position) : event.id);
  for (uint64_t copies = random_() % 10 != 0 || event.id.empty()
                             ? 0
                             : 1 + random_() % static_cast<uint64_t>(options_.most_copies);
       copies > 0; --copies) {
    const uint64_t within = static_cast<uint64_t>(options_.copies_within) * (random_() % 4 == 0 ? 6 : 1);
    copies_.push({position + 1 + static_cast<int64_t>(random_() % within), event, partition});
  }
  Send(event, partition, TimeAt(position));
}

void Traffic::Send(const FaultyEvent& event, int32_t partition, int64_t at_ms) {
  const Record record = MakeRecord(event, partition, at_ms);
  for (;;) {
    const rd_kafka_resp_err_t error = Enqueue(producer_.get(), options_.topic, record, nullptr);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) break;
    // A partition that was just added may not be known to the client yet: its queue is waited for likewise.
    rd_kafka_poll(producer_.get(), 20);
    if (stopping_) return;
  }
  ++sent_;
}

std::vector<Record> Traffic::Upcoming(int count) {
  std::vector<Record> records;
  // Some are out already when the transaction is written, some are not.
  const int64_t first = next_number_;
  for (int64_t number = first; number < first + count; ++number) {
    FaultyEvent event = EventNumber(number);
    event.send = next_aborted_--;
    records.push_back(MakeRecord(event, PartitionOf(event.id),
                                 begin_ms_ + sent_ * absl::ToInt64Milliseconds(options_.step)));
  }
  return records;
}

absl::Status Traffic::Stop() {
  stopping_ = true;
  thread_.join();
  const rd_kafka_resp_err_t error = rd_kafka_flush(producer_.get(), kFlushTimeoutMs);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("the input's producer cannot deliver: ", rd_kafka_err2str(error)));
}

}  // namespace lethe::test
