// The cells of a sliced forgetful Bloom filter: a list of Bloom filters turned on its side.
//
// Memory is an array of lines of 64 bytes, a line an array of cells, a cell a word with one bit for each
// generation: all the bits at one place of all the Bloom filters lie in one word. So one look at an id's
// cells answers for every generation at once, what is read is what an insertion writes, and a refresh
// costs nothing but the clearing of one column of bits, which can be spread out.
//
// Even and odd generations (columns) use different cells of the same lines. Neighbours always differ in
// parity, so an id in two neighbouring generations set two independent sets of bits, and the false
// positives of the two are independent given the loads. (In the FBF paper all filters use the same hash
// functions, so neighbours share the bits of a whole interval's ids.)
//
// Doubling the lines sends line i to 2i and 2i + 1, since an id's line is the high part of its hash times
// the number of lines. Copied to both, every id stays where it is looked for (unfold); two neighbours ORed
// into one undo it (fold). Both run in place, a few lines at a time, while ids go in and are looked up: an
// id's line is the large one if the pass has it there, else the small one.
#ifndef LETHE_SRC_REFERENCE_SLICED_SLICED_LINES_H_
#define LETHE_SRC_REFERENCE_SLICED_SLICED_LINES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "lethe/event.h"

namespace lethe {

// Invariant: an id that was set in a column is in it until that column was given to a pass for clearing.
// At most one pass (sweep, unfold or fold) runs at a time. Memory is the owner's: it must hold
// bytes_needed() and be zero at first. Thread safety: none; const methods may run together.
template <typename Cell, int kLinesPerId>
class SlicedLines {
 public:
  static constexpr int kColumns = 8 * sizeof(Cell);
  static constexpr int64_t kLineBytes = 64;
  static constexpr int kCells = kLineBytes / sizeof(Cell);
  // Bits that an id sets in one column.
  static constexpr int kBitsPerId = 2 * kLinesPerId;
  // Columns 0, 2, 4, ...
  static constexpr Cell kEvenColumns = static_cast<Cell>(0x5555555555555555u);

  SlicedLines(void* memory, int64_t lines)
      : memory_(static_cast<char*>(memory)), large_lines_(static_cast<uint64_t>(lines)) {}

  // Where an id's bits are. Valid until the next step of a pass.
  struct Places {
    std::array<Cell*, kBitsPerId> even;
    std::array<Cell*, kBitsPerId> odd;
  };

  void Prefetch(IdHash id) const {
    for (int i = 0; i < kLinesPerId; ++i) __builtin_prefetch(Line(Word(id, i)), 1, 3);
  }

  Places Find(IdHash id) const {
    Places places;
    for (int i = 0; i < kLinesPerId; ++i) FindInLine(id, i, &places.even[2 * i], &places.odd[2 * i]);
    return places;
  }

  // One bit for each column that the id may be in.
  static Cell Columns(const Places& places) {
    Cell even = kEvenColumns;
    Cell odd = static_cast<Cell>(~kEvenColumns);
    for (int i = 0; i < kBitsPerId; ++i) {
      even &= *places.even[i];
      odd &= *places.odd[i];
    }
    return even | odd;
  }
  // The same, line by line: faster where the places are not wanted.
  Cell Columns(IdHash id) const {
    Cell even = kEvenColumns;
    Cell odd = static_cast<Cell>(~kEvenColumns);
    for (int i = 0; i < kLinesPerId; ++i) {
      Cell* even_cells[2];
      Cell* odd_cells[2];
      FindInLine(id, i, even_cells, odd_cells);
      even &= *even_cells[0] & *even_cells[1];
      odd &= *odd_cells[0] & *odd_cells[1];
    }
    return even | odd;
  }

  // Puts the id into an even and an odd column, each given as its bit.
  static void Set(const Places& places, Cell even_column, Cell odd_column) {
    for (int i = 0; i < kBitsPerId; ++i) {
      *places.even[i] |= even_column;
      *places.odd[i] |= odd_column;
    }
  }

  // Each begins a pass in which the columns in `clear` lose all their bits; nothing may be set in them
  // until it has ended. Unfold needs bytes_needed() x 2 first, fold an even number of lines.
  void BeginSweep(Cell clear) {
    keep_ = KeptBits(clear);
    pass_ = Pass::kSweep;
    swept_ = 0;
  }
  void BeginUnfold(Cell clear) {
    keep_ = KeptBits(clear);
    pass_ = Pass::kUnfold;
    small_ = large_lines_;
    large_lines_ *= 2;
  }
  void BeginFold(Cell clear) {
    keep_ = KeptBits(clear);
    pass_ = Pass::kFold;
    small_ = 0;
  }

  // Takes the pass some lines further (small ones, in an unfold or fold). True when it has ended.
  bool Advance(int64_t lines) {
    const auto count = static_cast<uint64_t>(lines);
    bool ended = true;
    if (pass_ == Pass::kSweep) ended = Sweep(count);
    if (pass_ == Pass::kUnfold) ended = Unfold(count);
    if (pass_ == Pass::kFold) ended = Fold(count);
    if (ended) pass_ = Pass::kNone;
    return ended;
  }

  // For a snapshot: how far the pass has come, and a pass that was just begun taken as far as another had
  // come (false if there is no such place).
  int64_t position() const { return static_cast<int64_t>(pass_ == Pass::kSweep ? swept_ : small_); }
  bool SkipTo(int64_t position) {
    const auto to = static_cast<uint64_t>(position);
    if (to > (pass_ == Pass::kSweep ? large_lines_ : large_lines_ / 2)) return false;
    (pass_ == Pass::kSweep ? swept_ : small_) = to;
    return true;
  }
  // The columns that it clears.
  Cell clearing() const { return static_cast<Cell>(~keep_); }

  // A sweep that was begun need not be finished: the next pass clears the same columns.
  void AbandonSweep() { pass_ = Pass::kNone; }

  bool idle() const { return pass_ == Pass::kNone; }
  // The lines; the larger number during an unfold or fold.
  int64_t lines() const { return static_cast<int64_t>(large_lines_); }
  int64_t bytes_needed() const { return lines() * kLineBytes; }

  // How many cells have a column's bit set, in the line of a hash word.
  using Occupancy = std::array<uint8_t, kColumns>;
  Occupancy OccupancyAt(uint64_t word) const {
    Words words;
    memcpy(words.data(), Line(word), kLineBytes);
    Occupancy occupancy{};
    // Counts eight bits of each word at a time, every eighth, each in a byte of its own.
    for (size_t bit = 0; bit < 8; ++bit) {
      uint64_t counts = 0;
      for (const uint64_t cells : words) counts += cells >> bit & 0x0101010101010101u;
      for (size_t byte = 0; byte < 8; ++byte) {
        uint8_t& count = occupancy[(8 * byte + bit) % kColumns];
        count = static_cast<uint8_t>(count + (counts >> (8 * byte) & 0xff));
      }
    }
    return occupancy;
  }

 private:
  enum class Pass : uint8_t { kNone, kSweep, kUnfold, kFold };
  using Words = std::array<uint64_t, 8>;

  // The i-th hash word of an id, from which its i-th line and the cells there are taken. Each turn brings
  // other bits of b to the top, so that up to 2^11 lines the numbers of an id's lines are independent, also
  // where a shard fixes eight bits of b; with more lines any two still are, and the chance that all L of them
  // are one is about 2^(-11 (L - 2)) / lines. (With words a + i b in a constant step it is 1 / ((L - 1)
  // lines), and such an id answers for one line's fill instead of the mean of L: for one id in 640 of a
  // filter with 128 lines, which at 1e-9 is five times the false-positive rate that the model says.)
  static uint64_t Word(IdHash id, int i) { return id.a + std::rotl(id.b, kTurn * i); }
  static constexpr int kTurn = 11;
  static_assert(kLinesPerId <= 6, "a seventh turn brings the first one's bits to the top again");

  Cell* Line(uint64_t word) const {
    const auto large = static_cast<uint64_t>((static_cast<unsigned __int128>(word) * large_lines_) >> 64);
    const uint64_t small = large / 2;
    return reinterpret_cast<Cell*>(memory_ + (small < small_ ? small : large) * kLineBytes);
  }

  // The two even and the two odd cells of an id in its i-th line. The line takes the high bits of the hash
  // word; the cells take high bits of a product, which depend on all bits of the word.
  void FindInLine(IdHash id, int i, Cell** even, Cell** odd) const {
    const uint64_t word = Word(id, i);
    Cell* line = Line(word);
    const uint64_t bits = word * 0x9E3779B97F4A7C15u;
    FindPair(line, static_cast<uint16_t>(bits >> 32), even);
    FindPair(line, static_cast<uint16_t>(bits >> 48), odd);
  }

  // Two different cells of a line, all pairs being equally likely.
  static void FindPair(Cell* line, uint32_t bits, Cell** cells) {
    const uint32_t first = bits % kCells;
    const uint32_t apart = 1 + (bits / 32 * (kCells - 1) >> 11);
    cells[0] = line + first;
    cells[1] = line + (first ^ apart);
  }

  static uint64_t KeptBits(Cell clear) {
    uint64_t kept = static_cast<Cell>(~clear);
    for (int bits = kColumns; bits < 64; bits *= 2) kept |= kept << bits;
    return kept;
  }

  char* At(uint64_t line) const { return memory_ + line * kLineBytes; }
  Words Read(uint64_t line) const {
    Words words;
    memcpy(words.data(), At(line), kLineBytes);
    for (uint64_t& word : words) word &= keep_;
    return words;
  }
  void Write(uint64_t line, const Words& words) { memcpy(At(line), words.data(), kLineBytes); }

  bool Sweep(uint64_t count) {
    // The more columns, the more of the time goes in here. `keep` is no member, which the lines might overlap
    // as far as the compiler knows, so that it takes several words at a time.
    const uint64_t keep = keep_;
    const uint64_t end = swept_ + std::min(count, large_lines_ - swept_);
    char* const stop = At(end);
    for (char* at = At(swept_); at != stop; at += kLineBytes) {
      for (int64_t i = 0; i < kLineBytes; i += int64_t{sizeof keep}) {
        uint64_t word;
        memcpy(&word, at + i, sizeof word);
        word &= keep;
        memcpy(at + i, &word, sizeof word);
      }
    }
    swept_ = end;
    return swept_ == large_lines_;
  }

  // From the last line down, so that what is overwritten has been moved.
  bool Unfold(uint64_t count) {
    for (; count > 0 && small_ > 0; --count) {
      --small_;
      const Words words = Read(small_);
      Write(2 * small_, words);
      Write(2 * small_ + 1, words);
    }
    return small_ == 0;
  }

  // From the first line up, for the same reason.
  bool Fold(uint64_t count) {
    for (; count > 0 && 2 * small_ < large_lines_; --count, ++small_) {
      Words words = Read(2 * small_);
      const Words other = Read(2 * small_ + 1);
      for (size_t i = 0; i < words.size(); ++i) words[i] |= other[i];
      Write(small_, words);
    }
    if (2 * small_ < large_lines_) return false;
    large_lines_ /= 2;
    small_ = 0;
    return true;
  }

  char* memory_;
  uint64_t large_lines_;
  // Ids whose line is below this in the small numbering are found there: all before an unfold, none
  // before a fold, and none when no pass runs.
  uint64_t small_ = 0;
  Pass pass_ = Pass::kNone;
  uint64_t swept_ = 0;
  uint64_t keep_ = ~uint64_t{0};
};

}  // namespace lethe

#endif  // LETHE_SRC_REFERENCE_SLICED_SLICED_LINES_H_
