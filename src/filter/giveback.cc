#include "src/filter/giveback.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "src/filter/beside.h"

namespace lethe {
namespace {

uint32_t PageBytes() {
  static const auto bytes = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Giveback::Giveback(char* base) : base_(base), thread_(Beside([this] { Run(); })) {}

Giveback::~Giveback() {
  wanted_ = kEnd;
  wanted_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Giveback::Begin(int64_t first_page) {
  first_page_ = static_cast<uint32_t>(first_page);
  wanted_ = Place{wanted_.load().range + 1, first_page_};
}

void Giveback::Upto(int64_t page) {
  Place wanted = wanted_;
  if (page <= wanted.page) return;
  wanted.page = static_cast<uint32_t>(page);
  wanted_ = wanted;
  if (thread_.joinable()) {
    wanted_.notify_one();
  } else {
    while (pages_left() > 0) GiveBackPiece(wanted);
  }
}

int64_t Giveback::pages_left() const {
  const Place wanted = wanted_.load(std::memory_order_relaxed);
  const Place done = done_.load(std::memory_order_acquire);
  return int64_t{wanted.page} - (done.range == wanted.range ? done.page : first_page_);
}

void Giveback::Await() const {
  for (Place done = done_; pages_left() > 0; done = done_) done_.wait(done);
}

void Giveback::Run() {
  for (Place wanted = wanted_; wanted != kEnd; wanted = wanted_) {
    if (done_.load() == wanted) {
      wanted_.wait(wanted);
    } else {
      GiveBackPiece(wanted);
    }
  }
}

void Giveback::GiveBackPiece(Place wanted) {
  const uint32_t chunk = static_cast<uint32_t>(kChunkBytes) / PageBytes();
  Place done = done_;
  if (done.range != wanted.range) done = {wanted.range, first_page_};
  const uint32_t next = std::min(wanted.page, (done.page / chunk + 1) * chunk);
  const auto address = [&](uint32_t page) { return base_ + size_t{page} * PageBytes(); };
  if (next > done.page) {
    madvise(address(done.page), static_cast<size_t>(address(next) - address(done.page)), MADV_DONTNEED);
  }
  done.page = next;
  done_.store(done, std::memory_order_release);
  done_.notify_one();
}

}  // namespace lethe
