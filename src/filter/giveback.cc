#include "src/filter/giveback.h"

#include <sys/mman.h>

#include "src/filter/beside.h"

namespace lethe {
namespace {

char* WholeChunks(char* begin, char* end) {
  return begin + (end - begin) / Giveback::kChunkBytes * Giveback::kChunkBytes;
}

}  // namespace

Giveback::Giveback(char* begin) : given_back_(begin), wanted_(begin), thread_(Beside([this] { Run(); })) {}

Giveback::~Giveback() {
  wanted_ = nullptr;
  wanted_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Giveback::Upto(char* end) {
  char* const last = WholeChunks(given_back(), end);
  if (last <= wanted_.load(std::memory_order_relaxed)) return;
  wanted_ = last;
  if (thread_.joinable()) {
    wanted_.notify_one();
  } else {
    while (given_back() != last) GiveBackChunk();
  }
}

void Giveback::Await() const {
  const char* const wanted = wanted_;
  for (char* at = given_back(); at != wanted; at = given_back()) given_back_.wait(at);
}

void Giveback::Run() {
  for (char* wanted = wanted_; wanted != nullptr; wanted = wanted_) {
    if (given_back() == wanted) {
      wanted_.wait(wanted);
    } else {
      GiveBackChunk();
    }
  }
}

void Giveback::GiveBackChunk() {
  char* const begin = given_back();
  madvise(begin, kChunkBytes, MADV_DONTNEED);
  given_back_.store(begin + kChunkBytes, std::memory_order_release);
  given_back_.notify_one();
}

}  // namespace lethe
