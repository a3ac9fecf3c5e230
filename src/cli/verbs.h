// The verbs of the program: each adds its subcommand and, when the command line names it, sets what to run.
// A verb throws Error for whatever goes wrong; main() makes it one line and an exit code.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace cautious::cli {

using Verb = std::function<int()>;

void add_replay(CLI::App& app, Verb& chosen);
void add_bench(CLI::App& app, Verb& chosen);
void add_tokenize(CLI::App& app, Verb& chosen);
void add_data(CLI::App& app, Verb& chosen);
void add_study(CLI::App& app, Verb& chosen);
void add_compare(CLI::App& app, Verb& chosen);
void add_reproduce(CLI::App& app, Verb& chosen);
void add_report(CLI::App& app, Verb& chosen);
void add_watch(CLI::App& app, Verb& chosen);

}  // namespace cautious::cli
