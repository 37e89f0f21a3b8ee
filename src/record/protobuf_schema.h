// Compiles a Protobuf schema, and finds the numbers of fields that are asked for by name.
#ifndef LETHE_SRC_RECORD_PROTOBUF_SCHEMA_H_
#define LETHE_SRC_RECORD_PROTOBUF_SCHEMA_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/record/protobuf_walk.h"
#include "src/record/schema_source.h"

namespace google::protobuf {
class DescriptorPool;
class FileDescriptor;
}  // namespace google::protobuf

namespace lethe {

// Compiled by libprotobuf. Immutable.
class ProtobufSchema {
 public:
  // InvalidArgument: it is no Protobuf schema; ResourceExhausted: it is larger than 1 MiB with its
  // references, or nested deeper than 64. Both fit behind "schema id 7 ". A type that neither it nor a
  // reference nor libprotobuf has is a message without fields.
  static absl::StatusOr<ProtobufSchema> Compile(const Schema& schema);
  ProtobufSchema(ProtobufSchema&&) noexcept;
  ~ProtobufSchema();

  // `indexes`: the message's index in the file, then in the message around it; none: the first message.
  // `pointers`: each step is the name of a field, or its name in JSON, or behind a repeated field the index
  // of an element, behind a map a key. Of a message that the schema does not have: nullopt. Places that the
  // message does not have have no path.
  std::optional<std::vector<ProtobufPlace>> Places(absl::Span<const int32_t> indexes,
                                                   const std::vector<std::string>& pointers) const;

 private:
  ProtobufSchema();

  std::unique_ptr<google::protobuf::DescriptorPool> pool_;
  const google::protobuf::FileDescriptor* file_ = nullptr;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_PROTOBUF_SCHEMA_H_
