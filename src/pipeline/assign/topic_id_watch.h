// Whether a topic was deleted and created again by the same name, by its id (KIP-516).
#ifndef LETHE_SRC_PIPELINE_ASSIGN_TOPIC_ID_WATCH_H_
#define LETHE_SRC_PIPELINE_ASSIGN_TOPIC_ID_WATCH_H_

#include <string>

namespace lethe {

// Whether the group has judged another topic of this name. False while either id is not known.
inline bool IsOfAnotherTopic(const std::string& judged, const std::string& present) {
  return !judged.empty() && !present.empty() && judged != present;
}

// Compares a topic's ids while it is read. One other answer does not count: a broker may be behind. Thread
// safety: none.
class TopicIdWatch {
 public:
  // Whether `answer` is another topic than `judged`, and the answer before it was the same.
  bool IsRecreated(const std::string& judged, const std::string& answer) {
    const bool is_other = IsOfAnotherTopic(judged, answer);
    const bool is_sure = is_other && answer == other_;
    other_ = is_other ? answer : "";
    return is_sure;
  }

 private:
  std::string other_;
};

}  // namespace lethe

#endif  // LETHE_SRC_PIPELINE_ASSIGN_TOPIC_ID_WATCH_H_
