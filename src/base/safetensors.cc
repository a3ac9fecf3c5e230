// The file around a header (safetensors_header.cc).
#include "base/safetensors.h"

#include <fmt/format.h>

#include <algorithm>

#include <cautious/error.h>
#include "base/atomic_file.h"
#include "base/text.h"

namespace cautious::base {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(Fault::data, fmt::format("{}: {}", file, what));
}

}  // namespace

Safetensors Safetensors::read(const std::filesystem::path& path) {
  Safetensors out;
  out.file_ = path.string();
  out.mapped_ = std::make_unique<const MappedFile>(path);
  const std::span<const std::byte> bytes = out.mapped_->bytes();
  out.header_ = parse(bytes, bytes.size(), out.file_);
  for (std::size_t i = 0; i < out.tensors().size(); ++i) out.index_.emplace(out.tensors()[i].name, i);
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
  return mapped_->bytes().subspan(header_.data + tensor.begin, tensor.end - tensor.begin);
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors, const Metadata& metadata) {
  const std::string header = safetensors_header(tensors, metadata);
  AtomicFile file(path);
  file.write(header);
  for (const TensorToWrite& t : tensors) file.write(t.data);
  file.commit();
}

void write_safetensors(const std::filesystem::path& path, const std::vector<TensorInfo>& tensors, const Metadata& metadata,
                       const std::function<void(std::size_t, std::span<std::byte>)>& fill) {
  AtomicFile file(path);
  file.write(safetensors_header_of(tensors, metadata));
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes.resize(tensors[i].end - tensors[i].begin);
    fill(i, bytes);
    file.write(bytes);
  }
  file.commit();
}

}  // namespace cautious::base
