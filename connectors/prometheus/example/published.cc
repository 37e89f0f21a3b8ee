// Prints the lines of its input that are new within an hour, and serves FPP, N and t of the filter that says
// so, that of the Forgetful Bloom Filter's paper, to Prometheus.
#include <prometheus/exposer.h>

#include <iostream>

#include "absl/time/clock.h"
#include "lethe/prometheus.h"

int main() {
  lethe::StageOptions options;
  options.horizon = absl::Hours(1);
  options.engine = lethe::Engine::kPublished;
  const auto stage = lethe::DedupStage::Create(options).value();
  const auto partition = stage->Open("lines").value();

  prometheus::Exposer exposer("127.0.0.1:0");
  const auto figures = std::make_shared<lethe::FilterCollectable>();
  figures->Add("lines", partition.get());
  exposer.RegisterCollectable(figures);
  std::cout << "http://127.0.0.1:" << exposer.GetListeningPorts().front() << "/metrics" << std::endl;

  for (std::string line; std::getline(std::cin, line);) {
    if (partition->Judge(line, absl::Now()).value() == lethe::Verdict::kUnique)
      std::cout << line << std::endl;
  }
}
