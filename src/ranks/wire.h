// What ranks and the board send each other over TCP: frames of a kind and a text. For this room only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cautious::ranks {

enum class Kind : char {
  hello = 'H',  // to the board: name = rank, text = "ranks host"
  set = 'S',    // to the board
  get = 'G',    // to the board; answered by `value` if there is one
  value = 'V',  // from the board
  pulse = 'P',  // to the board: text = "working acts"; answered by the same kind
  fail = 'F',   // to the board: why the sender ends; from it: why the run does
  leave = 'L',  // to the board: not missed from now on; from it: seen
};

struct Frame {
  Kind kind;
  std::string name = {}, text = {};
};

inline constexpr std::string_view kGreeting = "cautious ranks 1\n";  // the first bytes in either direction
inline constexpr const char* kEveryone = "everyone";                 // a value that is there when all ranks have come

// A connected socket, and what has been read of the next frame. Sending waits; reading takes what is there.
class Line {
 public:
  explicit Line(int socket) : socket_(socket) {}
  Line(Line&& other) noexcept : socket_(other.socket_), read_(std::move(other.read_)) { other.socket_ = -1; }
  Line& operator=(Line&&) = delete;
  ~Line();

  int socket() const { return socket_; }
  // False if the other side is gone.
  bool send(std::string_view bytes) const;
  bool send(const Frame& frame) const;
  // Reads what has arrived without waiting; false if the other side is gone or sends nonsense.
  bool receive();
  std::optional<Frame> next();           // a whole frame, if there is one
  bool take(std::string_view greeting);  // if it has arrived

  bool nonsense() const { return nonsense_; }

 private:
  int socket_;
  std::string read_;
  bool nonsense_ = false;
};

// Listens at the address alone; an Error if that cannot be.
int listen_at(const std::string& address, std::uint16_t port);
// -1 if nobody is there; then errno says why. An address that does not exist is an Error.
int connect_to(const std::string& address, std::uint16_t port);
// The numeric address of this end.
std::string own_address_of(int socket);
std::string host_name();

}  // namespace cautious::ranks
