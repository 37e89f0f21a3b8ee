// `lethe verify`'s judge beside the oracle: neither knows the other, and both must say the same.
#ifndef LETHE_TESTS_FAULTS_SECOND_JUDGE_H_
#define LETHE_TESTS_FAULTS_SECOND_JUDGE_H_

#include <string>
#include <vector>

#include "tests/faults/judge.h"

namespace lethe::test {

// What it says otherwise than the oracle of the same evidence, in words; none: they agree.
std::vector<std::string> Disagreements(const Evidence& evidence, const Judgement& judgement);

// Likewise of what the command has printed (--format json) of the topics themselves.
std::vector<std::string> DisagreementsOfCommand(const std::string& json, const Judgement& judgement);

}  // namespace lethe::test

#endif  // LETHE_TESTS_FAULTS_SECOND_JUDGE_H_
