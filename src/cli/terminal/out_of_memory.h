// The end of the program after an allocation failure that nothing handles.
#ifndef LETHE_SRC_CLI_TERMINAL_OUT_OF_MEMORY_H_
#define LETHE_SRC_CLI_TERMINAL_OUT_OF_MEMORY_H_

namespace lethe {

// From now on an allocation failure that no caller can turn into an error (in a callback of
// the client library, say), ends the program with kExitFailed and a last line that says so; without a stop,
// a commit or a destructor, like a crash. Other uncaught exceptions end the program as before.
void ExitWhenOutOfMemory();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_OUT_OF_MEMORY_H_
