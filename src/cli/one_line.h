// What the program says about a command line it cannot use.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace cautious::cli {

// The text without line breaks or other control characters.
std::string one_line(std::string_view text);

// "; see 'cautious replay --help'" for the verb the command line got to.
std::string next_command(const CLI::App& app);

// A failed parse: an unknown option or verb with a suggestion, otherwise the parser's own words.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cautious::cli
