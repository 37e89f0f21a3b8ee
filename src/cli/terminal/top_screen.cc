#include "src/cli/terminal/top_screen.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/cli/terminal/plain_text.h"

namespace lethe {
namespace {

using nlohmann::json;

constexpr int kBarWidth = 10;
// Narrower terminals do without the bars.
constexpr int kWidthWithBars = 90;

enum class Color { kNone, kGood, kWarn, kBad, kSoft };

// One line, cut at the terminal's width; colours take no place.
class Line {
 public:
  explicit Line(const TopScreenOptions& options) : options_(options) {}

  Line& Add(absl::string_view text, Color color = Color::kNone) {
    std::string kept;
    while (!text.empty() && columns_ < options_.width) {
      const size_t bytes = Utf8Bytes(text);
      const absl::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
      // Text of a topic or a lane may contain control characters, which must not reach the terminal.
      absl::StrAppend(&kept, bytes == 0 || IsControl(character) ? "?" : character);
      text.remove_prefix(character.size());
      ++columns_;
    }
    static constexpr absl::string_view kCodes[] = {"", "\033[32m", "\033[33m", "\033[31m", "\033[2m"};
    if (options_.colors && color != Color::kNone && !kept.empty()) {
      absl::StrAppend(&text_, kCodes[static_cast<size_t>(color)], kept, "\033[0m");
    } else {
      text_ += kept;
    }
    return *this;
  }
  std::string End() const { return text_ + "\n"; }

 private:
  const TopScreenOptions& options_;
  std::string text_;
  int columns_ = 0;
};

std::string Short(double n) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  size_t unit = 0;
  while (n >= 9999.5 && unit + 1 < std::size(kUnits)) {
    n /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.*f%s", unit > 0 && n < 100 ? 1 : 0, n, kUnits[unit]);
}

std::string Bytes(double n) {
  static constexpr const char* kUnits[] = {"B", "K", "M", "G", "T"};
  size_t unit = 0;
  while (n >= 1024 && unit + 1 < std::size(kUnits)) {
    n /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.*f%s", unit > 0 && n < 100 ? 1 : 0, n, kUnits[unit]);
}

// Null, which stands for "without end", is "all".
std::string Period(const json& seconds) {
  if (!seconds.is_number()) return "all";
  const double s = seconds.get<double>();
  if (s >= 2 * 86400) return absl::StrFormat("%.1fd", s / 86400);
  if (s >= 2 * 3600) return absl::StrFormat("%.1fh", s / 3600);
  if (s >= 120) return absl::StrFormat("%.1fm", s / 60);
  return absl::StrFormat("%.1fs", s);
}

std::string Probability(double p) { return p == 0 ? "0" : absl::StrFormat("%.1e", p); }

std::string Bar(double share) {
  const int full = static_cast<int>(std::lround(kBarWidth * std::clamp(share, 0.0, 1.0)));
  return absl::StrCat("[", std::string(static_cast<size_t>(full), '#'),
                      std::string(static_cast<size_t>(kBarWidth - full), '.'), "]");
}

Color PhaseColor(const std::string& phase) {
  return phase == "active" ? Color::kGood : phase == "failed" ? Color::kBad : Color::kWarn;
}

std::string Rate(std::optional<double> rate) { return rate ? Short(*rate) : "-"; }

using Rates = TopScreen::Rates;

std::string PartitionLine(const json& partition, const Rates& rates, const TopScreenOptions& options) {
  const json& filter = partition.at("filter");
  const double fpp = filter.at("fpp_estimated").get<double>();
  const double target = filter.at("fpp_target").get<double>();
  const double share = target > 0 ? fpp / target : 0;
  const std::string phase = partition.at("phase").get<std::string>();
  return Line(options)
      .Add(absl::StrFormat("%4d ", partition.at("partition").get<int32_t>()))
      .Add(absl::StrFormat("%-9s ", phase), PhaseColor(phase))
      .Add(absl::StrFormat("%7s %7s %6s ", Rate(rates.unique), Rate(rates.duplicate),
                           Short(partition.at("lag_records").get<double>())))
      .Add(absl::StrFormat("%7s", Probability(fpp)), share > 1 ? Color::kBad : Color::kNone)
      .Add(options.width < kWidthWithBars ? "" : absl::StrCat(" ", Bar(share)),
           share > 1 ? Color::kBad : Color::kNone)
      .Add(absl::StrFormat(" %3d %6s %6s %6s %6s", filter.at("past_generations").get<int>(),
                           Period(filter.at("refresh_period_seconds")), Period(filter.at("window_seconds")),
                           Short(filter.at("ids").get<double>()),
                           Bytes(filter.at("memory_bytes").get<double>())))
      .End();
}

std::string TotalLine(const TopScreen::Totals& totals, const json& status, const TopScreenOptions& options) {
  const size_t partitions = status.at("partitions").size();
  const bool all_active = totals.active == partitions;
  return Line(options)
      .Add(" all ")
      .Add(absl::StrFormat("%-9s ", absl::StrCat(totals.active, "/", partitions)),
           all_active ? Color::kGood : Color::kWarn)
      .Add(absl::StrFormat("%7s %7s %6s ", Rate(totals.rates.unique), Rate(totals.rates.duplicate),
                           Short(totals.lag)))
      .Add(absl::StrFormat("%7s", Probability(totals.fpp)))
      .Add(options.width < kWidthWithBars ? "" : std::string(kBarWidth + 3, ' '))
      .Add(absl::StrFormat(" %3s %6s %6s %6s %6s", "", "", "", Short(totals.ids), Bytes(totals.memory)))
      .End();
}

const char* SortName(TopScreen::Sort sort) {
  switch (sort) {
    case TopScreen::Sort::kPartition:
      return "partition";
    case TopScreen::Sort::kLag:
      return "lag";
    case TopScreen::Sort::kUnique:
      return "unique/s";
    case TopScreen::Sort::kDuplicate:
      return "duplicates/s";
    case TopScreen::Sort::kFpp:
      return "FPP";
  }
  return "";
}

// By partition, or the largest figure first.
std::vector<const json*> Sorted(const json& status, TopScreen::Sort sort,
                                const std::map<int32_t, TopScreen::Rates>& rates) {
  std::vector<std::pair<double, const json*>> figures;
  for (const json& partition : status.at("partitions")) {
    const auto own = rates.find(partition.at("partition").get<int32_t>());
    double figure = 0;
    if (sort == TopScreen::Sort::kLag) figure = partition.at("lag_records").get<double>();
    if (sort == TopScreen::Sort::kFpp) figure = partition.at("filter").at("fpp_estimated").get<double>();
    if (own != rates.end() && sort == TopScreen::Sort::kUnique) figure = own->second.unique.value_or(0);
    if (own != rates.end() && sort == TopScreen::Sort::kDuplicate) figure = own->second.duplicate.value_or(0);
    figures.emplace_back(figure, &partition);
  }
  std::stable_sort(figures.begin(), figures.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const json*> partitions;
  for (const auto& [figure, partition] : figures) partitions.push_back(partition);
  return partitions;
}

std::vector<std::string> Head(const json& status, const TopScreen::Totals& totals,
                              const TopScreenOptions& options) {
  std::vector<std::string> lines;
  const json& not_ready = status.at("not_ready");
  lines.push_back(
      Line(options)
          .Add(absl::StrCat("lethe ", status.at("version").get<std::string>(), "  "))
          .Add(not_ready.empty() ? "ready" : "not ready", not_ready.empty() ? Color::kGood : Color::kWarn)
          .Add(absl::StrCat("  ", status.value("routing_input", status.at("input").get<std::string>()),
                            " -> ", status.at("output").get<std::string>(), "  group ",
                            status.at("group").get<std::string>()))
          .End());
  const std::string figures = absl::StrFormat(
      "%s unique/s, %s duplicates/s%s; filters %s of %s", Rate(totals.rates.unique),
      Rate(totals.rates.duplicate),
      totals.suspects > 0
          ? absl::StrCat(", ", Short(static_cast<double>(totals.suspects)), " suspects so far")
          : "",
      Bytes(status.at("memory_used_bytes").get<double>()),
      Bytes(status.at("memory_limit_bytes").get<double>()));
  const std::string wanted = absl::StrFormat("horizon %s, target %s", Period(status.at("horizon_seconds")),
                                             Probability(status.at("fpp_target").get<double>()));
  if (figures.size() + 2 + wanted.size() <= static_cast<size_t>(options.width)) {
    lines.push_back(Line(options).Add(absl::StrCat(figures, "; ", wanted)).End());
  } else {
    lines.push_back(Line(options).Add(figures).End());
    lines.push_back(Line(options).Add(wanted).End());
  }
  for (const json& reason : not_ready) {
    if (lines.size() >= 5) break;
    lines.push_back(Line(options).Add("! ").Add(reason.get<std::string>(), Color::kWarn).End());
  }
  lines.push_back("\n");
  lines.push_back(
      Line(options)
          .Add(absl::StrFormat("%4s %-9s %7s %7s %6s %7s", "PART", "STATE", "UNIQ/S", "DUP/S", "LAG", "FPP"),
               Color::kSoft)
          .Add(options.width < kWidthWithBars ? "" : " of target   ", Color::kSoft)
          .Add(absl::StrFormat(" %3s %6s %6s %6s %6s", "N", "t", "WINDOW", "IDS", "MEMORY"), Color::kSoft)
          .End());
  lines.push_back(TotalLine(totals, status, options));
  return lines;
}

}  // namespace

absl::StatusOr<std::string> TopScreen::Draw(absl::string_view text, absl::Time now,
                                            const TopScreenOptions& options) {
  if (absl::Status taken = Take(text, now); !taken.ok()) return taken;
  return Redraw(options);
}

void TopScreen::SortByNext() {
  sort_ = sort_ == Sort::kFpp ? Sort::kPartition : static_cast<Sort>(static_cast<int>(sort_) + 1);
  first_ = 0;
}

absl::Status TopScreen::Take(absl::string_view text, absl::Time now) {
  const json status = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return absl::InvalidArgumentError("the answer is not a status of lethe");
  try {
    const double seconds = absl::ToDoubleSeconds(now - last_);
    const bool first = last_ == absl::InfinitePast() || seconds <= 0;
    Totals totals;
    std::map<int32_t, Counts> counts;
    std::map<int32_t, Rates> rates;
    for (const json& partition : status.at("partitions")) {
      const json& records = partition.at("records");
      const json& filter = partition.at("filter");
      const int32_t id = partition.at("partition").get<int32_t>();
      totals.suspects += records.at("suspect").get<int64_t>();
      totals.active += partition.at("phase") == "active" ? 1 : 0;
      totals.lag += partition.at("lag_records").get<double>();
      totals.ids += filter.at("ids").get<double>();
      totals.memory += filter.at("memory_bytes").get<double>();
      totals.fpp = std::max(totals.fpp, filter.at("fpp_estimated").get<double>());
      const Counts count = {records.at("unique").get<int64_t>(), records.at("duplicate").get<int64_t>()};
      // Counts that fall are of a daemon that was restarted.
      if (const auto before = counts_.find(id); !first && before != counts_.end() &&
                                                count.unique >= before->second.unique &&
                                                count.duplicate >= before->second.duplicate) {
        Rates& own = rates[id];
        own.unique = static_cast<double>(count.unique - before->second.unique) / seconds;
        own.duplicate = static_cast<double>(count.duplicate - before->second.duplicate) / seconds;
        totals.rates.unique = totals.rates.unique.value_or(0) + *own.unique;
        totals.rates.duplicate = totals.rates.duplicate.value_or(0) + *own.duplicate;
      }
      counts[id] = count;
    }
    last_ = now;
    counts_ = std::move(counts);
    rates_ = std::move(rates);
    totals_ = totals;
    status_ = std::string(text);
    return absl::OkStatus();
  } catch (const json::exception& error) {  // so the library says that a key is missing or of another type
    return absl::InvalidArgumentError(
        absl::StrCat("the answer is not a status of this version of lethe: ", error.what()));
  }
}

absl::StatusOr<std::string> TopScreen::Redraw(const TopScreenOptions& options) {
  try {
    const json status = json::parse(status_);
    std::vector<std::string> lines = Head(status, totals_, options);
    const std::vector<const json*> partitions = Sorted(status, sort_, rates_);
    const size_t taken = lines.size() + 1;  // the last line
    const size_t height = static_cast<size_t>(std::max(options.height, 0));
    const bool all_fit = partitions.size() + lines.size() + (options.has_keys ? 1 : 0) <= height;
    const size_t room = all_fit ? partitions.size() : height > taken ? height - taken : 1;
    first_ = std::min(first_, partitions.size() - std::min(room, partitions.size()));
    const size_t end = std::min(first_ + room, partitions.size());
    for (size_t i = first_; i < end; ++i) {
      const auto rates = rates_.find(partitions[i]->at("partition").get<int32_t>());
      lines.push_back(
          PartitionLine(*partitions[i], rates == rates_.end() ? Rates() : rates->second, options));
    }
    std::string last;
    if (!all_fit) last = absl::StrCat(first_ + 1, " to ", end, " of ", partitions.size(), " partitions");
    if (options.has_keys) {
      absl::StrAppend(&last, last.empty() ? "" : "; ", "up, down, page: scroll; s: sort (by ",
                      SortName(sort_), "); q: end");
    }
    if (!last.empty()) lines.push_back(Line(options).Add(last, Color::kSoft).End());
    std::string screen;
    for (const std::string& line : lines) screen += line;
    return screen;
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("the answer is not a status of this version of lethe: ", error.what()));
  }
}

}  // namespace lethe
