#include "src/snapshot/fields.h"

#include <cstring>

namespace lethe {

void FieldWriter::Float(const double& field, double least, double most) {
  ok_ = ok_ && field >= least && field <= most;
  Put(&field);
}

void FieldWriter::Text(const std::string& field, size_t most) {
  Int(field.size(), 0, static_cast<int64_t>(most));
  bytes_ += field;
  bytes_.append((8 - field.size() % 8) % 8, '\0');
}

void FieldWriter::PutInt(int64_t value, int64_t least, int64_t most) {
  ok_ = ok_ && value >= least && value <= most;
  Put(&value);
}

void FieldWriter::Put(const void* eight) { bytes_.append(static_cast<const char*>(eight), 8); }

void FieldReader::Time(int64_t& field) {
  int64_t value = 0;
  Get(&value);
  ok_ = ok_ && (value == kNoStreamTime || (value >= -kFarthestSnapshotMs && value <= kFarthestSnapshotMs));
  if (ok_) field = value;
}

void FieldReader::Float(double& field, double least, double most) {
  double value = 0;
  Get(&value);
  ok_ = ok_ && value >= least && value <= most;  // not a number is neither
  if (ok_) field = value;
}

void FieldReader::Word(uint64_t& field) {
  uint64_t value = 0;
  Get(&value);
  if (ok_) field = value;
}

void FieldReader::Text(std::string& field, size_t most) {
  size_t size = 0;
  Int(size, 0, static_cast<int64_t>(most));
  const size_t padded = (size + 7) / 8 * 8;
  ok_ = ok_ && padded <= bytes_.size();
  if (!ok_) return;
  field = std::string(bytes_.substr(0, size));
  bytes_.remove_prefix(padded);
}

bool FieldReader::GetInt(int64_t* value, int64_t least, int64_t most) {
  Get(value);
  ok_ = ok_ && *value >= least && *value <= most;
  return ok_;
}

void FieldReader::Get(void* eight) {
  ok_ = ok_ && bytes_.size() >= 8;
  if (!ok_) return;
  std::memcpy(eight, bytes_.data(), 8);
  bytes_.remove_prefix(8);
}

}  // namespace lethe
