// What a stream is connected to.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string_view>

namespace cautious::base {

// A terminal that can move its cursor; not with TERM=dumb.
bool redrawable(std::FILE* stream);

struct TerminalSize {
  std::size_t width, height;
};
TerminalSize terminal_size(std::FILE* stream);  // 80 x 24 if it does not say

// The first `most` characters of UTF-8 text.
std::string_view cut(std::string_view text, std::size_t most);

}  // namespace cautious::base
