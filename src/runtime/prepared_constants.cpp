#include "runtime/prepared_constants.hpp"

#include <algorithm>

#include "base/aligned_bytes.hpp"
#include "base/copy_bytes.hpp"
#include "base/fail.hpp"
#include "base/json_fields.hpp"
#include "tensor/paired_codes.hpp"
#include "tensor/winograd_codes.hpp"

namespace opfuse {
namespace {

using nlohmann::json;

constexpr size_t kAlignment = 64;    // of constants in memory; padding between them is not in a file
constexpr size_t kMostGrowth = 128;  // of a source with its padding: 8, and blocks that few channels do not fill
constexpr size_t kFilterRank = 4, kMostBlocks = 4;
constexpr int64_t kTaps = 3;
constexpr size_t kWorth = 10;  ///< a part of constants: less is not worth a slow load, and a copy in every process

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// plain(offset in memory, in the file, bytes) for what both have, made(constant, offset in the file) for the rest.
template <class Plain, class Made>
void walk(const std::vector<PreparedConstant>& prepared, size_t memory, const Plain& plain, const Made& made) {
  size_t at = 0, stored = 0;
  for (const PreparedConstant& p : prepared) {
    plain(at, stored, p.offset - at);
    stored += p.offset - at;
    made(p, stored);
    stored += aligned(p.source.bytes());
    at = p.offset + aligned(p.bytes);
  }
  plain(at, stored, memory - at);
}

/// Bytes that the constants take in memory beyond those in the file.
size_t growth(const std::vector<PreparedConstant>& prepared) {
  size_t bytes = 0;
  for (const PreparedConstant& p : prepared) bytes += aligned(p.bytes) - aligned(p.source.bytes());
  return bytes;
}

/// i8 codes, at most so many.
bool are_codes(const TensorType& type, size_t most) {
  const Shape& shape = type.shape;
  if (type.dtype != DType::i8 || !shape.ranked) return false;
  for (const Dim& d : shape.dims) {
    if (!d.is_constant() || d.value() <= 0) return false;
    most /= static_cast<size_t>(d.value());
  }
  return most > 0;
}

bool blocks_are_small(const Layout& layout) {
  const auto small = [](const Block& b) { return b.factor <= static_cast<int64_t>(kMostGrowth); };
  return layout.blocks.size() <= kMostBlocks && std::all_of(layout.blocks.begin(), layout.blocks.end(), small);
}

/// [O,C,3,3] in a layout that filters of codes have, in blocks of which no product overflows.
bool are_filters(const Shape& shape, const Layout& layout) {
  const auto of_channels = [](const Block& b) { return b.axis < 2; };
  return shape.rank() == kFilterRank && shape[2] == Dim(kTaps) && shape[3] == Dim(kTaps) &&
         layout.order.size() == kFilterRank && winograd::holds_codes(layout) &&
         std::all_of(layout.blocks.begin(), layout.blocks.end(), of_channels);
}

/// Outputs and channels, whole octets of these, without taps, in blocks with room for as many octets again at most.
bool are_pairs(const Shape& shape, const Layout& layout) {
  const size_t rank = shape.rank();
  if (rank < 2 || layout.order.size() != rank || layout.pairs <= 0 || layout.tile_h || layout.tile_w) return false;
  const auto output = static_cast<size_t>(layout.order[0]), channel = static_cast<size_t>(layout.order[1]);
  for (size_t d = 0; d < rank; ++d)
    if (d != output && d != channel && shape[d] != Dim(1)) return false;
  const int64_t channels = shape[channel].value(), half = paired::kOctet / 2;
  const Block words{layout.order[1], 2}, codes{layout.order[1], half};
  return channels % paired::kOctet == 0 && layout.pairs - 1 <= channels / paired::kOctet && layout.blocks.size() == 3 &&
         layout.blocks[0] == words && layout.blocks[1].axis == layout.order[0] && layout.blocks[2] == codes;
}

void right(bool holds) {
  if (!holds) throw fail(E::bad_file, "a constant that loading makes is not what its source gives");
}

Tensor made_of(const PreparedConstant& p) {
  if (p.layout.pairs == 0) return pack(p.source, p.layout);
  std::optional<Tensor> made = paired::try_pair_codes(p.source, p.layout);
  right(made.has_value());
  return *std::move(made);
}

}  // namespace

bool is_prepared(const Layout& layout) { return winograd::holds_codes(layout) || layout.pairs > 0; }

void keep_worthwhile(std::vector<PreparedConstant>& prepared, size_t memory) {
  if (growth(prepared) * kWorth < memory) prepared.clear();
}

size_t stored_constant_bytes(const Artifact& a) { return a.constants.size() - growth(a.prepared); }

std::vector<uint8_t> stored_constants(const Artifact& a) {
  std::vector<uint8_t> bytes(stored_constant_bytes(a));
  walk(
      a.prepared, a.constants.size(),
      [&](size_t at, size_t to, size_t count) { std::copy_n(a.constants.data() + at, count, bytes.data() + to); },
      [&](const PreparedConstant& p, size_t to) { copy_bytes(bytes.data() + to, p.source.data(), p.source.bytes()); });
  return bytes;
}

json prepared_json(const std::vector<PreparedConstant>& prepared) {
  json list = json::array();
  for (const PreparedConstant& p : prepared)
    list.push_back({p.offset, p.bytes, p.source.type().text(), p.layout.text()});
  return list;
}

std::vector<PreparedConstant> prepared_of(const json& list, std::span<const uint8_t> stored,
                                          const std::shared_ptr<const void>& owner) {
  std::vector<PreparedConstant> prepared;
  size_t at = 0, from = 0;  // what comes next in memory and in the file
  for (const json& j : listed(list)) {
    PreparedConstant p;
    p.offset = whole<size_t>(listed(j, 4).at(0));
    p.bytes = whole<size_t>(j.at(1));
    p.layout = Layout::parse(j.at(3).get<std::string>());
    const TensorType type = parse_type(j.at(2).get<std::string>());
    right(p.offset % kAlignment == 0 && p.offset >= at && p.offset - at <= stored.size() - from);
    from += p.offset - at;
    right(are_codes(type, stored.size() - from) && blocks_are_small(p.layout));
    right(are_filters(type.shape, p.layout) || are_pairs(type.shape, p.layout));
    right(p.layout.physical_elements(type.shape) == Dim(static_cast<int64_t>(p.bytes)));
    p.source = Tensor::wrap(type.dtype, type.shape.sizes(), stored.data() + from, owner);
    const size_t bytes = aligned(p.source.bytes());
    right(bytes <= stored.size() - from && p.bytes <= kMostGrowth * bytes);
    from += bytes;
    at = p.offset + aligned(p.bytes);
    prepared.push_back(std::move(p));
  }
  right(!prepared.empty());
  return prepared;
}

void prepare_constants(Artifact& a, std::span<const uint8_t> stored, std::shared_ptr<const void> owner) {
  struct Owned {
    std::shared_ptr<const void> file;
    AlignedBytes constants;
  };
  const auto owned =
      std::make_shared<Owned>(std::move(owner), AlignedBytes(stored.size() + growth(a.prepared), "constants"));
  uint8_t* to = owned->constants.data();
  walk(
      a.prepared, owned->constants.size(),
      [&](size_t at, size_t from, size_t count) { std::copy_n(stored.data() + from, count, to + at); },
      [&](const PreparedConstant& p, size_t) {
        const Tensor made = made_of(p);
        copy_bytes(to + p.offset, made.data(), p.bytes);
      });
  a.constants = owned->constants.span();
  a.owner = owned;
}

}  // namespace opfuse
