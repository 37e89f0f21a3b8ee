#include "tests/lab/store/experiments.h"

#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/lab/store/store.h"

namespace lethe::lab {
namespace {

// One run: the store, and what its counters should say.
struct Run {
  explicit Run(const StoreOptions& options) : store(options) {}

  Store store;
  std::map<std::string, int64_t> truth;
};

void Load(const StoreSize& size, Run* run, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> weights;
  for (int64_t i = 1; i <= size.counters; ++i) weights.push_back(std::pow(i, -size.zipf));
  std::discrete_distribution<int> counter(weights.begin(), weights.end());
  uint64_t id = 0;
  for (int64_t i = 0; i < size.batches; ++i) {
    std::vector<Increment> batch;
    for (int64_t j = 0; j < size.batch; ++j) {
      const int number = counter(random);
      batch.push_back({++id, absl::StrCat("family", number % 2), absl::StrCat("counter", number), 1});
      run->truth[batch.back().counter] += 1;
    }
    run->store.Submit(i * size.every_ms, static_cast<int>(random() % 10), std::move(batch));
  }
}

// Counted too often and not at all, added up over the counters, as shares of the truth.
struct Error {
  double over = 0;
  double under = 0;
  double retries = 0;
  double unanswered = 0;
  double filters = 0;
};

using Fault = std::function<void(Store*, const StoreSize&, std::mt19937_64*)>;

Error Measure(const StoreSize& size, StoreOptions options, const Fault& fault) {
  Error error;
  double truth = 0;
  for (int i = 0; i < size.runs; ++i) {
    options.seed = size.seed + static_cast<uint64_t>(i);
    std::mt19937_64 random(options.seed);
    Run run(options);
    Load(size, &run, options.seed);
    if (fault) fault(&run.store, size, &random);
    run.store.Run();
    run.store.Repair();
    for (const auto& [counter, right] : run.truth) {
      const auto off = static_cast<double>(run.store.Read(counter) - right);
      error.over += std::max(off, 0.0);
      error.under += std::max(-off, 0.0);
      truth += static_cast<double>(right);
    }
    error.retries += static_cast<double>(run.store.requests());
    error.unanswered += static_cast<double>(run.store.unanswered());
    error.filters += static_cast<double>(run.store.filters()) / size.runs;
  }
  error.retries = error.retries / truth - 1;
  error.over /= truth;
  error.under /= truth;
  return error;
}

int64_t EndOf(const StoreSize& size) { return size.batches * size.every_ms; }

// One node after the other is down for a second, beginning every two seconds.
void CrashInTurn(Store* store, const StoreSize& size, std::mt19937_64* random) {
  for (int64_t at = 1000; at + 2000 < EndOf(size); at += 2000) {
    const int node = static_cast<int>((*random)() % 10);
    store->At(at, [=] { store->Crash(node); });
    store->At(at + 1000, [=] { store->Restart(node); });
  }
}

// The same, and each node writes its memtable out now and then before.
void CrashAfterFlush(Store* store, const StoreSize& size, std::mt19937_64* random, bool truncates_log) {
  for (int64_t at = 1000; at + 2000 < EndOf(size); at += 2000) {
    const int node = static_cast<int>((*random)() % 10);
    store->At(at, [=] {
      store->Flush(node, truncates_log);
      store->Crash(node);
    });
    store->At(at + 100, [=] { store->Restart(node); });
  }
}

// Answers of a coordinator to its clients are lost for half a second each second: it fails when the write is
// done.
void LoseAnswersOfCoordinators(Store* store, const StoreSize&, std::mt19937_64*) {
  store->LoseIf(
      [store](int, int to, bool is_answer) { return is_answer && to < 0 && store->now_ms() % 1000 < 500; });
}

// Four of ten, one after the other.
void ReplaceSome(Store* store, const StoreSize& size, std::mt19937_64* random) {
  const int first = static_cast<int>((*random)() % 10);
  for (int i = 1; i <= 4; ++i) store->At(EndOf(size) * i / 5, [=] { store->Replace((first + 2 * i) % 10); });
}

// A half of the ring does not reach the other, for a second every four.
void SplitNowAndThen(Store* store, const StoreSize& size, std::mt19937_64*) {
  for (int64_t at = 1000; at + 2000 < EndOf(size); at += 4000) {
    store->At(at, [=] { store->Split(5); });
    store->At(at + 1000, [=] { store->Heal(); });
  }
}

void AddRow(Table* table, std::vector<Cell> cells, const Error& error) {
  for (const double value : {error.retries, error.over, error.under, error.unanswered})
    cells.emplace_back(value);
  table->Add(std::move(cells));
}

// Two nodes and one counter on both, whose leader the story chooses by the coordinator.
std::string Story(bool has_filter, const std::function<void(Store*)>& steps, int nodes, int replication) {
  StoreOptions options;
  options.nodes = nodes;
  options.replication = replication;
  options.one_leader = replication == 3;
  options.granularity = has_filter ? Granularity::kFamily : Granularity::kNoFilter;
  options.retry_step = 0;
  Store store(options);
  std::string text;
  store.Trace([&](const std::string& line) { absl::StrAppend(&text, line, "\n"); });
  steps(&store);
  for (const int node : store.ReplicasOf("c1")) {
    absl::StrAppend(&text, Store::Name(node), " has");
    for (const auto& [origin, shard] : store.ShardsAt(node, "c1")) {
      absl::StrAppend(&text, origin == node ? " local" : " remote", " (", Store::Name(origin), ", ",
                      shard.clock, ", ", shard.value, ")");
    }
    absl::StrAppend(&text, "; its value is ", store.Read("c1", 0), "\n");
  }
  return text;
}

// Figure 6's and Figure 7's: +1 at A, +2 at B, a flush of both, +3 at A, whose answer is lost.
std::string FourSteps(bool has_filter) {
  return Story(
      has_filter,
      [](Store* store) {
        const std::vector<int> replicas = store->ReplicasOf("c1");
        // With one_leader off a coordinator takes the replicas from its own number on.
        const int at_a = replicas.front() == 0 ? 0 : 1;
        const int at_b = 1 - at_a;
        store->Submit(0, at_a, {{1, "likes", "c1", 1}});
        store->Run();
        store->Submit(1000, at_b, {{2, "likes", "c1", 2}});
        store->Run();
        for (const int node : replicas) store->Flush(node);
        bool is_lost = false;
        store->LoseIf([&is_lost](int, int to, bool is_answer) {
          return is_answer && to < 0 && !std::exchange(is_lost, true);
        });
        store->Submit(2000, at_a, {{3, "likes", "c1", 3}});
        store->Run();
      },
      2, 2);
}

}  // namespace

std::string Figure5() {
  return Story(
      false,
      [](Store* store) {
        store->Submit(0, 4, {{1, "likes", "c1", 1}});
        store->Run();
      },
      6, 3);
}

std::string Figure6() { return FourSteps(false); }
std::string Figure7() { return FourSteps(true); }

Table StoreStories() {
  Table table("store_stories", "two nodes, one counter on both; Figure 5 has three of six",
              {"figure", "line"});
  const std::pair<int64_t, std::string> stories[] = {{5, Figure5()}, {6, Figure6()}, {7, Figure7()}};
  for (const auto& [figure, text] : stories) {
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      table.Add({figure, std::string(line)});
    }
  }
  return table;
}

Table StoreLoss(const StoreSize& size, const std::vector<double>& losses) {
  Table table("store_loss",
              absl::StrCat("10 nodes, replication 3, ", size.batches, " increments of ", size.counters,
                           " counters; timeout 200 ms, messages take 1 to 10 ms; ", size.runs, " runs"),
              {"filter", "retries_at", "write_acks", "loss", "retries", "over", "under", "unanswered"});
  for (const double loss : losses) {
    for (const bool one_leader : {true, false}) {
      for (const int acks : {1, 2, 3}) {
        for (const Granularity granularity : {Granularity::kNoFilter, Granularity::kFamily}) {
          StoreOptions options;
          options.loss = loss;
          options.one_leader = one_leader;
          options.write_acks = acks;
          options.granularity = granularity;
          AddRow(&table,
                 {std::string(granularity == Granularity::kFamily ? "FBF" : "none"),
                  std::string(one_leader ? "the same replica" : "another replica"), int64_t{acks}, loss},
                 Measure(size, options, nullptr));
        }
      }
    }
  }
  return table;
}

Table StoreFaults(const StoreSize& size) {
  struct Case {
    std::string fault;
    std::string variant;
    Fault apply;
    std::function<void(StoreOptions*)> change = [](StoreOptions*) {};
  };
  const auto flush = [](bool truncates_log) {
    return [truncates_log](Store* store, const StoreSize& sizes, std::mt19937_64* random) {
      CrashAfterFlush(store, sizes, random, truncates_log);
    };
  };
  const std::vector<Case> cases = {
      {"none", "", nullptr},
      {"coordinator fails after the write", "", LoseAnswersOfCoordinators},
      {"node crashes and returns", "filter rebuilt from the log's ids", CrashInTurn},
      {"node crashes and returns", "no ids in the log", CrashInTurn,
       [](StoreOptions* options) { options->log_has_ids = false; }},
      {"node crashes and returns", "answer after 2 replicas", CrashInTurn,
       [](StoreOptions* options) { options->write_acks = 2; }},
      {"crash after a flush, log truncated", "filter saved with the flush", flush(true)},
      {"crash after a flush, log truncated", "filter not saved", flush(true),
       [](StoreOptions* options) { options->flush_saves_filters = false; }},
      {"crash in a flush, log replayed", "filter saved with the flush", flush(false)},
      {"crash in a flush, log replayed", "saved, and a window longer than the log", flush(false),
       [](StoreOptions* options) { options->past = 30; }},
      {"crash in a flush, log replayed", "filter not saved", flush(false),
       [](StoreOptions* options) { options->flush_saves_filters = false; }},
      {"nodes replaced", "filter copied with the shards", ReplaceSome},
      {"nodes replaced", "filter not copied", ReplaceSome,
       [](StoreOptions* options) { options->new_replica_copies_filter = false; }},
      {"ring in two parts", "answer after 1 replica", SplitNowAndThen},
      {"ring in two parts", "answer after 2 replicas", SplitNowAndThen,
       [](StoreOptions* options) { options->write_acks = 2; }},
  };
  Table table("store_faults",
              absl::StrCat("10 nodes, replication 3, ", size.batches, " increments of ", size.counters,
                           " counters, 5 % of the messages lost; retries go to the same replica; ", size.runs,
                           " runs"),
              {"fault", "variant", "filter", "retries", "over", "under", "unanswered"});
  for (const Case& each : cases) {
    for (const Granularity granularity : {Granularity::kNoFilter, Granularity::kFamily}) {
      StoreOptions options;
      options.loss = 0.05;
      options.granularity = granularity;
      each.change(&options);
      AddRow(&table,
             {each.fault, each.variant, std::string(granularity == Granularity::kFamily ? "FBF" : "none")},
             Measure(size, options, each.apply));
    }
  }
  return table;
}

Table StoreGranularity(const StoreSize& size, int64_t bits_per_node) {
  Table table("store_granularity",
              absl::StrCat("10 nodes, replication 3, ", size.batches, " increments of ", size.counters,
                           " counters in 2 families; ", bits_per_node, " bits a node; ", size.runs, " runs"),
              {"granularity", "filters", "retries", "over", "under", "unanswered"});
  const std::vector<std::pair<std::string, Granularity>> granularities = {
      {"node", Granularity::kNode},
      {"column family", Granularity::kFamily},
      {"counter", Granularity::kCounter}};
  for (const auto& [name, granularity] : granularities) {
    StoreOptions options;
    options.loss = 0.01;
    options.granularity = granularity;
    // What each filter of a node gets is an equal share: nobody knows which counters will be busy. A node has
    // replication of the nodes' share of all counters.
    const double filters = granularity == Granularity::kNode ? 1
                           : granularity == Granularity::kFamily
                               ? 2
                               : static_cast<double>(size.counters) * 3 / 10;
    options.bits = std::max<int64_t>(
        64, static_cast<int64_t>(static_cast<double>(bits_per_node) / filters / (options.past + 2)));
    const Error error = Measure(size, options, nullptr);
    AddRow(&table, {name, error.filters}, error);
  }
  return table;
}

}  // namespace lethe::lab
