// How much memory there is.
#pragma once

#include <filesystem>

namespace cautious::base {

// Bytes that this process can still use: what the system says is available, and what the limits of its control groups (of a
// container, of a job) leave; infinite where neither says anything. The folders are the system's own, except in tests.
double memory_available(const std::filesystem::path& proc = "/proc", const std::filesystem::path& groups = "/sys/fs/cgroup");

}  // namespace cautious::base
