// Which members of a group are lethe's, and how often the group is asked.
#include "src/pipeline/assign/foreign_members.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/manual_clock.h"

namespace lethe {
namespace {

ProcessOptions Process(const std::string& client_id = "") {
  ProcessOptions process;
  process.group = "g";
  process.instance = "a";
  if (!client_id.empty()) process.properties = {{"client.id", client_id}};
  return process;
}

const NamedMember kOurs = {"a-0-uuid", "a-0", "/10.0.0.6", "lethe-a"};
const NamedMember kOther = {"b-0-uuid", "b-0", "/10.0.0.7", "lethe-b"};
const NamedMember kKcat = {"rdkafka-uuid", "rdkafka", "/10.0.0.8", "rdkafka"};

TEST(ForeignMembersTest, LethesAreKnownByTheirClientId) {
  EXPECT_FALSE(ForeignMembers::IsForeign(Process(), kOurs));
  EXPECT_FALSE(ForeignMembers::IsForeign(Process(), kOther));
  EXPECT_TRUE(ForeignMembers::IsForeign(Process(), kKcat));
  EXPECT_TRUE(ForeignMembers::IsForeign(Process(), {"shop-0-uuid", "shop-0", "/10.0.0.9", "consumer-1"}));
}

// Each instance may have another one, such as its host's name.
TEST(ForeignMembersTest, WhereAUserHasSetTheClientIdStaticMembersAreTakenForLethes) {
  EXPECT_FALSE(ForeignMembers::IsForeign(Process("host-1"), {"a-0-uuid", "a-0", "/10.0.0.6", "host-1"}));
  EXPECT_FALSE(ForeignMembers::IsForeign(Process("host-1"), {"b-0-uuid", "b-0", "/10.0.0.7", "host-2"}));
  EXPECT_FALSE(ForeignMembers::IsForeign(Process("host-1"), kOther));
  EXPECT_TRUE(ForeignMembers::IsForeign(Process("host-1"), kKcat));
}

class ForeignMembersPaceTest : public testing::Test {
 protected:
  // Looks for so long, each second.
  int AsksIn(absl::Duration time, size_t owned) {
    const int before = asks_;
    for (; time > absl::ZeroDuration(); time -= absl::Seconds(1)) {
      foreign_.Look(owned);
      clock_.Pass(absl::Seconds(1));
    }
    return asks_ - before;
  }

  int asks_ = 0;
  absl::StatusOr<std::vector<NamedMember>> members_ = std::vector<NamedMember>{kOurs, kOther};
  test::ManualClock clock_;
  const ProcessOptions process_ = Process();
  ForeignMembers foreign_{process_, [this] { return ++asks_, members_; }, clock_};
};

TEST_F(ForeignMembersPaceTest, TheGroupIsAskedSeldomAndSoonAfterARebalance) {
  EXPECT_EQ(AsksIn(absl::Minutes(20), 4), 4);
  EXPECT_TRUE(foreign_.names().empty());
  members_->push_back(kKcat);
  EXPECT_EQ(AsksIn(absl::Seconds(5), 2), 1);
  EXPECT_EQ(foreign_.names(), std::vector<std::string>{"rdkafka on host /10.0.0.8"});
  EXPECT_EQ(AsksIn(absl::Seconds(5), 3), 0) << "one rebalance after the other";
  members_->pop_back();
  EXPECT_LE(AsksIn(absl::Minutes(2), 4), 2);
  EXPECT_TRUE(foreign_.names().empty());
}

TEST_F(ForeignMembersPaceTest, WithoutAnAnswerWhatWasKnownStays) {
  members_->push_back(kKcat);
  AsksIn(absl::Seconds(1), 4);
  members_ = absl::UnavailableError("no answer");
  EXPECT_LE(AsksIn(absl::Minutes(5), 3), 30);
  EXPECT_EQ(foreign_.names().size(), 1u);
}

}  // namespace
}  // namespace lethe
