#include "cli/local_ranks.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cautious/error.h>

namespace cautious::cli {

int free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool found = probe >= 0 && bind(probe, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  if (probe >= 0) close(probe);
  if (!found) throw Error(Fault::failure, "cannot find a free port on 127.0.0.1; give one with --port");
  return ntohs(address.sin_port);
}

std::vector<std::string> environment_of_rank(int rank, int ranks, int port) {
  return {fmt::format("RANK={}", rank),
          fmt::format("WORLD_SIZE={}", ranks),
          fmt::format("LOCAL_RANK={}", rank),
          fmt::format("LOCAL_WORLD_SIZE={}", ranks),
          "MASTER_ADDR=127.0.0.1",
          fmt::format("MASTER_PORT={}", port)};
}

int code_of_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace cautious::cli
