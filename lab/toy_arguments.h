// The command line of `cautious lab toy`.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/experiment.h"

namespace CLI {
class App;
}

namespace cautious::lab {

class ToyArguments {
 public:
  // The options write into this object, so it must outlive the parse.
  void add_to(CLI::App& app);

  // Reads and checks everything; what comes back runs it.
  std::function<lab::Experiment(const lab::Progress&)> read() const;

 private:
  std::string problem_ = "all";
  std::vector<std::string> arms_;
  std::map<std::string, std::string, std::less<>> words_;  // the options that were given
};

}  // namespace cautious::lab
