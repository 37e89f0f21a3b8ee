// `lethe run` and `lethe check` against a broker that asks who they are, over TLS, and lets them do only what
// its ACLs say. No secret may be seen anywhere, whatever goes wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "src/pipeline/clock/steady_time.h"
#include "tests/support/acls.h"
#include "tests/support/flow.h"
#include "tests/support/free_port.h"
#include "tests/support/pipeline.h"
#include "tests/support/shared_broker.h"
#include "tests/support/status_matchers.h"

namespace lethe::test {
namespace {

using testing::HasSubstr;

constexpr char kPassword[] = "hunter2-of-the-user";
constexpr char kWrongPassword[] = "hunter3-which-is-wrong";
constexpr char kKeyPassword[] = "hunter4-of-the-key";
const std::vector<std::string> kSecrets = {kPassword, kWrongPassword, kKeyPassword, "PRIVATE KEY"};

constexpr auto kRead = RD_KAFKA_ACL_OPERATION_READ;
constexpr auto kWrite = RD_KAFKA_ACL_OPERATION_WRITE;
constexpr auto kCreate = RD_KAFKA_ACL_OPERATION_CREATE;

// Events that count 1 each.
std::vector<Record> Countable(int first, int last) {
  std::vector<Record> records;
  for (int i = first; i <= last; ++i) {
    records.push_back(WithId(absl::StrCat("a", i)));
    records.back().value = absl::StrCat(R"({"id":"a)", i, R"(","n":1})");
  }
  return records;
}
int64_t Counted(const std::string& topic) {
  int64_t sum = 0;
  const std::vector<Record> deltas = SharedClient().ReadSettled(topic).value();
  for (const Record& delta : deltas) sum += std::stoll(*delta.value);
  return sum;
}

void Must(const std::vector<std::string>& args) {
  ProcessOptions options;
  options.args = args;
  const Finished finished = RunToEnd(options, absl::Minutes(1)).value();
  if (finished.exit_code != 0)
    throw std::runtime_error(absl::StrCat(args[0], " ", args[1], ": ", finished.err));
}

// An authority, and what it has signed, made with openssl for the time of the tests.
class Certificates {
 public:
  Certificates() : folder_(std::filesystem::temp_directory_path() / absl::StrCat("lethe-tls-", getpid())) {
    std::filesystem::create_directories(folder_);
    Must({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
          "/CN=test authority", "-keyout", Path("ca.key"), "-out", Path("ca.pem")});
    Sign("broker", {});
    Sign("lethe", {"-aes256", "-pass", absl::StrCat("pass:", kKeyPassword)});
    // Kafka takes a key and its certificates from one file.
    std::ofstream(Path("broker.both")) << Read("broker.key") << Read("broker.pem") << Read("ca.pem");
  }
  ~Certificates() { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

 private:
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name));
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }

  void Sign(const std::string& name, const std::vector<std::string>& key_options) {
    std::vector<std::string> key = {"openssl", "genpkey",          "-algorithm",
                                    "RSA",     "-pkeyopt",         "rsa_keygen_bits:2048",
                                    "-out",    Path(name + ".key")};
    key.insert(key.end(), key_options.begin(), key_options.end());
    Must(key);
    std::ofstream(Path(name + ".names")) << "subjectAltName=IP:127.0.0.1\n";
    Must({"openssl", "req", "-new", "-key", Path(name + ".key"), "-passin",
          absl::StrCat("pass:", kKeyPassword), "-subj", "/CN=" + name, "-out", Path(name + ".request")});
    Must({"openssl", "x509", "-req", "-in", Path(name + ".request"), "-CA", Path("ca.pem"), "-CAkey",
          Path("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", Path(name + ".names"), "-out",
          Path(name + ".pem")});
  }

  const std::filesystem::path folder_;
};

std::string& ScramAddress() {
  static std::string address;
  return address;
}
std::string& MutualAddress() {
  static std::string address;
  return address;
}

// Beside the listeners that the tests administer by: one for SCRAM over TLS, and one for certificates.
KafkaBrokerOptions Secured(const Certificates& certificates) {
  KafkaBrokerOptions options;
  options.adapt = [&certificates](std::map<std::string, std::string>& properties) {
    const int scram = FreePort();
    int mutual = FreePort();
    while (mutual == scram) mutual = FreePort();
    ScramAddress() = absl::StrCat("127.0.0.1:", scram);
    MutualAddress() = absl::StrCat("127.0.0.1:", mutual);
    const std::string more = absl::StrCat(",SCRAM://", ScramAddress(), ",MUTUAL://", MutualAddress());
    properties["listeners"] += more;
    properties["advertised.listeners"] += more;
    properties["listener.security.protocol.map"] += ",SCRAM:SASL_SSL,MUTUAL:SSL";
    properties["listener.name.scram.sasl.enabled.mechanisms"] = "SCRAM-SHA-256,SCRAM-SHA-512";
    for (const char* mechanism : {"256", "512"}) {
      properties[absl::StrCat("listener.name.scram.scram-sha-", mechanism, ".sasl.jaas.config")] =
          "org.apache.kafka.common.security.scram.ScramLoginModule required;";
    }
    properties["listener.name.mutual.ssl.client.auth"] = "required";
    properties["ssl.keystore.type"] = properties["ssl.truststore.type"] = "PEM";
    properties["ssl.keystore.location"] = certificates.Path("broker.both");
    properties["ssl.truststore.location"] = certificates.Path("ca.pem");
    properties["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer";
    properties["super.users"] = "User:ANONYMOUS";  // who comes by the plain listener, which is the tests' own
  };
  for (const char* mechanism : {"SCRAM-SHA-256", "SCRAM-SHA-512"}) {
    options.format_args.emplace_back("--add-scram");
    options.format_args.push_back(absl::StrCat(mechanism, "=[name=lethe,password=", kPassword, "]"));
  }
  return options;
}

class SecurityTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    certificates_ = new Certificates();
    SetSharedBrokerOptions(Secured(*certificates_));
    acls_ = new Acls(SharedBroker().bootstrap());
  }
  static void TearDownTestSuite() {
    delete acls_;
    delete certificates_;
    acls_ = nullptr;
    certificates_ = nullptr;
  }

  static Args Scram(const std::string& mechanism, const std::string& password = kPassword) {
    return {
        "--brokers=" + ScramAddress(),         "--kafka=security.protocol=SASL_SSL",
        "--kafka=sasl.mechanism=" + mechanism, "--kafka=sasl.username=lethe",
        "--kafka=sasl.password=" + password,   "--kafka=ssl.ca.location=" + certificates_->Path("ca.pem")};
  }
  static Args Mutual() { return MutualWith(certificates_->Path("lethe.key")); }
  static Args MutualWith(const std::string& key) {
    return {"--brokers=" + MutualAddress(),
            "--kafka=security.protocol=SSL",
            "--kafka=ssl.ca.location=" + certificates_->Path("ca.pem"),
            "--kafka=ssl.certificate.location=" + certificates_->Path("lethe.pem"),
            "--kafka=ssl.key.location=" + key,
            absl::StrCat("--kafka=ssl.key.password=", kKeyPassword)};
  }

  // What lethe needs, as its README has it.
  static std::vector<Acl> Needed(const Flow& flow, const std::string& principal) {
    using Resource = Acl::Resource;
    return {{principal, Resource::kTransactionalIdPrefix, flow.group() + "/", RD_KAFKA_ACL_OPERATION_WRITE},
            {principal, Resource::kTopic, flow.input(), RD_KAFKA_ACL_OPERATION_READ},
            {principal, Resource::kTopic, flow.output(), RD_KAFKA_ACL_OPERATION_WRITE},
            {principal, Resource::kGroup, flow.group(), RD_KAFKA_ACL_OPERATION_READ},
            {principal, Resource::kTopic, flow.input(), RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS},
            {principal, Resource::kTopic, flow.output(), RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS}};
  }
  static std::vector<Acl> On(const std::string& topic, const std::vector<rd_kafka_AclOperation_t>& what) {
    std::vector<Acl> acls;
    for (const rd_kafka_AclOperation_t operation : what)
      acls.push_back({"User:lethe", Acl::Resource::kTopic, topic, operation});
    return acls;
  }
  static void Grant(const std::vector<Acl>& acls) {
    for (const Acl& acl : acls) ASSERT_OK(acls_->Grant(acl));
  }

  static testing::AssertionResult NoSecretIn(const std::string& text) {
    for (const std::string& secret : kSecrets) {
      if (absl::StrContains(text, secret)) return testing::AssertionFailure() << secret << " is in\n" << text;
    }
    return testing::AssertionSuccess();
  }

  static const Certificates* certificates_;
  static Acls* acls_;
};
const Certificates* SecurityTest::certificates_ = nullptr;
Acls* SecurityTest::acls_ = nullptr;

TEST_F(SecurityTest, ScramOverTlsAndMutualTlsWithTheNeededAclsAlone) {
  const std::pair<std::string, Args> ways[] = {{"User:lethe", Scram("SCRAM-SHA-256")},
                                               {"User:lethe", Scram("SCRAM-SHA-512")},
                                               {"User:CN=lethe", Mutual()}};
  for (const auto& [principal, args] : ways) {
    Flow flow({LETHE_PROGRAM, 2, {}, {}});
    Grant(Needed(flow, principal));
    flow.SendIds("a", 1, 200);
    flow.SendIds("a", 101, 300);
    flow.SendIds("b", 1, 50, 1);
    const auto daemon = flow.Start(args);
    ASSERT_TRUE(daemon->AwaitReady());
    ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 450; }));
    for (const char* path : {"/", "/status", "/metrics"})
      EXPECT_TRUE(NoSecretIn(daemon->Get(path).body)) << path;
    const Finished check = flow.RunCommand("check", args);
    EXPECT_LE(check.exit_code, 1) << check.out << check.err;
    EXPECT_TRUE(NoSecretIn(check.out + check.err));
    EXPECT_TRUE(daemon->Stop());
    EXPECT_TRUE(NoSecretIn(daemon->Log() + daemon->process().Stdout()));
    EXPECT_TRUE(flow.ExactlyOnce());
  }
}

// A topic that is denied is told with its name, nothing is lost, the offsets stay, and once it is granted all
// goes on.
TEST_F(SecurityTest, DeniedOperationsAreReportedAndLoseNothing) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const std::vector<Acl> needed = Needed(flow, "User:lethe");
  const Args args = Scram("SCRAM-SHA-512");
  flow.SendIds("a", 1, 100);
  const struct {
    size_t left_out;  // of `needed`
    std::string said;
  } cases[] = {{0, "ransactional"}, {1, flow.input()}, {2, flow.output()}, {3, flow.group()}};
  for (const auto& [left_out, said] : cases) {
    ASSERT_OK(acls_->Revoke(needed[left_out]));
    for (size_t i = 0; i < needed.size(); ++i) {
      if (i == left_out || (i == 0 && left_out > 1)) continue;  // the first is granted by then
      ASSERT_OK(acls_->Grant(needed[i]));
    }
    const Finished finished = flow.RunToEnd(args);
    EXPECT_EQ(finished.exit_code, 1) << said << "\n" << finished.err;
    EXPECT_THAT(finished.err, HasSubstr(said));
    EXPECT_THAT(finished.err, HasSubstr("uthoriz"));
    EXPECT_THAT(finished.err, HasSubstr("grant this user"));
    EXPECT_TRUE(NoSecretIn(finished.err));
    EXPECT_EQ(flow.OutputSize(), 0);
    EXPECT_LE(flow.Committed()[0].offset, 0);
    const Finished check = flow.RunCommand("check", args);
    EXPECT_EQ(check.exit_code, 2) << check.out << check.err;
    EXPECT_THAT(check.out, HasSubstr("grant this user"));
    EXPECT_TRUE(NoSecretIn(check.out + check.err));
    EXPECT_EQ(flow.OutputSize(), 0);
    EXPECT_LE(flow.Committed()[0].offset, 0);
  }
  Grant(needed);
  EXPECT_EQ(flow.RunToEnd(args).exit_code, 0);
  EXPECT_TRUE(flow.ExactlyOnce());
}

// The other topics that it may be told to write to: what is denied at the start is told with the topic's
// name, nothing is out, and all goes on when it is granted.
TEST_F(SecurityTest, EachDeniedTopicBesideTheOutputIsNamed) {
  const struct {
    std::string name;
    std::string option;  // ends where the topic's name is to stand; or scope: topic
    Args more;
    std::string remedy;
    bool made;  // by lethe, if it may
  } cases[] = {
      {"counters", "--counter=name=counter,key=key,delta=json:/n,output=", {}, "Describe and Write", false},
      {"diverted", "--divert=", {"--on-duplicate=divert"}, "Describe and Write", false},
      {"snapshots", "--snapshots-to=topic:", {}, "Read, Write and, to make it, Create", true},
      {"repartition", "--scope=topic", {}, "Read, Write, Delete and, to make it, Create", true},
  };
  for (const auto& [name, option, more, remedy, made] : cases) {
    SCOPED_TRACE(name);
    Flow flow({LETHE_PROGRAM, 1, {}, {}});
    const bool repartition = name == "repartition";
    const std::string topic = absl::StrCat(repartition ? flow.group() + "-" : "", flow.input(), "-", name);
    Grant(Needed(flow, "User:lethe"));
    if (repartition) {
      Grant({{"User:lethe", Acl::Resource::kTransactionalIdPrefix, flow.group() + "-repartition/", kWrite},
             {"User:lethe", Acl::Resource::kGroup, flow.group() + "-repartition", kRead}});
    }
    if (!made) {
      ASSERT_OK(SharedClient().CreateTopic(topic, 1));
    }
    Args args = Scram("SCRAM-SHA-256");
    args.push_back(repartition ? option : option + topic);
    args.insert(args.end(), more.begin(), more.end());
    flow.Send(Countable(1, 100));
    flow.Send(Countable(51, 150));
    const auto expect_denied = [&, &remedy = remedy] {
      const Finished denied = flow.RunToEnd(args);
      EXPECT_EQ(denied.exit_code, 1) << denied.err;
      EXPECT_THAT(denied.err, HasSubstr("uthoriz"));
      const std::string grant = absl::StrCat("grant this user ", remedy, " on topic ", topic);
      EXPECT_THAT(denied.err, HasSubstr(grant));
      EXPECT_TRUE(NoSecretIn(denied.out + denied.err));
      EXPECT_EQ(flow.OutputSize(), 0);
      EXPECT_LE(flow.Committed()[0].offset, 0);
    };
    expect_denied();
    const Finished check = flow.RunCommand("check", args);
    EXPECT_EQ(check.exit_code, 2) << check.out << check.err;
    EXPECT_THAT(check.out, HasSubstr(topic));
    EXPECT_THAT(check.out, HasSubstr("grant this user"));
    Grant(On(topic, {kWrite}));
    if (made) {
      Grant(On(topic, {kRead}));
      expect_denied();
      Grant(On(topic, {kCreate, RD_KAFKA_ACL_OPERATION_DELETE}));
    }
    const Finished finished = flow.RunToEnd(args);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    const std::vector<std::string> ids = flow.OutputIds();
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 150u);
    EXPECT_EQ(ids.size(), 150u);
    if (name == "counters") {
      EXPECT_EQ(Counted(topic), 150);
    }
    if (name == "diverted") {
      EXPECT_EQ(SharedClient().ReadSettled(topic).value().size(), 50u);
    }
    if (!repartition) {
      EXPECT_TRUE(flow.ExactlyOnce());
    }
  }
}

// What may be seen, and so lets it start, but not be written to: the log names it, and it waits until it is
// granted.
TEST_F(SecurityTest, TopicsWithoutWritePermissionAreReportedAtRunTime) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const std::string counters = flow.input() + "-counters", diverted = flow.input() + "-diverted";
  Grant(Needed(flow, "User:lethe"));
  for (const std::string& topic : {counters, diverted}) {
    ASSERT_OK(SharedClient().CreateTopic(topic, 1));
    Grant(On(topic, {RD_KAFKA_ACL_OPERATION_DESCRIBE}));
  }
  Args args = Scram("SCRAM-SHA-256");
  for (const std::string& arg : {"--counter=name=counter,key=key,delta=json:/n,output=" + counters,
                                 "--divert=" + diverted, std::string("--on-duplicate=divert")}) {
    args.push_back(arg);
  }
  flow.Send(Countable(1, 100));
  flow.Send(Countable(51, 150));
  const auto daemon = flow.Start(args);
  // What is diverted is written first, and counters when all of a transaction is judged.
  for (const std::string& topic : {diverted, counters}) {
    ASSERT_TRUE(daemon->AwaitLog(
        absl::StrCat("\"", topic, "\" [0] to transaction: Broker: Topic authorization failed")));
    ASSERT_TRUE(daemon->AwaitLog(absl::StrCat("(TOPIC_AUTHORIZATION_FAILED): grant this user Write on ",
                                              counters, ", ", diverted, ", ", flow.output())));
    EXPECT_TRUE(flow.Output().empty());
    EXPECT_LE(flow.Committed()[0].offset, 0);
    Grant(On(topic, {kWrite}));
  }
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 200; }));
  flow.Send(Countable(101, 200));
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 300; }));
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(NoSecretIn(daemon->Log() + daemon->process().Stdout()));
  EXPECT_TRUE(flow.ExactlyOnce());
  EXPECT_EQ(Counted(counters), 200);
  EXPECT_EQ(SharedClient().ReadSettled(diverted).value().size(), 100u);
}

// The permission to write goes while it runs, and comes back.
TEST_F(SecurityTest, RevokedPermissionsAreAwaited) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const std::vector<Acl> needed = Needed(flow, "User:lethe");
  Args args = Scram("SCRAM-SHA-256");
  Grant(needed);
  flow.SendIds("a", 1, 100);
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 100; }));
  ASSERT_OK(acls_->Revoke(needed[2]));
  flow.SendIds("a", 51, 200);
  ASSERT_TRUE(daemon->AwaitLog("uthoriz"));
  HttpAnswer ready;
  ASSERT_TRUE(daemon->Await([&] { return (ready = daemon->Get("/readyz")).status == 503; }));
  EXPECT_THAT(ready.body, HasSubstr("transactions in a row were aborted: Broker: Topic auth"));
  EXPECT_TRUE(NoSecretIn(daemon->Log() + ready.body));
  // The copies of what is out need no permission: small transactions of them alone are committed.
  EXPECT_LE(flow.Committed()[0].offset, 150);
  EXPECT_EQ(flow.Output().size(), 100u);
  Grant(needed);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 250; }));
  EXPECT_TRUE(daemon->AwaitReady());
  EXPECT_TRUE(daemon->Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
}

// From the environment, from a file and as it stands there, also where the file is wrong.
// Of several topics, one that may not be read any more holds no other.
TEST_F(SecurityTest, ARevokedTopicOfAListStandsAlone) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  Flow other({LETHE_PROGRAM, 1, {}, {}});
  std::vector<Acl> needed = Needed(flow, "User:lethe");
  for (const Acl& acl : Needed(other, "User:lethe")) {
    if (acl.resource == Acl::Resource::kTopic) needed.push_back(acl);
  }
  Grant(needed);
  const std::string config = absl::StrCat(testing::TempDir(), "/", flow.group(), ".yaml");
  std::ofstream(config) << "group: " << flow.group() << "\nid: json:/id\ntopics:\n"
                        << "  - {input: " << flow.input() << ", output: " << flow.output() << "}\n"
                        << "  - {input: " << other.input() << ", output: " << other.output() << "}\n";
  const int port = FreePort();
  ProcessOptions process;
  process.args = {LETHE_PROGRAM, "run", "--config", config, absl::StrCat("--http=127.0.0.1:", port)};
  for (const std::string& arg : Scram("SCRAM-SHA-256")) process.args.push_back(arg);
  Daemon daemon(Process::Start(process).value(), port);
  flow.SendIds("a", 1, 100);
  other.SendIds("b", 1, 100);
  ASSERT_TRUE(daemon.Await([&] { return daemon.Metric("lethe_records_total") == 200; })) << daemon.Log();
  const Acl& read = needed[1];
  ASSERT_OK(acls_->Revoke(read));
  HttpAnswer ready;
  ASSERT_TRUE(daemon.Await([&] {
    flow.SendIds("a", 51, 52);
    ready = daemon.Get("/readyz");
    return ready.status == 200 && absl::StrContains(ready.body, "ready but for") &&
           absl::StrContains(ready.body, "grant this user Read on topic " + flow.input());
  })) << ready.body
      << daemon.Log();
  other.SendIds("b", 51, 200);
  ASSERT_TRUE(daemon.Await([&] { return other.Output().size() == 200; })) << daemon.Log();
  EXPECT_EQ(daemon.Get("/readyz").status, 200);
  EXPECT_TRUE(NoSecretIn(daemon.Log()));
  ASSERT_OK(acls_->Grant(read));
  flow.SendIds("a", 90, 200);
  ASSERT_TRUE(daemon.Await([&] { return flow.Output().size() == 200; })) << daemon.Log();
  EXPECT_TRUE(daemon.Await([&] { return daemon.Get("/readyz").body == "ready\n"; })) << ready.body;
  EXPECT_TRUE(daemon.Stop());
  EXPECT_TRUE(flow.ExactlyOnce());
  EXPECT_EQ(other.Output().size(), 200u);
}

TEST_F(SecurityTest, NoSecretIsServedOrLogged) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  Grant(Needed(flow, "User:lethe"));
  flow.SendIds("a", 1, 100);
  const std::string config = certificates_->Path("running.yaml");
  const std::string file = certificates_->Path("wrong");
  std::ofstream(file) << kWrongPassword << "\n";
  const auto write = [&](const std::string& password, const std::string& more = "") {
    std::ofstream(config) << "kafka:\n  security.protocol: SASL_SSL\n  sasl.mechanism: SCRAM-SHA-256\n"
                          << "  sasl.username: lethe\n  ssl.ca.location: " << certificates_->Path("ca.pem")
                          << "\n  sasl.password: " << password << "\n"
                          << more;
  };
  setenv("LETHE_TEST_PASSWORD", kPassword, 1);
  write("${LETHE_TEST_PASSWORD}");
  const auto daemon = flow.Start({"--config=" + config, "--brokers=" + ScramAddress()});
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 100; }));
  const auto nothing_is_shown = [&] {
    for (const char* path : {"/", "/status", "/status?partition=0&history=1", "/metrics", "/readyz"}) {
      const HttpAnswer answer = daemon->Get(path);
      EXPECT_EQ(answer.status, 200) << path;
      EXPECT_TRUE(NoSecretIn(answer.body)) << path;
    }
    EXPECT_TRUE(NoSecretIn(daemon->Log() + daemon->process().Stdout()));
  };
  nothing_is_shown();
  const std::string secret = kPassword;
  const std::pair<std::string, std::string> changes[] = {
      {secret, ""},                              // the same, from elsewhere
      {"${file:" + file + "}", ""},              // another
      {secret, "  linger.ms: " + secret},        // in a wrong place
      {secret, "  ssl.key.pasword: " + secret},  // under a name that is none
      {secret + "\n: '" + secret, ""},           // no YAML
      {"${LETHE_TEST_NO_PASSWORD}", ""},
  };
  for (const auto& [password, more] : changes) {
    write(password, more);
    const Finished run = flow.RunCommand("run", {"--config=" + config, "--print-config"});
    EXPECT_TRUE(NoSecretIn(run.out + run.err));
    EXPECT_FALSE((run.out + run.err).empty());
  }
  EXPECT_TRUE(daemon->Stop());
  unsetenv("LETHE_TEST_PASSWORD");
  EXPECT_TRUE(NoSecretIn(daemon->Log() + daemon->process().Stdout()));
  EXPECT_TRUE(flow.ExactlyOnce());
}

TEST_F(SecurityTest, AWrongPasswordEndsItWithTheReason) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  for (const char* format : {"text", "json"}) {
    Args args = Scram("SCRAM-SHA-256", kWrongPassword);
    args.push_back(absl::StrCat("--log-format=", format));
    const Finished finished = flow.RunToEnd(args);
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    EXPECT_THAT(finished.err, HasSubstr("the brokers do not let this user in"));
    EXPECT_TRUE(NoSecretIn(finished.out + finished.err));
  }
  const Finished check = flow.RunCommand("check", Scram("SCRAM-SHA-256", kWrongPassword));
  EXPECT_EQ(check.exit_code, 2);
  EXPECT_THAT(check.out, HasSubstr("the brokers do not let this user in"));
  EXPECT_TRUE(NoSecretIn(check.out + check.err));
}

// A process of the same name, that comes in by another listener, throws it out of the group: its clients must
// be recreated, from a key that is being replaced just then.
// A listener of TLS without it, one without TLS with it, and SASL without a mechanism.
TEST_F(SecurityTest, AWrongProtocolIsNamedByEachCommand) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const struct {
    std::string brokers;
    std::string protocol;
    std::string named;
  } cases[] = {{MutualAddress(), "PLAINTEXT", "security.protocol"},
               {ScramAddress(), "PLAINTEXT", "security.protocol"},
               {SharedBroker().bootstrap(), "SSL", "security.protocol"},
               {ScramAddress(), "SASL_SSL", "sasl.mechanism is not set"}};
  for (const auto& each : cases) {
    const std::string config = certificates_->Path("protocol.yaml");
    std::ofstream(config) << "brokers: " << each.brokers << "\ninput: " << flow.input()
                          << "\noutput: " << flow.output()
                          << "\nid: key\nkafka:\n  security.protocol: " << each.protocol << "\n";
    const std::string brokers = "--brokers=" + each.brokers;
    const std::string property = "--kafka=security.protocol=" + each.protocol;
    const std::vector<Args> commands = {{"check", "--config", config},
                                        {"verify", "--config", config},
                                        {"survey", brokers, property, "--input", flow.input()},
                                        {"counters", brokers, property, "--topic", flow.input()},
                                        {"reconcile", brokers, property, "--topic", flow.input(), "--id",
                                         "key", "--last", "1h", "--peer", "cat"}};
    std::vector<std::unique_ptr<Process>> started;
    for (const Args& command : commands) {
      ProcessOptions options;
      options.args = Args{LETHE_PROGRAM} + command;
      started.push_back(Process::Start(options).value());
    }
    for (size_t i = 0; i < started.size(); ++i) {
      EXPECT_NE(started[i]->Wait(absl::Minutes(1)).value_or(0), 0) << commands[i][0];
      const std::string said = started[i]->Stdout() + started[i]->Stderr();
      EXPECT_THAT(said, HasSubstr(each.named)) << each.protocol << " of " << commands[i][0];
    }
  }
}

TEST_F(SecurityTest, VerifyNeedsReadAlone) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  flow.SendIds("a", 1, 200);
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(EndsWell(flow.RunToEnd()));
  const std::string principal = "User:CN=lethe";
  for (const std::string& topic : {flow.input(), flow.output()}) {
    Grant({{principal, Acl::Resource::kTopic, topic, RD_KAFKA_ACL_OPERATION_READ}});
  }
  Grant({{principal, Acl::Resource::kGroup, flow.group(), RD_KAFKA_ACL_OPERATION_READ}});
  const std::string config = certificates_->Path("verify.yaml");
  std::ofstream(config) << "brokers: " << MutualAddress() << "\ninput: " << flow.input()
                        << "\noutput: " << flow.output() << "\ngroup: " << flow.group()
                        << "\nid: json:/id\nhorizon: 30d\nfpp: 1e-9\nkafka:\n  security.protocol: SSL"
                        << "\n  ssl.ca.location: " << certificates_->Path("ca.pem")
                        << "\n  ssl.certificate.location: " << certificates_->Path("lethe.pem")
                        << "\n  ssl.key.location: " << certificates_->Path("lethe.key")
                        << "\n  ssl.key.password: " << kKeyPassword << "\n";
  ProcessOptions verify;
  verify.args = {LETHE_PROGRAM, "verify", "--config", config, "--since", "all"};
  const absl::StatusOr<Finished> finished = RunToEnd(verify, absl::Minutes(1));
  ASSERT_OK(finished);
  EXPECT_EQ(finished->exit_code, 0) << finished->out << finished->err;
  EXPECT_TRUE(NoSecretIn(finished->out + finished->err));
}

TEST_F(SecurityTest, AConsumerThatCannotBeRecreatedEndsItWithTheReason) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  Grant(Needed(flow, "User:CN=lethe"));
  const std::string key = certificates_->Path("consumer.key");
  std::filesystem::copy_file(certificates_->Path("lethe.key"), key);
  flow.SendIds("a", 1, 100);
  Args args = MutualWith(key);
  args.push_back("--static-membership=true");
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->Await([&] { return daemon->Metric("lethe_records_total") == 100; }));
  std::filesystem::remove(key);
  const auto other = flow.Start({"--static-membership=true"});
  EXPECT_EQ(daemon->process().Wait(absl::Seconds(30)).value_or(-1), 1) << daemon->Log();
  EXPECT_THAT(daemon->Log(), HasSubstr("the consumer cannot be recreated"));
  EXPECT_THAT(daemon->Log(), HasSubstr("ssl.key.location"));
  EXPECT_TRUE(NoSecretIn(daemon->Log()));
  flow.SendIds("a", 51, 200);
  EXPECT_TRUE(other->Await([&] { return static_cast<bool>(flow.ExactlyOnce()); }));
  EXPECT_TRUE(other->Stop());
}

// The same to its producer, in the middle of a transaction that a rebalance is to commit.
TEST_F(SecurityTest, AProducerThatCannotBeRecreatedEndsItWithTheReason) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  Grant(Needed(flow, "User:CN=lethe"));
  const std::string key = certificates_->Path("producer.key");
  std::filesystem::copy_file(certificates_->Path("lethe.key"), key);
  Args args = MutualWith(key);
  args.push_back("--commit-interval=10s");
  const auto daemon = flow.Start(args);
  ASSERT_TRUE(daemon->AwaitReady());
  flow.SendIds("a", 1, 100);
  ASSERT_TRUE(daemon->Await([&] { return flow.OutputSize() >= 100; }));
  std::filesystem::remove(key);
  ASSERT_OK(TransactionalProducer::Start(SharedBroker().bootstrap(), absl::StrCat(flow.group(), "/test/0")));
  const auto other = flow.Start({"--instance=other"});
  EXPECT_EQ(daemon->process().Wait(absl::Seconds(30)).value_or(-1), 1) << daemon->Log();
  EXPECT_THAT(daemon->Log(), HasSubstr("the producer cannot go on"));
  EXPECT_THAT(daemon->Log(), HasSubstr("ssl.key.location"));
  EXPECT_TRUE(NoSecretIn(daemon->Log()));
  flow.SendIds("a", 51, 200);
  EXPECT_TRUE(other->Await([&] { return static_cast<bool>(flow.ExactlyOnce()); }));
  EXPECT_TRUE(other->Stop());
}

TEST_F(SecurityTest, NoWayToGoWrongShowsASecret) {
  Flow flow({LETHE_PROGRAM, 1, {}, {}});
  const std::string file = certificates_->Path("password");
  std::ofstream(file) << kPassword << "\n";
  const auto config = [&](const std::string& name, const std::string& properties) {
    const std::string all = certificates_->Path(name + ".yaml");
    std::ofstream(all) << "kafka:\n  security.protocol: SASL_SSL\n  sasl.mechanism: SCRAM-SHA-256\n"
                       << "  sasl.username: lethe\n  sasl.password: ${file:" << file << "}\n"
                       << properties;
    return all;
  };
  const std::string secret = kPassword;
  const std::pair<std::string, Args> cases[] = {
      {"", {"--kafka=ssl.key.password=" + secret}},
      {"", {"--kafka=ssl.key.pem=" + secret}},
      {"", {"--kafka=linger.ms=" + secret}},
      {"", {"--kafka=sasl.pasword=" + secret}},
      {"", {"--kafka=group.id=" + secret}},
      {"", {"--kafka=debug=conf,security,broker", "--log-level=debug"}},
      {"",
       {"--kafka=sasl.mechanism=OAUTHBEARER", "--kafka=enable.sasl.oauthbearer.unsecure.jwt=true",
        "--kafka=sasl.oauthbearer.config=" + secret}},
      {"  ssl.keystore.location: /nowhere\n  ssl.keystore.password: " + secret + "\n", {}},
      {"  ssl.key.location: /nowhere\n  ssl.key.password: " + secret + "\n", {}},
      {"  linger.ms: ${file:" + file + "}\n", {}},
      {"  sasl.passwort: ${file:" + file + "}\n", {}},
      {"  sasl.oauthbearer.method: ${file:" + file + "}\n", {}},
  };
  std::vector<std::pair<std::string, std::unique_ptr<Process>>> started;
  for (const auto& [properties, more] : cases) {
    const std::string name = absl::StrCat("case-", started.size());
    const Args args =
        Args{"--config=" + config(name, properties), "--brokers=" + ScramAddress(), "--instance=" + name} +
        more;
    const std::string what = properties + (more.empty() ? "" : more[0]);
    started.emplace_back(what, flow.StartCommand("check", args));
    started.emplace_back(what, flow.StartCommand("run", args + Args{"--exit-at-end"}));
  }
  // Some wait for a broker that lets them in.
  const absl::Time end = SteadyNow() + absl::Seconds(6);
  for (const auto& [what, process] : started) {
    process->Wait(std::max(end - SteadyNow(), absl::ZeroDuration())).IgnoreError();
    EXPECT_TRUE(NoSecretIn(process->Stdout() + process->Stderr())) << what;
  }
}

}  // namespace
}  // namespace lethe::test
