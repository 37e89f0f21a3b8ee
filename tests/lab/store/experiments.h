// What the paper claims of its store, and what it does not say, on the simulated one.
#ifndef LETHE_TESTS_LAB_STORE_EXPERIMENTS_H_
#define LETHE_TESTS_LAB_STORE_EXPERIMENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/lab/table.h"

namespace lethe::lab {

struct StoreSize {
  int64_t batches = 20'000;
  int64_t counters = 20;  // in two column families
  double zipf = 1;        // how unevenly the increments fall on counters
  int64_t every_ms = 5;   // a batch
  int64_t batch = 1;      // increments in one
  int runs = 3;           // that differ in the seed alone
  uint64_t seed = 1;
};

// The paper's stories, step by step, as text. Each ends with the value that a client reads.
std::string Figure5();
std::string Figure6();  // without a filter: 9 where 6 is right
std::string Figure7();  // the same steps with it: 6
Table StoreStories();   // their lines

// The error of all counters together, against the loss of messages: without a filter and with it; with a
// client that retries at the replica that had its update, and at another.
Table StoreLoss(const StoreSize& size, const std::vector<double>& losses);

// The same at one loss, through faults: crash and return of nodes, coordinators that fail between write and
// answer, a replay of a flushed commit log, a node that is replaced, a ring in two parts; each as the paper
// has it, and with what it leaves open decided the other way.
Table StoreFaults(const StoreSize& size);

// Filters for a node, a column family, or a counter, with the same memory in all: false positives show as an
// under-count.
Table StoreGranularity(const StoreSize& size, int64_t bits_per_node);

}  // namespace lethe::lab

#endif  // LETHE_TESTS_LAB_STORE_EXPERIMENTS_H_
