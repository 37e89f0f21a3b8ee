// Envelopes that many producers share, and the id that the specification of each names.
#ifndef LETHE_SURVEY_ENVELOPES_H_
#define LETHE_SURVEY_ENVELOPES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "src/record/record_reader.h"
#include "src/survey/id_places.h"

namespace lethe {

struct Envelope {
  std::string name;  // "CloudEvents, binary"
  IdSpec id;
  absl::string_view why;  // it is the id
};

// Of the records that have a value.
struct EnvelopeFacts {
  int64_t records = 0;
  int64_t with_key = 0;
  int64_t with_uuid_header = 0;  // `id`, as Debezium's outbox has it
};

// The envelope that nearly all records have, by the names of its fields or headers. Its id may be absent from
// them, or broken: the survey measures it like others. nullopt: none that is known.
std::optional<Envelope> RecognizeEnvelope(const IdPlaces& places, const EnvelopeFacts& facts);

// Whether the text is a UUID, with or without quotes.
bool IsUuid(absl::string_view text);

}  // namespace lethe

#endif  // LETHE_SURVEY_ENVELOPES_H_
