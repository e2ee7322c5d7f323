// Launches of devices name operands, pieces and memory: each index within its list, each layout one of its type, each
// byte within what the run has.
#include "runtime/check_devices.hpp"

#include <algorithm>

#include "base/fail.hpp"
#include "runtime/routine_launch.hpp"

namespace opfuse {

void consistent(bool ok, const char* what) {
  if (!ok) throw fail(E::bad_file, "the header's {} are inconsistent", what);
}

std::set<std::string> bound_symbols(const Artifact& a) {
  std::set<std::string> symbols;
  for (const ArtifactTensor& t : a.inputs)
    for (const Dim& dim : t.type.shape.dims) dim.collect_symbols(symbols);
  return symbols;
}

std::set<std::string> known_symbols(const Artifact& a, const ArtifactProgram& program) {
  std::set<std::string> symbols = bound_symbols(a);
  for (const ArtifactLaunch& l : program.launches)
    symbols.insert(l.routine.call.defines.begin(), l.routine.call.defines.end());
  return symbols;
}

int64_t whole_of(const ArtifactBuffer& b, const RunMemory& memory) {
  const auto root = static_cast<size_t>(b.root);
  return b.storage == Storage::input      ? memory.inputs[root]
         : b.storage == Storage::output   ? memory.outputs[root]
         : b.storage == Storage::constant ? memory.constants
         : b.root > 0                     ? memory.later_arenas[root - 1]
                                          : memory.arena;
}

/// An order of all axes, and blocks of some.
static bool is_layout_of(const Layout& layout, size_t rank) {
  std::vector<bool> seen(rank, false);
  if (layout.order.size() != rank || layout.is_transformed()) return false;
  for (const int axis : layout.order) {
    if (axis < 0 || axis >= static_cast<int>(rank) || seen[static_cast<size_t>(axis)]) return false;
    seen[static_cast<size_t>(axis)] = true;
  }
  return std::all_of(layout.blocks.begin(), layout.blocks.end(), [&](const Block& block) {
    return block.axis >= 0 && block.axis < static_cast<int>(rank) && block.factor > 0 && block.factor < 1 << 20;
  });
}

static bool is_value(const PlacedValue& value, std::set<std::string>& symbols) {
  const size_t dims = value.layout.order.size() + value.layout.blocks.size();
  for (const Dim& dim : value.type.shape.dims) dim.collect_symbols(symbols);
  for (const Dim& stride : value.strides) stride.collect_symbols(symbols);
  return value.type.shape.ranked && byte_size(value.type.dtype) > 0 &&
         is_layout_of(value.layout, value.type.shape.rank()) && value.strides.size() == dims;
}

void check_routine(const Artifact& a, const ArtifactProgram& program, const ArtifactLaunch& l) {
  const RoutineLaunch& routine = l.routine;
  const auto count = static_cast<int>(l.buffers.size());
  consistent(!a.on_device() && is_routine(routine.call.name) && routine.values.size() == l.buffers.size() &&
                 routine.inputs > 0 && routine.inputs <= count && l.steps.empty() &&
                 l.placed.kind == PlacedLaunch::Kind::none,
             "routines");
  std::set<std::string> symbols;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool absent = l.buffers[at] < 0;
    consistent(absent ? routine.values[at].type.dtype == DType::unknown : is_value(routine.values[at], symbols),
               "routines");
    if (absent) continue;
    const ArtifactBuffer& buffer = program.buffers[static_cast<size_t>(l.buffers[at])];
    consistent(i < routine.inputs || (buffer.storage != Storage::constant && buffer.storage != Storage::input),
               "routines");
  }
  const std::set<std::string> known = known_symbols(a, program);
  consistent(std::includes(known.begin(), known.end(), symbols.begin(), symbols.end()), "dimensions");
}

void check_placed(const Artifact& a, const ArtifactProgram& program, const ArtifactLaunch& l) {
  const PlacedLaunch& placed = l.placed;
  const bool copies = placed.kind != PlacedLaunch::Kind::run;
  consistent(placed.device >= 0 && placed.device < static_cast<int>(a.devices.size()) &&
                 placed.values.size() == l.buffers.size() && (!copies || l.buffers.size() == 2) && placed.inputs >= 0 &&
                 placed.inputs <= static_cast<int>(l.buffers.size()) && l.steps.empty(),
             "launches of devices");
  std::set<std::string> symbols;
  for (size_t i = 0; i < l.buffers.size(); ++i) {
    const PlacedValue& value = placed.values[i];
    const size_t dims = value.layout.order.size() + value.layout.blocks.size();
    consistent(value.type.shape.ranked && byte_size(value.type.dtype) > 0 &&
                   is_layout_of(value.layout, value.type.shape.rank()) && value.strides.size() == dims,
               "launches of devices");
    for (const Dim& dim : value.type.shape.dims) dim.collect_symbols(symbols);
    for (const Dim& stride : value.strides) stride.collect_symbols(symbols);
    const ArtifactBuffer& buffer = program.buffers[static_cast<size_t>(l.buffers[i])];
    consistent(copies || buffer.storage != Storage::constant || value.type.shape.elements().is_constant(),
               "launches of devices");
  }
  const std::set<std::string> known = known_symbols(a, program);
  consistent(std::includes(known.begin(), known.end(), symbols.begin(), symbols.end()), "dimensions");
  const ArtifactDevice& device = a.devices[static_cast<size_t>(placed.device)];
  if (copies || !device.program) return;
  constexpr std::string_view kPiece = "gpu-piece ";
  const bool named = placed.piece.starts_with(kPiece) && placed.piece.size() < kPiece.size() + 9 &&
                     placed.piece.find_first_not_of("0123456789", kPiece.size()) == std::string::npos &&
                     placed.piece.size() > kPiece.size();
  consistent(named, "launches of devices");
  const size_t number = std::stoul(placed.piece.substr(kPiece.size()));
  consistent(number < device.pieces.size(), "launches of devices");
  const GpuPiece& piece = device.pieces[number];
  consistent(piece.inputs == placed.inputs && piece.inputs + piece.outputs == static_cast<int>(l.buffers.size()),
             "launches of devices");
}

void check_placed_ranges(const ArtifactProgram& program, const ArtifactLaunch& l, const SymbolValues& sizes,
                         const RunMemory& memory) {
  const std::vector<PlacedValue>& values = l.placed.values.empty() ? l.routine.values : l.placed.values;
  for (size_t i = 0; i < values.size(); ++i) {
    const PlacedValue& value = values[i];
    if (l.buffers[i] < 0) continue;
    const ArtifactBuffer& buffer = program.buffers[static_cast<size_t>(l.buffers[i])];
    const auto known = [&](const Dim& dim) { return is_known(dim, sizes); };
    if (!is_known(value.type.shape, sizes) || !known(buffer.offset) || !std::ranges::all_of(value.strides, known))
      continue;
    if (whole_of(buffer, memory) == kLater) continue;
    const int64_t bytes = whole_of(buffer, memory) - buffer.offset.evaluate(sizes),
                  element = static_cast<int64_t>(byte_size(value.type.dtype));
    int64_t last = 0;
    bool fits = true, empty = false;
    const std::vector<Dim> extents = value.layout.physical_extents(value.type.shape);
    for (size_t d = 0; d < extents.size(); ++d) {
      const int64_t extent = extents[d].evaluate(sizes), stride = value.strides[d].evaluate(sizes);
      int64_t reach = 0;
      empty |= extent == 0;
      fits &= extent >= 0 && stride >= 0 && !__builtin_mul_overflow(std::max<int64_t>(extent - 1, 0), stride, &reach) &&
              !__builtin_add_overflow(last, reach, &last);
    }
    if (!empty && (!fits || last >= bytes / element))
      throw fail(E::bad_file, "the value of '{}' is larger than the {} bytes that there are", l.name, bytes)
          .hint("an .opf is a cache: compile the model again");
  }
}

void check_gpu_pieces(const ArtifactDevice& device) {
  check_artifact(*device.program);
  const Artifact& program = *device.program;
  consistent(program.on_device() && program.devices.empty() && program.variants.empty(), "devices");
  const auto within = [](int first, int count, size_t all) {
    return first >= 0 && count >= 0 && first <= static_cast<int>(all) && count <= static_cast<int>(all) - first;
  };
  for (const GpuPiece& piece : device.pieces) {
    consistent(within(piece.first_input, piece.inputs, program.inputs.size()) &&
                   within(piece.first_output, piece.outputs, program.outputs.size()),
               "devices");
    for (const int l : piece.launches) {
      consistent(l >= 0 && l < static_cast<int>(program.launches.size()), "devices");
      for (const int b : program.launches[static_cast<size_t>(l)].buffers) {
        const ArtifactBuffer& buffer = program.buffers[static_cast<size_t>(b)];
        const bool input = buffer.storage == Storage::input, output = buffer.storage == Storage::output;
        const int first = input ? piece.first_input : piece.first_output;
        const int count = input ? piece.inputs : piece.outputs;
        consistent(!(input || output) || (buffer.root >= first && buffer.root < first + count), "devices");
      }
    }
  }
}

}  // namespace opfuse
