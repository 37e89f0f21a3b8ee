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
class Descriptor;
class DescriptorPool;
class FileDescriptor;
}  // namespace google::protobuf

namespace lethe {

// Compiled by libprotobuf. Immutable.
//
// A place is a JSON pointer (RFC 6901): a step is a field by its name or its name in JSON, the index in a
// repeated field, or the key in a map (an integer's text, true or false). The wrappers of google.protobuf
// (StringValue and the like) are the value in them, as in JSON.
//
// A field that is not written has its default if the message around it is there, and the schema does not tell
// the two apart: numbers, strings, enums and bools of proto3, without `optional` and in no oneof. Others are
// missing, and all of proto2's, also those with a default of their own.
class ProtobufSchema {
 public:
  // InvalidArgument: it is no Protobuf schema; ResourceExhausted: it is larger than 1 MiB with its
  // references, or nested deeper than 64. Both fit behind "schema id 7 ". A type that neither it nor a
  // reference nor libprotobuf has is a message without fields.
  static absl::StatusOr<ProtobufSchema> Compile(const Schema& schema);
  ProtobufSchema(ProtobufSchema&&) noexcept;
  ~ProtobufSchema();

  // `indexes`: the message's index in the file, then in the message around it; none: the first message. Some
  // serializers count the entries of maps among nested messages, as descriptors do, and some do not: they
  // count, unless that would name an entry or nothing.
  // Of a message that the schema does not have: nullopt. Places share the symbols of an enum. Places that the
  // message does not have have no path.
  std::optional<std::vector<ProtobufPlace>> Places(absl::Span<const int32_t> indexes,
                                                   const std::vector<std::string>& pointers) const;

  // Pointers to the strings, bytes, numbers and enums of the same message, in messages down to `depth`, not
  // in lists and maps; at most `most`. Empty: there is no such message.
  std::vector<std::string> Pointers(absl::Span<const int32_t> indexes, int depth, size_t most) const;

 private:
  ProtobufSchema();
  const google::protobuf::Descriptor* Find(absl::Span<const int32_t> indexes) const;

  std::unique_ptr<google::protobuf::DescriptorPool> pool_;
  const google::protobuf::FileDescriptor* file_ = nullptr;
};

}  // namespace lethe

#endif  // LETHE_SRC_RECORD_PROTOBUF_SCHEMA_H_
