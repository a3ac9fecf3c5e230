// Work shared out among processes, also on several machines, by files in a folder that all of them see. A claim is a file that
// its owner creates and renews; whoever sees that the owner is dead takes it away. No flock, and no two clocks are compared.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace cautious::study {

// A process that takes claims.
struct Worker {
  std::string host = {};
  std::int64_t process = 0;
  std::string kernel = {};  // the boot and the namespace in which process numbers mean something
  std::uint64_t start = 0;  // in ticks since boot: process numbers are used again
  std::string token = {};   // random

  std::string name() const { return host + ":" + std::to_string(process); }
};
Worker this_worker();

struct Lease {
  std::chrono::milliseconds beat{5000};  // how often claims are renewed
  std::chrono::milliseconds end{60000};  // a claim that nobody saw renewed for so long is dead
};

// While one exists, the claims of its thread call it again and again as long as they wait for another worker.
class WhileWaiting {
 public:
  // `who` is the worker and the claim that it has: "node7:4711 (studies/cwd/claims/plan)". It may throw to give up.
  using Call = std::function<void(const std::string& who, std::chrono::milliseconds waited)>;
  explicit WhileWaiting(Call call);
  ~WhileWaiting();
  WhileWaiting(const WhileWaiting&) = delete;
  WhileWaiting& operator=(const WhileWaiting&) = delete;
};

// An owner of the same kernel is dead once its process is gone; any other once its claim has not changed for the time of the
// lease, by the watcher's own clock. Every failure of the file system but that of renewing is an Error(Fault::failure).
class Claims {
 public:
  // The folder is there. A thread renews what is taken.
  explicit Claims(std::filesystem::path folder, Lease lease = {}, Worker worker = this_worker());
  ~Claims();  // gives all back; a copy in a forked process does nothing
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  const Worker& worker() const { return worker_; }
  const Lease& lease() const { return lease_; }

  // A name is that of a file that does not begin with a dot. False: somebody has it, dead or alive.
  bool take(const std::string& name);
  // Once nobody has it (WhileWaiting).
  void wait_for(const std::string& name);
  // Whether it is still ours: a process that slept for longer than the lease may have lost it. To be asked before anything is
  // written that the next owner could have written.
  bool holds(const std::string& name) const;
  void give_back(const std::string& name);

  // Claims of other workers that are not known to be dead, with the workers' names; dead ones are taken away.
  std::map<std::string, std::string> others();
  // The name of another worker that is alive, which can take as long as the lease to find out (WhileWaiting); empty: there is
  // none.
  std::string someone_else();

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    std::string text;
    Clock::time_point since;
    bool renewed = false;
  };

  std::filesystem::path file(const std::string& name) const { return folder_ / name; }
  std::string text(std::uint64_t beat) const;
  bool is_ours(const std::string& text) const;
  bool is_dead(const Seen& seen) const;
  bool take_away(const std::string& name, const std::string& expected);
  void pause(const std::string& name, const std::string& owner, Clock::time_point begun) const;
  void renew(const std::string& name, std::uint64_t beat) const;
  void keep_renewing();

  // What the thread shares.
  struct Renewal {
    std::mutex mutex;  // over the following
    std::set<std::string> held;
    bool leaving = false;
    std::condition_variable left;
    std::thread thread;
  };

  std::filesystem::path folder_;
  Lease lease_;
  Worker worker_;
  std::map<std::string, Seen> seen_;  // of others
  std::uint64_t taken_away_ = 0;
  std::int64_t made_in_;  // the process
  std::unique_ptr<Renewal> renewal_;
};

}  // namespace cautious::study
