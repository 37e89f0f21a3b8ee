#include <iostream>
#include <string>
#include <vector>

#include "src/cli/command_line.h"

int main(int argc, char** argv) {
  const lethe::Commands commands;
  return lethe::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc), commands, std::cout,
                               std::cerr);
}
