#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lethe/distributed_bloom_filter.h"
#include "lethe/reconcile.h"
#include "src/reconcile/key_ranges.h"
#include "src/reconcile/lookup_table.h"
#include "src/reconcile/message.h"
#include "src/reconcile/mix.h"
#include "src/text/sip_hash.h"

namespace lethe {
namespace {

// The conversation, in order. Each peer first writes kMagic, then messages: a type, a length of four bytes,
// little-endian, and that many bytes. I is the initiator, P the other.
//
//   both   kHello   version, nonce, subject
//   then any number of kProgram messages and comparisons; a comparison is
//   both   kCount   the number of keys
//   P      kSums    of all ranges (key_ranges.h)
//   then steps, each begun by I with one of
//     kDone     the number of keys only at I; P answers kDone with its own, which ends the comparison
//     kTable    cells, seed, ranges; P answers kTable with its table of those ranges;
//               I sends kFound: 1 and the keys only at P, or 0 if the table was too small
//     kFilter   bits, round, ranges, I's filter of those ranges; P answers kFilter with its own
//   after kFound and kFilter P sends kSums of those ranges, without the keys that are known to differ.
constexpr absl::string_view kMagic = "lethe reconcile\n";
constexpr uint64_t kVersion = 3;
enum Type : char {
  kHello = 'H',
  kProgram = 'P',
  kCount = 'N',
  kSums = 'S',
  kDone = 'D',
  kTable = 'T',
  kFound = 'F',
  kFilter = 'B',
};
constexpr size_t kHeaderBytes = 5;
constexpr size_t kLargestHello = 1 << 16;
constexpr size_t kLongestSubject = 1000;  // in an error

// A filter of eight bits and five hashes for each key of the larger set hides one missing key in 46: more
// bits cost more than another round, fewer leave more to the next.
constexpr uint64_t kFilterBitsPerKey = 8;
constexpr int kFilterHashes = 5;
constexpr double kHidden = 0.0217;
// Each round leaves a 46th, and a table that was too small is doubled: an honest peer needs a dozen.
constexpr int kMostRounds = 200;
// More than any memory holds; figures computed from it still fit in 64 bits.
constexpr uint64_t kMostKeys = uint64_t{1} << 48;

uint64_t NewNonce() {
  std::random_device random;
  return static_cast<uint64_t>(random()) << 32 | random();
}

std::string RangesToBytes(const std::vector<bool>& ranges) {
  std::string bytes((ranges.size() + 7) / 8, '\0');
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i]) bytes[i / 8] = static_cast<char>(bytes[i / 8] | 1 << (i % 8));
  }
  return bytes;
}

bool RangesFromBytes(absl::string_view bytes, std::vector<bool>& ranges) {
  if (bytes.size() != (ranges.size() + 7) / 8) return false;
  for (size_t i = 0; i < ranges.size(); ++i) ranges[i] = (bytes[i / 8] >> (i % 8) & 1) != 0;
  return true;
}

uint64_t FilterBytes(double keys) { return static_cast<uint64_t>(keys * kFilterBitsPerKey / 8); }

}  // namespace

absl::StatusOr<Reconciliation> Reconciliation::Begin(PeerChannel& channel, ReconcileOptions options) {
  Reconciliation self(channel, std::move(options));
  self.own_nonce_ = NewNonce();
  if (absl::Status sent = channel.Write(kMagic); !sent.ok()) return sent;
  MessageWriter hello;
  hello.Word(kVersion).Word(self.own_nonce_).Text(self.options_.subject);
  if (absl::Status sent = self.SendMessage(kHello, hello.Take()); !sent.ok()) return sent;

  std::string magic(kMagic.size(), '\0');
  if (absl::Status read = channel.Read(magic.data(), magic.size()); !read.ok()) return read;
  if (magic != kMagic) {
    return absl::FailedPreconditionError(
        absl::StrCat("the peer's first bytes are \"", absl::CHexEscape(magic),
                     "\", which is not lethe: its command must print nothing else on its standard output (a "
                     "login shell's greeting, for example)"));
  }
  absl::StatusOr<std::string> message = self.ReceiveMessage(kHello);
  if (!message.ok()) return message.status();
  MessageReader fields(*message);
  const uint64_t version = fields.Word();
  self.peer_nonce_ = fields.Word();
  const absl::string_view subject = fields.Text();
  if (!fields.ok() || version != kVersion) {
    return absl::FailedPreconditionError(absl::StrCat("the peer speaks version ", version,
                                                      " of the protocol, and this lethe version ", kVersion,
                                                      ": install the same lethe on both sides"));
  }
  if (subject != self.options_.subject) {
    return absl::FailedPreconditionError(
        absl::StrCat("the peer compares ", absl::CHexEscape(subject.substr(0, kLongestSubject)),
                     ", and this side ", self.options_.subject, ": give both the same id"));
  }
  return self;
}

absl::Status Reconciliation::SendMessage(char type, absl::string_view payload) {
  if (payload.size() > static_cast<size_t>(options_.largest_message_bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "a message of ", payload.size(), " bytes is over the limit of ", options_.largest_message_bytes));
  }
  std::string header(1, type);
  const auto size = static_cast<uint32_t>(payload.size());
  header.append(reinterpret_cast<const char*>(&size), sizeof size);
  bytes_ += header.size() + payload.size();
  if (absl::Status sent = channel_->Write(header); !sent.ok()) return sent;
  return payload.empty() ? absl::OkStatus() : channel_->Write(payload);
}

absl::StatusOr<Reconciliation::Message> Reconciliation::ReceiveAny(absl::string_view types) {
  char header[kHeaderBytes];
  if (absl::Status read = channel_->Read(header, sizeof header); !read.ok()) return read;
  uint32_t size = 0;
  std::memcpy(&size, header + 1, sizeof size);
  if (!absl::StrContains(types, header[0])) {
    return absl::DataLossError(absl::StrCat("the peer sent a message of type '",
                                            absl::CHexEscape(absl::string_view(header, 1)),
                                            "', expected one of '", types, "'"));
  }
  const int64_t most = header[0] == kHello ? int64_t{kLargestHello} : options_.largest_message_bytes;
  if (size > most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the peer announces a message of ", size, " bytes, and the limit is ", most));
  }
  bytes_ += kHeaderBytes + size;
  Message message = {header[0], ""};
  // Piece by piece: announced bytes take no memory before they arrive.
  constexpr size_t kPiece = size_t{1} << 20;
  for (std::string& payload = message.payload; payload.size() < size;) {
    const size_t at = payload.size();
    payload.resize(std::min<size_t>(size, at + kPiece));
    if (absl::Status read = channel_->Read(payload.data() + at, payload.size() - at); !read.ok()) return read;
  }
  return message;
}

absl::StatusOr<std::string> Reconciliation::ReceiveMessage(char type) {
  absl::StatusOr<Message> message = ReceiveAny(absl::string_view(&type, 1));
  if (!message.ok()) return message.status();
  return std::move(message->payload);
}

// Who knows neither nonce, such as a producer of either side, cannot choose ids that collide.
uint64_t Reconciliation::Key(absl::string_view id) const {
  return SipHash<1, 3>::Of64(id,
                             {.low = Mix(own_nonce_ ^ peer_nonce_), .high = Mix(own_nonce_ + peer_nonce_)});
}

absl::Status Reconciliation::Send(absl::string_view message) { return SendMessage(kProgram, message); }

absl::StatusOr<std::string> Reconciliation::Receive() { return ReceiveMessage(kProgram); }

// One comparison. Invariant: `common_` and `only_here_` together are this side's keys; a key is in
// `only_here_` when the peer surely lacks it.
class Reconciliation::Comparison {
 public:
  Comparison(Reconciliation& talk, std::vector<uint64_t> keys, ReconcileMethod method)
      : talk_(talk), method_(method), common_(std::move(keys)), began_at_(talk.bytes_) {
    std::sort(common_.begin(), common_.end());
    common_.erase(std::unique(common_.begin(), common_.end()), common_.end());
    own_keys_ = common_.size();
  }

  absl::StatusOr<Difference> Run() {
    absl::Status status = ExchangeCounts();
    if (status.ok()) status = talk_.options_.initiates ? Initiate() : Follow();
    if (!status.ok()) return status;
    return Result();
  }

 private:
  static absl::Status Contradiction(absl::string_view what) {
    return absl::DataLossError(absl::StrCat("the peer's messages contradict each other: ", what));
  }

  absl::Status ExchangeCounts() {
    MessageWriter count;
    if (absl::Status sent = talk_.SendMessage(kCount, count.Word(own_keys_).Take()); !sent.ok()) return sent;
    const absl::StatusOr<std::string> message = talk_.ReceiveMessage(kCount);
    if (!message.ok()) return message.status();
    MessageReader fields(*message);
    peer_keys_ = fields.Word();
    if (!fields.Ended() || peer_keys_ > kMostKeys) return Contradiction("a count of keys");
    bits_ = KeyRanges::BitsFor(std::max(own_keys_, peer_keys_));
    ranges_.assign(size_t{1} << bits_, true);
    return absl::OkStatus();
  }

  // The initiator's part.
  absl::Status Initiate() {
    absl::Status status = CompareSums();
    for (int round = 0; status.ok() && open_ranges() > 0; ++round) {
      if (round == kMostRounds) return Contradiction("its sums still differ after every known difference");
      status = UsesTable() ? InitiateTable() : InitiateFilter();
      if (status.ok()) status = CompareSums();
    }
    if (!status.ok()) return status;
    if (absl::Status sent = talk_.SendMessage(kDone, MessageWriter().Word(only_here_.size()).Take());
        !sent.ok())
      return sent;
    const absl::StatusOr<std::string> message = talk_.ReceiveMessage(kDone);
    return message.ok() ? TakeDone(*message) : message.status();
  }

  // Reads the peer's sums of the present ranges, and keeps those that differ.
  absl::Status CompareSums() {
    if (skips_sums_) {
      skips_sums_ = false;
      return absl::OkStatus();
    }
    const absl::StatusOr<std::string> message = talk_.ReceiveMessage(kSums);
    if (!message.ok()) return message.status();
    const auto before = open_ranges();
    std::vector<bool> differing;
    const KeyRanges own(bits_, common_);
    if (!own.Differing(*message, ranges_, differing, open_peer_keys_)) return Contradiction("sums of ranges");
    ranges_ = std::move(differing);
    open_own_keys_ = 0;
    for (size_t i = 0; i < ranges_.size(); ++i) {
      if (ranges_[i]) open_own_keys_ += own.sums()[i].count;
    }
    const uint64_t least = open_own_keys_ > open_peer_keys_ ? open_own_keys_ - open_peer_keys_
                                                            : open_peer_keys_ - open_own_keys_;
    EstimateDifference(static_cast<double>(before), static_cast<double>(open_ranges()),
                       static_cast<double>(least));
    return absl::OkStatus();
  }

  // Keys that differ fall into ranges like balls into bins: from how many ranges differ follows how many
  // balls there were, unless all differ.
  void EstimateDifference(double ranges, double differing, double least) {
    const double most = static_cast<double>(open_own_keys_ + open_peer_keys_);
    is_saturated_ = differing >= ranges && ranges > 1;
    const double share = std::min(differing, ranges - 0.5) / ranges;
    difference_ = -ranges * std::log1p(-share);
    difference_ += 2 * std::sqrt(difference_) + 1;
    difference_ = std::min(std::max(difference_, least), most);
  }

  bool UsesTable() const {
    if (method_ != ReconcileMethod::kAuto) return method_ == ReconcileMethod::kLookupTable;
    const double keys = static_cast<double>(std::max(open_own_keys_, open_peer_keys_));
    const double by_filter = 2 * static_cast<double>(FilterBytes(keys)) + kHidden * TableBytes(difference_);
    return TableBytes(is_saturated_ ? 2 * difference_ : difference_) <= by_filter;
  }

  // Of its cells, and of the half of the keys that is then named.
  static double TableBytes(double difference) {
    return static_cast<double>(LookupTable::CellsFor(difference) * LookupTable::kCellBytes) + 4 * difference;
  }

  absl::Status InitiateTable() {
    ++table_rounds_;
    const uint64_t cells = LookupTable::CellsFor(difference_);
    // The peer says how many keys it has.
    if (cells > static_cast<uint64_t>(talk_.options_.largest_message_bytes) / LookupTable::kCellBytes) {
      return TooLarge(cells * LookupTable::kCellBytes);
    }
    const uint64_t seed = NewNonce();
    MessageWriter ask;
    ask.Word(cells).Word(seed).Text(RangesToBytes(ranges_));
    if (absl::Status sent = talk_.SendMessage(kTable, ask.Take()); !sent.ok()) return sent;
    const absl::StatusOr<std::string> message = talk_.ReceiveMessage(kTable);
    if (!message.ok()) return message.status();
    LookupTable table = TableOf(cells, seed);
    std::optional<LookupTable::Difference> found = table.Subtract(*message);
    if (found) {
      std::sort(found->only_here.begin(), found->only_here.end());
      std::sort(found->only_there.begin(), found->only_there.end());
      // By chance the checks of a table that is too small may agree.
      if (!IsOwn(found->only_here) ||
          std::adjacent_find(found->only_there.begin(), found->only_there.end()) != found->only_there.end()) {
        found.reset();
      }
    }
    MessageWriter answer;
    answer.Word(found ? 1 : 0).Ascending(found ? found->only_there : std::vector<uint64_t>());
    if (absl::Status sent = talk_.SendMessage(kFound, answer.Take()); !sent.ok()) return sent;
    if (found) {
      MoveToOnlyHere(found->only_here);
    } else {
      // The ranges are as they were: only the table grows.
      difference_ = std::min(2 * difference_, static_cast<double>(open_own_keys_ + open_peer_keys_) + 1);
      skips_sums_ = true;
    }
    return absl::OkStatus();
  }

  absl::Status InitiateFilter() {
    const uint64_t bits = kFilterBitsPerKey * std::max(open_own_keys_, open_peer_keys_) + 64;
    if (bits / 8 > static_cast<uint64_t>(talk_.options_.largest_message_bytes)) return TooLarge(bits / 8);
    DistributedBloomFilter filter = FilterOf(bits, filter_rounds_);
    MessageWriter ask;
    ask.Word(bits)
        .Word(static_cast<uint64_t>(filter_rounds_))
        .Text(RangesToBytes(ranges_))
        .Text(filter.bytes());
    if (absl::Status sent = talk_.SendMessage(kFilter, ask.Take()); !sent.ok()) return sent;
    const absl::StatusOr<std::string> message = talk_.ReceiveMessage(kFilter);
    if (!message.ok()) return message.status();
    if (!filter.SetBytes(*message).ok()) return Contradiction("a filter of another size");
    MoveMissing(filter);
    ++filter_rounds_;
    return absl::OkStatus();
  }

  // The other's part.
  absl::Status Follow() {
    absl::Status status = SendSums();
    for (int round = 0; status.ok(); ++round) {
      if (round > 2 * kMostRounds) return Contradiction("it never ends");
      constexpr char kSteps[] = {kDone, kTable, kFilter};
      const absl::StatusOr<Message> step = talk_.ReceiveAny(absl::string_view(kSteps, sizeof kSteps));
      if (!step.ok()) return step.status();
      if (step->type == kDone) {
        if (absl::Status taken = TakeDone(step->payload); !taken.ok()) return taken;
        return talk_.SendMessage(kDone, MessageWriter().Word(only_here_.size()).Take());
      }
      status = step->type == kTable ? AnswerTable(step->payload) : AnswerFilter(step->payload);
    }
    return status;
  }

  absl::Status SendSums() { return talk_.SendMessage(kSums, KeyRanges(bits_, common_).ToBytes(ranges_)); }

  absl::Status AnswerTable(absl::string_view message) {
    ++table_rounds_;
    MessageReader fields(message);
    const uint64_t cells = fields.Word();
    const uint64_t seed = fields.Word();
    if (!RangesFromBytes(fields.Text(), ranges_) || !fields.Ended())
      return Contradiction("a request for a table");
    if (cells > static_cast<uint64_t>(talk_.options_.largest_message_bytes) / LookupTable::kCellBytes) {
      return TooLarge(cells * LookupTable::kCellBytes);
    }
    if (absl::Status sent = talk_.SendMessage(kTable, TableOf(cells, seed).ToBytes()); !sent.ok())
      return sent;
    const absl::StatusOr<std::string> answer = talk_.ReceiveMessage(kFound);
    if (!answer.ok()) return answer.status();
    MessageReader found(*answer);
    const bool was_listed = found.Word() == 1;
    const std::vector<uint64_t> keys = found.Ascending();
    if (!found.Ended() || !IsOwn(keys)) return Contradiction("it names keys that are not here");
    MoveToOnlyHere(keys);
    return was_listed ? SendSums() : absl::OkStatus();
  }

  absl::Status AnswerFilter(absl::string_view message) {
    MessageReader fields(message);
    const uint64_t bits = fields.Word();
    filter_rounds_ = static_cast<int>(fields.Word() & 0xffff);
    if (!RangesFromBytes(fields.Text(), ranges_)) return Contradiction("a request for a filter");
    const absl::string_view bytes = fields.Text();
    if (!fields.Ended() || bits / 8 > static_cast<uint64_t>(talk_.options_.largest_message_bytes)) {
      return Contradiction("a request for a filter");
    }
    DistributedBloomFilter filter = FilterOf(bits, filter_rounds_);
    if (absl::Status sent = talk_.SendMessage(kFilter, filter.bytes()); !sent.ok()) return sent;
    if (!filter.SetBytes(bytes).ok()) return Contradiction("a filter of another size");
    MoveMissing(filter);
    ++filter_rounds_;
    return SendSums();
  }

  // What both do.
  absl::Status TakeDone(absl::string_view message) {
    MessageReader fields(message);
    only_there_ = fields.Word();
    // What is left on either side is the same set.
    const bool fits = only_there_ <= peer_keys_ && peer_keys_ - only_there_ == common_.size();
    return fields.Ended() && fits ? absl::OkStatus() : Contradiction("a count of differences");
  }

  absl::Status TooLarge(uint64_t bytes) const {
    return absl::ResourceExhaustedError(
        absl::StrCat("the sets need a message of ", bytes, " bytes, and the limit is ",
                     talk_.options_.largest_message_bytes, ": compare less at a time, or raise the limit"));
  }

  bool IsOpen(uint64_t key) const { return ranges_[KeyRanges::RangeOf(key, bits_)]; }
  size_t open_ranges() const { return static_cast<size_t>(std::count(ranges_.begin(), ranges_.end(), true)); }

  LookupTable TableOf(uint64_t cells, uint64_t seed) const {
    LookupTable table(cells, seed);
    for (const uint64_t key : common_) {
      if (IsOpen(key)) table.Insert(key);
    }
    return table;
  }

  DistributedBloomFilter FilterOf(uint64_t bits, int round) const {
    DistributedBloomFilter filter(talk_.own_nonce_, talk_.peer_nonce_, static_cast<uint64_t>(round), bits,
                                  kFilterHashes);
    for (const uint64_t key : common_) {
      if (IsOpen(key)) filter.Insert(key);
    }
    return filter;
  }

  bool IsOwn(const std::vector<uint64_t>& ascending) const {
    return std::adjacent_find(ascending.begin(), ascending.end()) == ascending.end() &&
           std::includes(common_.begin(), common_.end(), ascending.begin(), ascending.end());
  }

  void MoveToOnlyHere(const std::vector<uint64_t>& ascending) {
    std::erase_if(common_,
                  [&](uint64_t key) { return std::binary_search(ascending.begin(), ascending.end(), key); });
    only_here_.insert(only_here_.end(), ascending.begin(), ascending.end());
  }

  void MoveMissing(const DistributedBloomFilter& peers) {
    std::erase_if(common_, [&](uint64_t key) {
      if (!IsOpen(key) || peers.Contains(key)) return false;
      only_here_.push_back(key);
      return true;
    });
  }

  Difference Result() {
    Difference difference;
    std::sort(only_here_.begin(), only_here_.end());
    difference.only_here = std::move(only_here_);
    difference.only_there = only_there_;
    difference.bytes = talk_.bytes_ - began_at_;
    difference.filter_rounds = filter_rounds_;
    difference.table_rounds = table_rounds_;
    const double differing = static_cast<double>(difference.only_here.size() + only_there_);
    const double keys = static_cast<double>(std::max(own_keys_, peer_keys_));
    const double ranges = static_cast<double>(ranges_.size());
    const double sums = ranges * KeyRanges::kBytesOfRange;
    double by_filters = sums;
    for (double left = differing; left >= 0.5; left *= kHidden) {
      const double open = ranges * -std::expm1(-left / ranges);
      by_filters +=
          2 * static_cast<double>(FilterBytes(keys * open / ranges)) + open * KeyRanges::kBytesOfRange;
    }
    difference.bytes_by_filters = static_cast<uint64_t>(by_filters);
    difference.bytes_by_tables = static_cast<uint64_t>(sums + (differing > 0 ? TableBytes(differing) : 0));
    difference.bytes_of_all_keys = 8 * std::max(own_keys_, peer_keys_);
    return difference;
  }

  Reconciliation& talk_;
  const ReconcileMethod method_;
  std::vector<uint64_t> common_;  // ascending
  std::vector<uint64_t> only_here_;
  const uint64_t began_at_;
  uint64_t own_keys_ = 0;
  uint64_t peer_keys_ = 0;
  uint64_t only_there_ = 0;
  int bits_ = 0;              // of a key, that say its range
  std::vector<bool> ranges_;  // those that still differ
  int filter_rounds_ = 0;
  int table_rounds_ = 0;
  // The initiator's, of the ranges that still differ.
  uint64_t open_own_keys_ = 0;
  uint64_t open_peer_keys_ = 0;
  double difference_ = 0;  // an estimate
  bool is_saturated_ = false;
  bool skips_sums_ = false;
};

absl::StatusOr<Difference> Reconciliation::Compare(std::vector<uint64_t> keys, ReconcileMethod method) {
  return Comparison(*this, std::move(keys), method).Run();
}

}  // namespace lethe
