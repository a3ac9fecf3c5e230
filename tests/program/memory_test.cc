// What memory is left, by made-up systems: the machine's own, limits of control groups of both versions, at any height.
#include "base/memory.h"

#include <filesystem>
#include <limits>
#include <string>

#include "run_fixture.h"

namespace cautious::base {
namespace memory_test {

namespace fs = std::filesystem;

class Memory : public RunFiles {
 protected:
  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((directory_ / file).parent_path());
    store(directory_ / file, text);
  }
  double available() const { return memory_available(directory_ / "proc", directory_ / "groups"); }
};

TEST_F(Memory, OfTheMachine) {
  EXPECT_EQ(available(), std::numeric_limits<double>::infinity());
  put("proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:    1000 kB\n");
  EXPECT_EQ(available(), 1024000);
  EXPECT_GT(memory_available(), 0);
}

TEST_F(Memory, OfAContainer) {
  put("proc/meminfo", "MemAvailable: 1000 kB\n");
  put("proc/self/cgroup", "0::/job/task\n");
  put("groups/job/memory.max", "500000\n");
  put("groups/job/memory.current", "300000\n");
  put("groups/job/memory.stat", "anon 100000\ninactive_file 200000\n");  // 200,000 of the 300,000 are files' copies
  put("groups/job/task/memory.max", "max\n");
  put("groups/job/task/memory.current", "300000\n");
  EXPECT_EQ(available(), 400000);
  put("groups/job/task/memory.max", "350000\n");
  EXPECT_EQ(available(), 50000);
  put("groups/job/task/memory.current", "360000\n");
  EXPECT_EQ(available(), 0);
}

TEST_F(Memory, OfAContainerThatSeesItsGroupAsTheRoot) {
  put("proc/self/cgroup", "0::/elsewhere\n");
  put("groups/memory.max", "1000\n");
  EXPECT_EQ(available(), 1000);
}

TEST_F(Memory, OfTheFirstVersion) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n");
  put("groups/memory/memory.limit_in_bytes", "9223372036854771712\n");  // its way to say none
  put("groups/memory/job/memory.limit_in_bytes", "1000\n");
  put("groups/memory/job/memory.usage_in_bytes", "700\n");
  put("groups/memory/job/memory.stat", "inactive_file 5\ntotal_inactive_file 100\n");
  EXPECT_EQ(available(), 400);
}

}  // namespace memory_test
}  // namespace cautious::base
