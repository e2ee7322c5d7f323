// Every operand and result with its type, and how it lies on the host; of pieces the dimensions that a run gives.
#include "link/placed_launch.hpp"

#include "base/fail.hpp"
#include "ir/placed.hpp"

namespace opfuse {

PlacedLaunch placed_launch(const Program& program, const Launch& launch, const Node& placed, int device,
                           std::string piece) {
  PlacedLaunch made;
  made.device = device;
  std::set<std::string> symbols;
  for (const int b : launch.buffers) {
    const Buffer& buffer = program.buffers.at(static_cast<size_t>(b));
    made.values.push_back({buffer.type, buffer.layout, buffer.strides});
    for (const Dim& dim : buffer.type.shape.dims) dim.collect_symbols(symbols);
  }
  switch (placed_kind(placed)) {
    case PlacedKind::copy_in:
      made.kind = PlacedLaunch::Kind::copy_in;
      return made;
    case PlacedKind::copy_out:
      made.kind = PlacedLaunch::Kind::copy_out;
      return made;
    case PlacedKind::run:
      break;
  }
  made.kind = PlacedLaunch::Kind::run;
  made.inputs = static_cast<int>(placed.inputs.size());
  made.piece = std::move(piece);
  made.symbols.assign(symbols.begin(), symbols.end());
  for (size_t i = 0; i < launch.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(launch.buffers[i])];
    OPFUSE_CHECK(buffer.kind != BufferKind::constant || buffer.layout.is_dense(), "{} has a constant in blocks",
                 launch.name);
  }
  return made;
}

}  // namespace opfuse
