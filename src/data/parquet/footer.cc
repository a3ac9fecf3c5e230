// Numbers of fields and of types are those of parquet.thrift.
#include "data/parquet/footer.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/parquet/thrift.h"

namespace cautious::data::parquet {
namespace {

constexpr std::int64_t kOptional = 1, kRepeated = 2, kByteArray = 6;

struct Element {
  std::string name;
  std::int64_t type = -1, repetition = 0, children = 0;
};

Element element_of(Thrift& thrift) {
  Element element;
  thrift.inner([&](std::int64_t id) {
    if (id == 1) element.type = thrift.number();
    if (id == 3) element.repetition = thrift.number();
    if (id == 4) element.name = thrift.text();
    if (id == 5) element.children = thrift.number();
  });
  return element;
}

// The schema is a tree, written depth first.
class Schema {
 public:
  explicit Schema(const std::vector<Element>& elements) : elements_(elements) {
    if (elements.empty()) throw Damage{"no schema"};
    children(elements[next_++], {}, 0);
    if (next_ != elements.size()) throw Damage{"a schema with too many columns"};
  }
  std::vector<Column> take() { return std::move(columns_); }

 private:
  struct Place {
    std::string name;
    int optional = 0;
    bool repeated = false;
  };

  void children(const Element& parent, const Place& place, int depth) {
    constexpr int kDeepest = 32;
    if (depth > kDeepest) throw Damage{"columns within columns without an end"};
    for (std::int64_t i = 0; i < parent.children; ++i) {
      if (next_ == elements_.size()) throw Damage{"a schema with too few columns"};
      const Element& element = elements_[next_++];
      const Place here{place.name.empty() ? element.name : place.name + "." + element.name,
                       place.optional + (element.repetition == kOptional ? 1 : 0),
                       place.repeated || element.repetition == kRepeated};
      if (element.children > 0) {
        children(element, here, depth + 1);
      } else {
        columns_.push_back({here.name, element.type == kByteArray && !here.repeated, here.optional, columns_.size()});
      }
    }
  }

  const std::vector<Element>& elements_;
  std::size_t next_ = 0;
  std::vector<Column> columns_;
};

Chunk chunk_of(Thrift& thrift, std::uint64_t end) {
  Chunk chunk;
  std::int64_t data = 0, dictionary = 0;
  bool described = false;
  thrift.inner([&](std::int64_t id) {
    if (id == 1) throw Damage{"its pages are in another file"};
    if (id == 8) throw Damage{"it is encrypted"};
    if (id != 3) return;
    described = true;
    thrift.inner([&](std::int64_t inner) {
      if (inner == 4) chunk.codec = thrift.number();
      if (inner == 5) chunk.values = thrift.number();
      if (inner == 7) chunk.size = thrift.number();
      if (inner == 9) data = thrift.number();
      if (inner == 11) dictionary = thrift.number();
    });
  });
  chunk.first = dictionary > 0 ? std::min(dictionary, data) : data;
  const auto last = static_cast<std::int64_t>(end);
  if (!described || chunk.values < 0 || chunk.first < 0 || chunk.size < 0 || chunk.first > last ||
      chunk.size > last - chunk.first)
    throw Damage{fmt::format("pages at bytes {} to {} + {} of {}", chunk.first, chunk.first, chunk.size, end)};
  return chunk;
}

RowGroup group_of(Thrift& thrift, std::uint64_t end) {
  RowGroup group;
  thrift.inner([&](std::int64_t id) {
    if (id == 1) thrift.list([&] { group.chunks.push_back(chunk_of(thrift, end)); });
    if (id == 3) group.rows = thrift.number();
  });
  return group;
}

}  // namespace

Footer read_footer(std::string_view bytes, std::uint64_t end) {
  Footer footer;
  std::vector<Element> elements;
  Thrift thrift(bytes);
  thrift.structure([&](std::int64_t id) {
    if (id == 2) thrift.list([&] { elements.push_back(element_of(thrift)); });
    if (id == 4) thrift.list([&] { footer.groups.push_back(group_of(thrift, end)); });
    if (id == 8) throw Damage{"it is encrypted"};
  });
  footer.columns = Schema(elements).take();
  for (const RowGroup& group : footer.groups) {
    if (group.chunks.size() != footer.columns.size())
      throw Damage{fmt::format("a row group of {} columns, {} in the schema", group.chunks.size(), footer.columns.size())};
  }
  return footer;
}

}  // namespace cautious::data::parquet
