#include "ranks/wire.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include <cautious/error.h>

namespace cautious::ranks {
namespace {

constexpr std::uint32_t kLongest = 16U << 20;  // of a name or a text, in bytes

void append_number(std::string& to, std::uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(number >> shift & 0xff);
}

std::uint32_t number_at(std::string_view bytes) {
  std::uint32_t number = 0;
  for (int i = 3; i >= 0; --i) number = number << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
  return number;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses addresses_of(const std::string& address, std::uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    throw Error(Fault::usage, fmt::format("MASTER_ADDR {}: {}; it is the host name or address of the machine of rank 0",
                                          address, gai_strerror(error)));
  }
  return {found, freeaddrinfo};
}

void set_option(int socket, int level, int option) {
  const int on = 1;
  setsockopt(socket, level, option, &on, sizeof on);
}

}  // namespace

Line::~Line() {
  if (socket_ >= 0) close(socket_);
}

bool Line::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool Line::send(const Frame& frame) const {
  std::string bytes(1, static_cast<char>(frame.kind));
  append_number(bytes, static_cast<std::uint32_t>(frame.name.size()));
  append_number(bytes, static_cast<std::uint32_t>(frame.text.size()));
  return send(bytes + frame.name + frame.text);
}

bool Line::receive() {
  char bytes[65536];
  for (;;) {
    const ssize_t got = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) {
      read_.append(bytes, static_cast<std::size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

std::optional<Frame> Line::next() {
  constexpr std::size_t kHead = 9;
  if (read_.size() < kHead) return std::nullopt;
  const std::string_view all = read_;
  const std::uint32_t name = number_at(all.substr(1)), text = number_at(all.substr(5));
  if (name > kLongest || text > kLongest) {
    nonsense_ = true;
    return std::nullopt;
  }
  if (all.size() < kHead + name + text) return std::nullopt;
  Frame frame{static_cast<Kind>(all[0]), std::string(all.substr(kHead, name)), std::string(all.substr(kHead + name, text))};
  read_.erase(0, kHead + name + text);
  return frame;
}

bool Line::take(std::string_view greeting) {
  const std::size_t known = std::min(greeting.size(), read_.size());
  if (read_.compare(0, known, greeting, 0, known) != 0) nonsense_ = true;
  if (nonsense_ || known < greeting.size()) return false;
  read_.erase(0, known);
  return true;
}

int listen_at(const std::string& address, std::uint16_t port) {
  const Addresses found = addresses_of(address, port);
  const int listening = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  set_option(listening, SOL_SOCKET, SO_REUSEADDR);
  if (listening >= 0 && bind(listening, found->ai_addr, found->ai_addrlen) == 0 && listen(listening, 1024) == 0)
    return listening;
  const int error = errno;
  if (listening >= 0) close(listening);
  const char* const cure = error == EADDRINUSE      ? "another program has it; choose another MASTER_PORT"
                           : error == EADDRNOTAVAIL ? "it is not an address of this machine, where rank 0 runs"
                           : error == EACCES        ? "ports below 1024 are the system's; choose another MASTER_PORT"
                                                    : "rank 0 must be able to listen there";
  throw Error(Fault::failure, fmt::format("MASTER_ADDR {} MASTER_PORT {}: {}; {}", address, port, std::strerror(error), cure));
}

int connect_to(const std::string& address, std::uint16_t port) {
  const Addresses found = addresses_of(address, port);
  const int connected = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connected < 0) return -1;
  if (connect(connected, found->ai_addr, found->ai_addrlen) == 0) {
    set_option(connected, IPPROTO_TCP, TCP_NODELAY);
    return connected;
  }
  const int error = errno;
  close(connected);
  errno = error;
  return -1;
}

std::string own_address_of(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  char text[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<sockaddr*>(&address), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace cautious::ranks
