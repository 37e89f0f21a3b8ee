// The settings of `lethe run`, written out for people and for editors, from the table that drives the
// program.
#ifndef LETHE_SRC_CLI_CONFIG_REFERENCE_H_
#define LETHE_SRC_CLI_CONFIG_REFERENCE_H_

#include <string>

namespace lethe {

// connectors/configuration.md: every key with its flag, type, default, range, meaning and an example.
std::string ConfigurationPage();

// connectors/lethe.schema.json: a JSON schema of the file, for editors.
std::string ConfigurationSchema();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_CONFIG_REFERENCE_H_
