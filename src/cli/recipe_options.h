// A recipe on the command line: --optimizer, --decay and the fields of every rule and decay by their own names. All of it comes
// from recipe_names(), decay_names() and fields(), so a new rule or decay is here without a line of code.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <cautious/recipe.h>

namespace CLI {
class App;
}

namespace cautious::cli {

class RecipeOptions {
 public:
  // The options write into this object, so it must outlive the parse.
  void add_to(CLI::App& app);

  const std::string& optimizer() const { return optimizer_; }
  bool given(std::string_view field) const { return given_.contains(field); }

  // The recipe as the command line says. A field that it does not have is an Error naming those it has; so is a weight_decay
  // for a recipe without decay.
  Recipe recipe() const;

 private:
  std::string optimizer_;
  std::map<std::string, std::string, std::less<>> given_;  // field -> text
};

}  // namespace cautious::cli
