// The file around a header (safetensors_header.cc).
#include "base/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include <cautious/error.h>
#include "base/atomic_file.h"
#include "base/text.h"

namespace cautious::base {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(Fault::data, fmt::format("{}: {}", file, what));
}

void load(std::ifstream& in, std::span<std::byte> bytes, const std::string& file) {
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (in.gcount() != static_cast<std::streamsize>(bytes.size()))
    throw Error(Fault::failure, fmt::format("{}: only {} of {} bytes could be read", file, in.gcount(), bytes.size()));
}

}  // namespace

Safetensors Safetensors::read(const std::filesystem::path& path) {
  Safetensors out;
  out.file_ = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) refuse(out.file_, "cannot open: " + error.message());
  if (!std::filesystem::is_regular_file(status)) refuse(out.file_, "cannot open: not a regular file");
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) refuse(out.file_, "cannot open: " + std::generic_category().message(errno));

  const auto size = static_cast<std::uint64_t>(in.tellg());
  in.seekg(0);
  try {
    std::vector<std::byte> start(std::min(size, kSafetensorsLengthBytes));
    load(in, start, out.file_);
    start.resize(kSafetensorsLengthBytes + safetensors_header_length(start, size, out.file_));
    load(in, std::span(start).subspan(kSafetensorsLengthBytes), out.file_);
    out.header_ = parse(start, size, out.file_);
    const std::uint64_t bytes = size - out.header_.data;
    out.data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    load(in, std::span(out.data_.get(), bytes), out.file_);
    for (std::size_t i = 0; i < out.tensors().size(); ++i) out.index_.emplace(out.tensors()[i].name, i);
  } catch (const std::bad_alloc&) {
    throw Error(Fault::failure, fmt::format("{}: {} bytes do not fit into memory", out.file_, size));
  }
  return out;
}

const TensorInfo* Safetensors::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors()[found->second];
}

const TensorInfo& Safetensors::require(std::string_view name) const {
  if (const TensorInfo* found = find(name)) return *found;
  constexpr std::size_t limit = 12;
  std::string names;
  for (std::size_t i = 0; i < std::min(tensors().size(), limit); ++i)
    names += (i == 0 ? "" : ", ") + in_quotes(tensors()[i].name);
  if (tensors().size() > limit) names += fmt::format(", ... {} in all", tensors().size());
  refuse(file_, fmt::format("no tensor {}; tensors: {}", in_quotes(name), names.empty() ? "none" : names));
}

std::span<const std::byte> Safetensors::data(const TensorInfo& tensor) const {
  return {data_.get() + tensor.begin, tensor.end - tensor.begin};
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors, const Metadata& metadata) {
  const std::string header = safetensors_header(tensors, metadata);
  AtomicFile file(path);
  file.write(header);
  for (const TensorToWrite& t : tensors) file.write(t.data);
  file.commit();
}

}  // namespace cautious::base
