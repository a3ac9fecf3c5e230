// TensorBoard's event files: records of {u64 length, u32 masked CRC-32C of it, data, u32 masked CRC-32C of the data}, each data
// a protocol-buffer Event {1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary {1: Value {1: tag, 2:
// float}}}.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace cautious::run {

std::uint32_t crc32c(std::string_view bytes);

// Records ready to be appended to a file; the first of a file is the version.
std::string tensorboard_version(double wall_time);
std::string tensorboard_scalars(double wall_time, std::int64_t step, std::span<const std::pair<std::string, double>> values);

}  // namespace cautious::run
