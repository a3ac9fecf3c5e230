// What is asked of a file system: that O_EXCL and rename() are atomic, and that opening a file or a directory shows what
// another machine has closed (NFS's close-to-open). A claim is renewed in place, through a descriptor on which it was read as
// ours, so that an owner who wakes up too late writes into the file that was taken away, never into the next owner's.
#include "study/claims.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <optional>
#include <random>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include <cautious/error.h>

#include "base/files.h"

namespace cautious::study {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kPause{50};
constexpr const char* kUnknownWorker = "an unknown process";

thread_local WhileWaiting::Call while_waiting;

struct Process {
  char state = '?';
  std::uint64_t start = 0;
};

// Of /proc/<id>/stat, where the name in brackets may hold anything. None: it cannot be read.
std::optional<Process> process_of(const std::string& id) {
  std::string stat;
  try {
    stat = base::read_file(fs::path("/proc") / id / "stat");
  } catch (const Error&) {
    return std::nullopt;
  }
  constexpr int kStart = 19;  // fields after the state
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  Process process;
  std::string field;
  fields >> process.state;
  for (int i = 1; i < kStart; ++i) fields >> field;
  return fields >> process.start ? std::optional(process) : std::nullopt;
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name[0] == '\0' ? "localhost" : name.data();
}

std::string first_word(const fs::path& file) {
  std::istringstream in(base::read_file(file));
  std::string word;
  in >> word;
  return word;
}

std::optional<Worker> worker_in(const std::string& text) {
  std::istringstream in(text);
  Worker worker;
  std::uint64_t beat = 0;
  if (in >> worker.host >> worker.process >> worker.kernel >> worker.start >> worker.token >> beat) return worker;
  return std::nullopt;  // killed between creating and writing, or a file of somebody else's
}

// A process that cannot be looked at, because it is another user's, is there.
bool is_gone(const Worker& worker) {
  if (::kill(static_cast<pid_t>(worker.process), 0) != 0 && errno == ESRCH) return true;
  const std::optional<Process> process = process_of(std::to_string(worker.process));
  return process && (process->start != worker.start || process->state == 'Z' || process->state == 'X');
}

// Opening the folder is what makes files of other machines visible.
std::vector<std::string> claimed_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : base::entries_of(folder, error)) {
    if (std::string name = entry.path().filename().string(); !name.starts_with('.')) names.push_back(std::move(name));
  }
  if (error) base::fail_at(folder, "list the claims", error.message());
  return names;
}

// Nothing of what is no file.
std::string read_claim(const fs::path& file) {
  constexpr std::size_t kMost = 4096;
  return base::read_end(file, kMost);
}

// A link is there, wherever it leads.
bool is_missing(const fs::path& file) {
  std::error_code error;
  return fs::symlink_status(file, error).type() == fs::file_type::not_found;
}

}  // namespace

WhileWaiting::WhileWaiting(Call call) { while_waiting = std::move(call); }
WhileWaiting::~WhileWaiting() { while_waiting = {}; }

Worker this_worker() {
  std::random_device random;
  const std::optional<Process> self = process_of("self");
  std::error_code error;
  const std::string space = fs::read_symlink("/proc/self/ns/pid", error).string();  // "pid:[4026531836]"
  return {.host = host_name(),
          .process = ::getpid(),
          .kernel = first_word("/proc/sys/kernel/random/boot_id") + "/" + space,
          .start = self ? self->start : 0,
          .token = fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random())};
}

Claims::Claims(fs::path folder, Lease lease, Worker worker)
    : folder_(std::move(folder)),
      lease_(lease),
      worker_(std::move(worker)),
      made_in_(::getpid()),
      renewal_(std::make_unique<Renewal>()) {
  renewal_->thread = std::thread([this] { keep_renewing(); });
}

Claims::~Claims() {
  if (::getpid() != made_in_) {
    (void)renewal_.release();  // the thread is not in this process: it could neither be joined nor destroyed
    return;
  }
  {
    const std::lock_guard lock(renewal_->mutex);
    renewal_->leaving = true;
  }
  renewal_->left.notify_all();
  renewal_->thread.join();
  for (const std::string& name : std::exchange(renewal_->held, {})) {
    try {
      give_back(name);
    } catch (const Error&) {
      continue;  // others see that this process is gone
    }
  }
}

// Of the same length for every beat: it is written over the one before.
std::string Claims::text(std::uint64_t beat) const {
  return fmt::format("{} {} {} {} {} {:010}\n", worker_.host, worker_.process, worker_.kernel, worker_.start, worker_.token,
                     beat);
}

bool Claims::is_ours(const std::string& text) const {
  const std::optional<Worker> owner = worker_in(text);
  return owner && owner->token == worker_.token;
}

bool Claims::is_dead(const Seen& seen) const {
  const std::optional<Worker> owner = worker_in(seen.text);
  if (owner && owner->kernel == worker_.kernel) return is_gone(*owner);
  return Clock::now() - seen.since >= lease_.end;
}

bool Claims::take(const std::string& name) {
  const int opened = base::open_file(file(name), O_WRONLY | O_CREAT | O_EXCL);
  if (opened < 0 && errno == EEXIST) return false;
  if (opened < 0) base::fail_at(file(name), "create the claim", errno);
  int error = base::write_all(opened, text(0));
  if (::close(opened) != 0 && errno != EINTR && error == 0) error = errno;
  if (error != 0) {
    ::unlink(file(name).c_str());
    base::fail_at(file(name), "write the claim", error);
  }
  const std::lock_guard lock(renewal_->mutex);
  renewal_->held.insert(name);
  return true;
}

void Claims::pause(const std::string& name, const std::string& owner, Clock::time_point begun) const {
  using std::chrono::duration_cast, std::chrono::milliseconds;
  if (while_waiting) {
    while_waiting(fmt::format("{} ({})", owner, file(name).string()), duration_cast<milliseconds>(Clock::now() - begun));
  }
  std::this_thread::sleep_for(kPause);
}

void Claims::wait_for(const std::string& name) {
  const Clock::time_point begun = Clock::now();
  while (!take(name)) {
    const std::map<std::string, std::string> alive = others();  // dead ones go
    const auto owner = alive.find(name);
    pause(name, owner == alive.end() ? kUnknownWorker : owner->second, begun);
  }
}

bool Claims::holds(const std::string& name) const { return is_ours(read_claim(file(name))); }

void Claims::give_back(const std::string& name) {
  const std::lock_guard lock(renewal_->mutex);
  renewal_->held.erase(name);
  const std::string found = read_claim(file(name));
  if (is_ours(found)) take_away(name, found);
}

// Two that saw the same dead claim must not take away the live one that one of them has put in its place: it is first moved to
// a name that no other process has, then looked at, and put back unless it is the one that was meant. An owner that loses its
// claim because a third was faster still notices.
bool Claims::take_away(const std::string& name, const std::string& expected) {
  const fs::path aside = folder_ / fmt::format(".gone-{}-{}", worker_.token, taken_away_++);
  if (::rename(file(name).c_str(), aside.c_str()) != 0) {
    if (errno == ENOENT) return false;
    base::fail_at(file(name), "take away the claim", errno);
  }
  const bool meant = read_claim(aside) == expected;
  if (!meant) [[maybe_unused]]
    const int back = ::link(aside.c_str(), file(name).c_str());
  std::remove(aside.c_str());  // it may be a folder
  return meant;
}

std::map<std::string, std::string> Claims::others() {
  std::map<std::string, Seen> now;
  std::map<std::string, std::string> alive;
  for (const std::string& name : claimed_in(folder_)) {
    std::string found = read_claim(file(name));
    if (is_ours(found) || (found.empty() && is_missing(file(name)))) continue;
    const auto before = seen_.find(name);
    Seen seen{std::move(found), Clock::now()};
    if (before != seen_.end()) {
      if (before->second.text == seen.text)
        seen = before->second;
      else
        seen.renewed = true;
    }
    if (is_dead(seen)) {
      take_away(name, seen.text);
      continue;
    }
    const std::optional<Worker> owner = worker_in(seen.text);
    alive.emplace(name, owner ? owner->name() : kUnknownWorker);
    now.emplace(name, std::move(seen));
  }
  seen_ = std::move(now);
  return alive;
}

std::string Claims::someone_else() {
  const Clock::time_point begun = Clock::now();
  while (true) {
    const std::map<std::string, std::string> all = others();
    if (all.empty()) return "";
    for (const auto& [name, seen] : seen_) {
      const std::optional<Worker> owner = worker_in(seen.text);
      if (seen.renewed || (owner && owner->kernel == worker_.kernel)) return all.at(name);
    }
    pause(all.begin()->first, all.begin()->second, begun);
  }
}

// A failure is not reported: if it lasts, the claim is lost, and its owner finds out by holds().
void Claims::renew(const std::string& name, std::uint64_t beat) const {
  const int opened = base::open_file(file(name), O_RDWR);
  if (opened < 0) return;
  const std::string content = text(beat);
  std::string found(content.size() + 1, '\0');
  const ssize_t size = ::pread(opened, found.data(), found.size(), 0);
  found.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (is_ours(found)) [[maybe_unused]]
    const ssize_t told = ::pwrite(opened, content.data(), content.size(), 0);
  ::close(opened);
}

void Claims::keep_renewing() {
  std::unique_lock lock(renewal_->mutex);
  const auto leaving = [this] { return renewal_->leaving; };
  for (std::uint64_t beat = 1; !renewal_->left.wait_for(lock, lease_.beat, leaving); ++beat) {
    for (const std::string& name : renewal_->held) renew(name, beat);
  }
}

}  // namespace cautious::study
