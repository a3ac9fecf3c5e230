// `cautious watch`: the report of a study or of a run on a page that follows it. Served to this machine only, made anew when a
// file changes; nothing is written.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <httplib.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "report/page.h"
#include "report/svg.h"
#include "study/report.h"

namespace cautious::cli {
namespace {

constexpr const char* kHost = "127.0.0.1";
constexpr std::size_t kReaders = 64;                          // at a time; a slow one keeps only itself waiting
constexpr std::size_t kRequestBytes = std::size_t{32} << 10;  // with the cookies of every other port of this machine
constexpr std::chrono::seconds kRequestTime{5};
constexpr Range kPorts{0, 65535, false, false};

struct WatchArguments {
  std::string directory;
  int port = 8765;
};

std::string number_of(const std::string& stamp) { return fmt::format("{:016x}", std::hash<std::string>()(stamp)); }

std::string following(std::string page, const std::string& stamp) {
  const std::string more =
      fmt::format("<meta name=\"stamp\" content=\"{}\">\n<script>{}</script>\n", stamp, report::kFollowScript);
  const std::size_t end = page.rfind("</body>");
  return end == std::string::npos ? page + more : page.insert(end, more);
}

// A page of another machine may point a name of its own to this address (DNS rebinding) and would then be allowed to read the
// report. Browsers say the name; behind a tunnel the port may be another one.
bool is_local(const std::string& host) {
  const std::size_t colon = std::min(host.find(':'), host.size());
  const std::string name = host.substr(0, colon);
  const bool port = std::all_of(host.begin() + static_cast<std::ptrdiff_t>(std::min(colon + 1, host.size())), host.end(),
                                [](char c) { return c >= '0' && c <= '9'; });
  return port && (name == kHost || name == "localhost");
}

// The page of the directory's present files, kept until they change. Requests come from several threads.
class Watched {
 public:
  // Anything but a study or a run is refused at once.
  explicit Watched(std::string directory)
      : directory_(std::move(directory)), stamp_(stamp()), page_(following(study::html_of(directory_), stamp_)) {}

  std::string stamp() const { return number_of(study::stamp_of(directory_)); }

  std::string page() {
    const std::scoped_lock lock(mutex_);
    const std::string now = stamp();
    if (now != stamp_) {
      page_ = following(made(), now);
      stamp_ = now;
    }
    return page_;
  }

 private:
  // A file may be damaged, or only half there: the page says so and waits for the next change.
  std::string made() const {
    try {
      return study::html_of(directory_);
    } catch (const Error& error) {
      return fmt::format(
          "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>No report</title></head>\n"
          "<body><p>{}</p>\n</body></html>\n",
          report::svg_escape(error.what()));
    }
  }

  std::string directory_, stamp_, page_;
  std::mutex mutex_;
};

// What the library sees of a connection: a request that ends where it is too long or too slow, as one of the library's own
// lines would not, and the answer. The socket's calls have time limits already.
class Exchange : public httplib::Stream {
 public:
  explicit Exchange(socket_t socket) : socket_(socket) {}

  bool is_readable() const override { return true; }
  bool is_writable() const override { return true; }

  ssize_t read(char* to, std::size_t size) override {
    if (read_ == received_ && !receive()) return -1;
    const std::size_t count = std::min(size, received_ - read_);
    std::memcpy(to, request_.data() + read_, count);
    read_ += count;
    return static_cast<ssize_t>(count);
  }

  // All of it: the library asks once.
  ssize_t write(const char* text, std::size_t size) override {
    for (std::size_t sent = 0; sent < size;) {
      const ssize_t count = ::send(socket_, text + sent, size - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return -1;
      sent += static_cast<std::size_t>(count);
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool receive() {
    if (received_ == request_.size() || Clock::now() > end_) return false;
    ssize_t count = 0;
    do count = ::recv(socket_, request_.data() + received_, request_.size() - received_, 0);
    while (count < 0 && errno == EINTR);
    if (count > 0) received_ += static_cast<std::size_t>(count);
    return count > 0;
  }

  socket_t socket_;
  Clock::time_point end_ = Clock::now() + kRequestTime;
  std::array<char, kRequestBytes> request_{};
  std::size_t received_ = 0, read_ = 0;
};

// One request per connection. The library would answer with a part of the page for every range that a request names.
class Server : public httplib::Server {
  bool process_and_close_socket(socket_t socket) override {
    Exchange exchange(socket);
    bool closes = true;
    const bool answered = process_request(exchange, true, closes, [](httplib::Request& request) { request.ranges.clear(); });
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return answered;
  }
};

// The library would share a port that another process has.
int bound_port(httplib::Server& server, int port) {
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const int bound = port == 0 ? server.bind_to_any_port(kHost) : server.bind_to_port(kHost, port) ? port : -1;
  if (bound >= 0) return bound;
  throw Error(Fault::failure, fmt::format("port {} on {} cannot be used, another program may be using it; try --port {}", port,
                                          kHost, port < 65535 ? port + 1 : 8765));
}

int watch(const WatchArguments& args) {
  base::check_range("--port", args.port, kPorts);
  Watched watched(args.directory);
  Server server;
  server.set_read_timeout(std::chrono::seconds(2));
  server.new_task_queue = [] { return new httplib::ThreadPool(kReaders); };
  const std::string policy = report::content_policy();
  server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& answer) {
    answer.set_header("Content-Security-Policy", policy);
    answer.set_header("X-Content-Type-Options", "nosniff");
    const bool local = is_local(request.get_header_value("Host"));
    if (local && (request.method == "GET" || request.method == "HEAD")) return httplib::Server::HandlerResponse::Unhandled;
    answer.status = local ? 405 : 403;  // nobody has anything to say: a body is not even unpacked
    if (local) return httplib::Server::HandlerResponse::Handled;
    answer.set_content(fmt::format("the page is http://{}/ on this machine, under no other name\n", kHost), "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/", [&](const httplib::Request&, httplib::Response& answer) {
    answer.set_header("Cache-Control", "no-store");
    answer.set_content(watched.page(), "text/html; charset=utf-8");
  });
  server.Get("/stamp", [&](const httplib::Request&, httplib::Response& answer) {
    answer.set_header("Cache-Control", "no-store");
    answer.set_content(watched.stamp(), "text/plain");
  });
  const int port = bound_port(server, args.port);
  const Interruptible interruptible;
  std::atomic<bool> serves = true;
  std::thread serving([&] {
    server.listen_after_bind();
    serves = false;
  });
  fmt::print("http://{}:{}/\n", kHost, port);
  std::fflush(stdout);
  base::tell(fmt::format("watching {}; press Ctrl-C to stop\n", args.directory));
  while (interruptible.noted() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  server.stop();
  for (int turns = 0; serves && turns < 10; ++turns) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (serves) std::_Exit(0);  // somebody still reads, slowly; nothing was to be written
  serving.join();
  return 0;
}

}  // namespace

void add_watch(CLI::App& app, Verb& chosen) {
  auto args = std::make_shared<WatchArguments>();
  CLI::App& verb = *app.add_subcommand("watch", "Serve the report of a study or run as a page that updates itself.");
  verb.footer(
      "  cautious watch studies/adamw\n"
      "  cautious watch runs --port 9000      # all runs in a folder, together");
  verb.add_option("DIR", args->directory, "Directory of a study, of a run or with runs in it; nothing is written")
      ->required()
      ->type_name("");
  verb.add_option("--port", args->port, "Port on 127.0.0.1; 0 picks a free one (default: 8765)")->type_name("NUMBER");
  verb.callback([&chosen, args] { chosen = [args] { return watch(*args); }; });
}

}  // namespace cautious::cli
