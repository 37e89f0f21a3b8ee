// How the program ends when it can do nothing else.
#ifndef LETHE_SRC_CLI_TERMINAL_LAST_WORDS_H_
#define LETHE_SRC_CLI_TERMINAL_LAST_WORDS_H_

namespace lethe {

// From now on memory that the system does not have, where nobody could make an error of it (in a callback of
// the client library, say), ends the program with kExitFailed and a last line that says so; without a stop,
// a commit or a destructor, as a crash would. What else is thrown and not caught ends it as before.
void EndWithLastWords();

}  // namespace lethe

#endif  // LETHE_SRC_CLI_TERMINAL_LAST_WORDS_H_
