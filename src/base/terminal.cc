#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace cautious::base {

bool redrawable(std::FILE* stream) {
  const char* const terminal = std::getenv("TERM");
  return ::isatty(::fileno(stream)) == 1 && !(terminal != nullptr && std::string_view(terminal) == "dumb");
}

TerminalSize terminal_size(std::FILE* stream) {
  winsize size{};
  const bool known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0;
  return {known && size.ws_col > 1 ? size.ws_col : 80UL, known && size.ws_row > 1 ? size.ws_row : 24UL};
}

std::string_view cut(std::string_view text, std::size_t most) {
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size(); ++end)
    if ((text[end] & 0xc0) != 0x80 && ++count > most) break;
  return text.substr(0, end);
}

}  // namespace cautious::base
