// The Distributed Bloom Filter's experiments (Ramabaja and Avdullahu, 2019), and what an exchange costs.
#include <algorithm>
#include <bit>
#include <cmath>
#include <iostream>
#include <numeric>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "lethe/distributed_bloom_filter.h"
#include "lethe/reconcile.h"
#include "src/reconcile/lookup_table.h"
#include "tests/lab/experiments.h"
#include "tests/support/peer_pipe.h"

namespace lethe::lab {
namespace {

constexpr uint64_t kIdBytes = 8;

// Which of the elements a node has.
class ElementSet {
 public:
  explicit ElementSet(int64_t elements) : words_(static_cast<size_t>((elements + 63) / 64)) {}
  void Insert(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  int64_t Count() const {
    return std::transform_reduce(words_.begin(), words_.end(), int64_t{0}, std::plus<>(),
                                 [](uint64_t word) { return int64_t{std::popcount(word)}; });
  }
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t rest = words_[i]; rest != 0; rest &= rest - 1) {
        visit(64 * i + static_cast<size_t>(std::countr_zero(rest)));
      }
    }
  }
  // What is here and not there.
  ElementSet Without(const ElementSet& there) const {
    ElementSet rest = *this;
    for (size_t i = 0; i < words_.size(); ++i) rest.words_[i] &= ~there.words_[i];
    return rest;
  }

 private:
  std::vector<uint64_t> words_;
};

struct Network {
  std::vector<uint64_t> hashes;  // of the elements
  std::vector<ElementSet> nodes;
  std::vector<uint64_t> ids;  // of the nodes
  std::vector<std::vector<size_t>> neighbours;
};

Network MakeNetwork(const NetworkSize& size, uint64_t seed) {
  std::mt19937_64 random(seed);
  Network network;
  for (int64_t i = 0; i < size.elements; ++i) network.hashes.push_back(random());
  const auto nodes = static_cast<size_t>(size.nodes);
  std::vector<size_t> order(static_cast<size_t>(size.elements));
  std::iota(order.begin(), order.end(), 0);
  for (size_t node = 0; node < nodes; ++node) {
    network.ids.push_back(random());
    ElementSet set(size.elements);
    // The first few of a shuffle are a random choice without repetition.
    for (size_t i = 0; i < static_cast<size_t>(size.elements_per_node); ++i) {
      std::swap(order[i], order[i + random() % (order.size() - i)]);
      set.Insert(order[i]);
    }
    network.nodes.push_back(std::move(set));
    std::vector<size_t> others(nodes);
    std::iota(others.begin(), others.end(), 0);
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(node));
    std::shuffle(others.begin(), others.end(), random);
    others.resize(static_cast<size_t>(size.neighbours));
    network.neighbours.push_back(std::move(others));
  }
  if (!size.is_mutual) return network;
  const std::vector<std::vector<size_t>> chosen = network.neighbours;
  for (size_t node = 0; node < nodes; ++node) {
    for (const size_t other : chosen[node]) {
      std::vector<size_t>& back = network.neighbours[other];
      if (std::find(back.begin(), back.end(), node) == back.end()) back.push_back(node);
    }
  }
  return network;
}

struct Traffic {
  uint64_t filter_bytes = 0;
  uint64_t element_bytes = 0;
  uint64_t all_ids_bytes = 0;  // if each message were all of the sender's ids
  uint64_t table_bytes = 0;    // if it were a lookup table sized for the difference, which somebody foretells
};

// The standard one, with the same mapping for all; m need not be odd, and the second experiment's m is
// another one with nearly each new element.
class StandardFilter {
 public:
  StandardFilter(uint64_t bits, int hashes) : bits_(bits), hashes_(hashes) {}
  void Insert(uint64_t element) {
    for (int i = 0; i < hashes_; ++i) bits_[Position(element, i)] = true;
  }
  bool Contains(uint64_t element) const {
    for (int i = 0; i < hashes_; ++i) {
      if (!bits_[Position(element, i)]) return false;
    }
    return true;
  }

 private:
  uint64_t Position(uint64_t element, int i) const { return std::rotl(element, 29 * i) % bits_.size(); }

  std::vector<bool> bits_;
  const int hashes_;
};

// What of `missing` a filter of `sent` does not hide goes to `set`.
template <typename AnyFilter>
void TakeUnhidden(AnyFilter filter, const std::vector<uint64_t>& hashes, const ElementSet& sent,
                  const ElementSet& missing, ElementSet* set, Traffic* traffic) {
  sent.ForEach([&](size_t i) { filter.Insert(hashes[i]); });
  missing.ForEach([&](size_t i) {
    if (filter.Contains(hashes[i])) return;
    set->Insert(i);
    traffic->element_bytes += kIdBytes;
  });
}

// A node sends a filter of what it has to a neighbour, and gets what of the neighbour's is not in it. m is
// the one that makes the FPP a half of as many elements as `sized_for`, with k = 1. What it has now goes to
// `set`.
void Exchange(const Network& network, Mapping mapping, uint64_t round, double sized_for, int hashes,
              size_t sender, size_t neighbour, const ElementSet& sent, ElementSet* set, Traffic* traffic) {
  const auto bits = static_cast<uint64_t>(std::ceil(sized_for / std::log(2.0)));
  traffic->filter_bytes += (bits + 7) / 8;
  const ElementSet missing = network.nodes[neighbour].Without(sent);
  const int64_t lacks = missing.Count();
  traffic->all_ids_bytes += kIdBytes * static_cast<uint64_t>(sent.Count());
  const auto difference = static_cast<double>(lacks + sent.Without(network.nodes[neighbour]).Count());
  traffic->table_bytes += LookupTable::CellsFor(difference) * LookupTable::kCellBytes;
  if (lacks == 0) return;  // what the filter would say is known
  if (mapping == Mapping::kShared) {
    return TakeUnhidden(StandardFilter(bits, hashes), network.hashes, sent, missing, set, traffic);
  }
  TakeUnhidden(DistributedBloomFilter(network.ids[sender], network.ids[neighbour],
                                      mapping == Mapping::kPairAndRound ? round : 0, bits, hashes),
               network.hashes, sent, missing, set, traffic);
}

const char* NameOf(Mapping mapping) {
  switch (mapping) {
    case Mapping::kShared:
      return "shared";
    case Mapping::kPair:
      return "pair";
    case Mapping::kPairAndRound:
      return "pair and round";
  }
  return "";
}

std::string Scale(const NetworkSize& size) {
  return absl::StrCat(size.nodes, " nodes, each with ", size.neighbours,
                      " neighbours of its choice and those that chose it; ", size.elements, " elements, ",
                      size.elements_per_node, " at each node; m for an FPP of 50 %; seed ", size.seed);
}

}  // namespace

Table Convergence(const std::string& name, const NetworkSize& size, const std::vector<int>& experiments,
                  const std::vector<Mapping>& mappings) {
  Table table(name, absl::StrCat(Scale(size), "; ", size.runs, " networks"),
              {"experiment", "mapping", "run", "iteration", "converged", "median_set", "median_rest",
               "filter_bytes", "element_bytes", "all_ids_bytes", "table_bytes"});
  for (int run = 0; run < size.runs; ++run) {
    const Network start = MakeNetwork(size, size.seed * 1000 + static_cast<uint64_t>(run));
    for (const int experiment : experiments) {
      for (const Mapping mapping : mappings) {
        Network network = start;
        Traffic traffic;
        for (int iteration = 0; iteration <= size.iterations; ++iteration) {
          std::vector<int64_t> counts;
          for (const ElementSet& set : network.nodes) counts.push_back(set.Count());
          const int64_t converged = std::count(counts.begin(), counts.end(), size.elements);
          std::sort(counts.begin(), counts.end());
          const auto rest = static_cast<size_t>(size.nodes - converged);  // comes first
          table.Add({int64_t{experiment}, NameOf(mapping), int64_t{run}, int64_t{iteration}, converged,
                     counts[counts.size() / 2], counts[rest / 2], static_cast<double>(traffic.filter_bytes),
                     static_cast<double>(traffic.element_bytes), static_cast<double>(traffic.all_ids_bytes),
                     static_cast<double>(traffic.table_bytes)});
          if (iteration == size.iterations || (size.stop_when_converged && converged == size.nodes)) break;
          for (size_t node = 0; node < network.nodes.size(); ++node) {
            ElementSet set = network.nodes[node];
            ElementSet sent = set;
            for (const size_t neighbour : network.neighbours[node]) {
              const int64_t larger = std::max(sent.Count(), network.nodes[neighbour].Count());
              const auto sized_for = static_cast<double>(experiment == 1 ? size.elements : larger);
              Exchange(network, mapping, static_cast<uint64_t>(iteration), sized_for, size.hashes, node,
                       neighbour, sent, &set, &traffic);
              if (!size.sends_at_once) sent = set;
            }
            network.nodes[node] = std::move(set);
          }
        }
      }
    }
  }
  return table;
}

Table NetworkReadings(const NetworkSize& size) {
  Table table("dbf_readings", absl::StrCat(Scale(size), "; ", size.runs, " networks; standard Bloom filter"),
              {"experiment", "mutual", "at_once", "hashes", "least", "mean", "most", "least_median",
               "most_median", "least_rest", "most_rest"});
  const auto add = [&](int experiment, const NetworkSize& reading) {
    const Table runs = Convergence("", reading, {experiment}, {Mapping::kShared});
    const Table::Where at_end = {{"iteration", int64_t{size.iterations}}};
    std::vector<Cell> row = {int64_t{experiment}, int64_t{reading.is_mutual}, int64_t{reading.sends_at_once},
                             int64_t{reading.hashes}};
    for (const char* column : {"converged", "median_set", "median_rest"}) {
      const std::vector<double> ends = runs.Numbers(column, at_end);
      const auto [least, most] = std::minmax_element(ends.begin(), ends.end());
      row.emplace_back(std::in_place_type<double>, *least);
      if (row.size() == 5) {
        row.emplace_back(std::in_place_type<double>,
                         std::reduce(ends.begin(), ends.end()) / static_cast<double>(size.runs));
      }
      row.emplace_back(std::in_place_type<double>, *most);
    }
    table.Add(std::move(row));
  };
  for (const int experiment : {1, 2}) {
    for (const int hashes : {1, 2}) {
      for (const bool is_mutual : {true, false}) {
        for (const bool sends_at_once : {false, true}) {
          NetworkSize reading = size;
          reading.hashes = hashes;
          reading.is_mutual = is_mutual;
          reading.sends_at_once = sends_at_once;
          add(experiment, reading);
        }
      }
    }
  }
  return table;
}

Table ReconcileCosts(int64_t keys, const std::vector<int64_t>& differences, uint64_t seed) {
  Table table("reconcile_costs",
              absl::StrCat("two sets of ", keys,
                           " keys, as `lethe reconcile` compares them; keys of 8 bytes; seed ", seed),
              {"difference", "method", "bytes", "all_ids_bytes", "found"});
  std::mt19937_64 random(seed);
  for (const int64_t difference : differences) {
    std::vector<uint64_t> here, there;
    for (int64_t i = 0; i < keys - difference / 2; ++i) {
      here.push_back(random());
      there.push_back(here.back());
    }
    for (int64_t i = 0; i < difference / 2; ++i) {
      here.push_back(random());
      there.push_back(random());
    }
    for (const auto& [name, method] : {std::pair{"Distributed Bloom Filters", ReconcileMethod::kFilter},
                                       {"invertible Bloom lookup tables", ReconcileMethod::kLookupTable},
                                       {"both, as they cost", ReconcileMethod::kAuto}}) {
      auto [one, other] = test::PeerPipe::Make();
      const auto compare = [&, method = method](PeerChannel& channel, bool initiates,
                                                std::vector<uint64_t> own) {
        auto begun = Reconciliation::Begin(channel, {.initiates = initiates, .subject = "lab"});
        if (!begun.ok()) return absl::StatusOr<Difference>(begun.status());
        return begun->Compare(std::move(own), method);
      };
      std::thread peer(
          [&, channel = other.get()] { compare(*channel, false, there).status().IgnoreError(); });
      const auto found = compare(*one, true, here);
      peer.join();
      if (!found.ok()) {
        std::cerr << found.status() << std::endl;
        std::abort();
      }
      table.Add({difference, name, static_cast<double>(found->bytes),
                 static_cast<double>(found->bytes_of_all_keys),
                 static_cast<int64_t>(found->only_here.size() + found->only_there)});
    }
  }
  return table;
}

}  // namespace lethe::lab
