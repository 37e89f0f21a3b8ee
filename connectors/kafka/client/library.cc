#include "connectors/kafka/client/library.h"

#include <librdkafka/rdkafka.h>

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace lethe::kafka {

std::string LibraryText() {
  char features[512] = "";
  size_t size = sizeof(features);
  rd_kafka_conf_t* config = rd_kafka_conf_new();
  rd_kafka_conf_get(config, "builtin.features", features, &size);
  rd_kafka_conf_destroy(config);
  return absl::StrCat("librdkafka ", rd_kafka_version_str(), " (", features, ")");
}

}  // namespace lethe::kafka
