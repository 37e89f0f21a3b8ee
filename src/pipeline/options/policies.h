// Handling of duplicates and bad records: the user's policies.
#ifndef LETHE_SRC_PIPELINE_OPTIONS_POLICIES_H_
#define LETHE_SRC_PIPELINE_OPTIONS_POLICIES_H_

namespace lethe {

// What is done with a record.
enum class Action {
  kPass,    // written to the output as it is
  kDrop,    // not written
  kTag,     // written to the output, with a header that says why
  kDivert,  // written to a topic of its own, with headers that say why and where it was
  kFail,    // not read: its partition stops in front of it
};

// Handling of duplicates and bad records.
struct Policies {
  Action on_duplicate = Action::kDrop;      // kDrop, kTag or kDivert
  Action on_suspect = Action::kPass;        // kPass, kDrop, kTag or kDivert; see StageOptions::pass_suspects
  Action on_missing_id = Action::kPass;     // kPass, kDrop, kDivert or kFail
  Action on_malformed = Action::kPass;      // the same
  Action on_undeliverable = Action::kDrop;  // kDrop, kDivert or kFail
  Action on_unreadable = Action::kFail;     // kFail or kDrop
  // Of an event that goes out and cannot be counted. kPass, or kDivert: a copy of it is diverted.
  Action on_uncountable = Action::kPass;

  bool diverts() const {
    return on_duplicate == Action::kDivert || on_suspect == Action::kDivert ||
           on_missing_id == Action::kDivert || on_malformed == Action::kDivert ||
           on_undeliverable == Action::kDivert || on_uncountable == Action::kDivert;
  }
  // Whether a suspect goes out, so that the second opinion is to remember it.
  bool passes_suspects() const { return on_suspect == Action::kPass || on_suspect == Action::kTag; }
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_OPTIONS_POLICIES_H_
