// Which of two processes stays that run as one instance.
#include "src/pipeline/assign/instance_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/manual_clock.h"
#include "tests/support/status_matchers.h"

namespace lethe {
namespace {

using testing::HasSubstr;

// Its session times out after 45 s.
DaemonOptions Options(StaticMembership membership) {
  DaemonOptions options;
  options.process.group = "g";
  options.process.instance = "a";
  options.process.static_membership = membership;
  return options;
}

class InstanceClaimTest : public testing::Test {
 protected:
  void Pass(absl::Duration time) { clock_.Pass(time); }

  absl::StatusOr<std::vector<NamedMember>> members_ = std::vector<NamedMember>();
  test::ManualClock clock_;
  const DaemonOptions options_ = Options(StaticMembership::kAfterCrash);
  InstanceClaim claim_{options_, [this] { return members_; }, clock_};
};

const NamedMember kOther = {"id-of-other", "a-0", "/10.0.0.7"};
const NamedMember kOwn = {"own", "a-0", "/10.0.0.6"};

TEST_F(InstanceClaimTest, TheNewcomerEndsAndNamesTheOther) {
  members_->push_back(kOther);
  claim_.Look();
  const absl::Status fenced = claim_.Fenced(0, "own");
  EXPECT_THAT(fenced, StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("/10.0.0.7")));
}

TEST_F(InstanceClaimTest, TheOneThatWasThereFirstTakesItsNameBackHoweverOften) {
  claim_.Look();
  members_->push_back(kOther);
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(claim_.Fenced(0, "own"));
    Pass(claim_.pause());  // a newcomer takes at least so long to come again
  }
}

TEST_F(InstanceClaimTest, OneThatTookThePlaceOfItsFormerLifeIsNoNewcomerAfterASessionTimeout) {
  members_->push_back(kOther);
  claim_.Look();
  Pass(absl::Seconds(46));
  EXPECT_OK(claim_.Fenced(0, "own"));
}

TEST_F(InstanceClaimTest, OfTwoThatWereThereFirstOneGivesIn) {
  claim_.Look();
  members_->push_back(kOther);
  int taken_back = 0;
  for (; claim_.Fenced(0, "own").ok(); ++taken_back) {
    ASSERT_LT(taken_back, 10);
    Pass(absl::Seconds(6));
  }
  EXPECT_GT(taken_back, 0);
}

// To recreate a client takes seconds, whatever the timeout.
TEST_F(InstanceClaimTest, OneGivesInWithAShortSessionTimeout) {
  DaemonOptions options = options_;
  options.process.properties = {{"session.timeout.ms", "6000"}};
  InstanceClaim claim(
      options, [this] { return members_; }, clock_);
  claim.Look();
  members_->push_back(kOther);
  int taken_back = 0;
  for (; claim.Fenced(0, "own").ok(); ++taken_back) {
    ASSERT_LT(taken_back, 10);
    Pass(absl::Seconds(3));
  }
  EXPECT_GT(taken_back, 0);
  for (int i = 0; i < 20; ++i) {
    Pass(claim.pause());
    EXPECT_OK(claim.Fenced(0, "own")) << "of a newcomer that comes again and again";
  }
}

TEST_F(InstanceClaimTest, AFenceWithoutAnotherMemberIsNoContest) {
  members_->push_back(kOwn);
  claim_.Look();
  for (int i = 0; i < 20; ++i) EXPECT_OK(claim_.Fenced(0, "own"));
}

// Brokers fence a member whose coordinator moves, too, and cannot be asked at that time.
TEST_F(InstanceClaimTest, WithoutAnAnswerNothingIsProven) {
  members_->push_back(kOther);
  claim_.Look();
  members_ = absl::UnavailableError("no answer");
  for (int i = 0; i < 20; ++i) EXPECT_OK(claim_.Fenced(0, "own"));
  // Nor does a fence count that nobody has explained.
  Pass(absl::Seconds(46));
  members_ = std::vector<NamedMember>{kOther};
  EXPECT_OK(claim_.Fenced(0, "own"));
}

TEST_F(InstanceClaimTest, AGroupThatHasNoMemberOfTheNameProvesNothing) {
  members_->push_back(kOther);
  claim_.Look();
  members_->clear();
  for (int i = 0; i < 20; ++i) EXPECT_OK(claim_.Fenced(0, "own"));
}

// They share the client's name.
TEST_F(InstanceClaimTest, LanesOfAProcessAreNoOthers) {
  DaemonOptions options = Options(StaticMembership::kNever);
  options.process.lanes = 2;
  InstanceClaim claim(
      options, [this] { return members_; }, clock_);
  claim.Look();
  members_ = std::vector<NamedMember>{{"own", "lethe-a", "/10.0.0.6"}, {"lane-1", "lethe-a", "/10.0.0.6"}};
  for (int i = 0; i < 20; ++i) EXPECT_OK(claim.Fenced(0, "own"));
  members_->push_back({"id-of-other", "lethe-a", "/10.0.0.7"});
  int fences = 0;
  while (claim.Fenced(0, "own").ok()) ASSERT_LT(++fences, 10);
  EXPECT_GT(fences, 0);
}

}  // namespace
}  // namespace lethe
