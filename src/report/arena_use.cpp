// A block is in use from the first launch that touches it to the last, as the memory plan has it (program/memory.cpp):
// through all of a body that shares it with what is outside, or whose steps may find it again.
// Views (parts of a concatenation, reshaped values) are blocks within blocks; bytes are counted once.
#include "report/arena_use.hpp"

#include <algorithm>

namespace opfuse::report {
namespace {

void live_through_loops(const ArtifactProgram& program, std::vector<ArenaBlock>& blocks) {
  for (ArenaBlock& block : blocks)
    for (const ArtifactBody& body : program.bodies) {
      const int first = static_cast<int>(body.first), last = first + static_cast<int>(body.launches) - 1;
      if (block.last < first || block.first > last) continue;
      if (!body.steps && block.first >= first && block.last <= last) continue;
      block.first = std::min(block.first, first);
      block.last = std::max(block.last, last);
    }
}

int64_t covered(std::vector<std::pair<int64_t, int64_t>> ranges) {
  std::sort(ranges.begin(), ranges.end());
  int64_t sum = 0, end = 0;
  for (const auto& [from, to] : ranges) {
    sum += std::max<int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return sum;
}

/// Where each arena begins: one for every set of sizes that a run finds stands behind the first.
std::vector<int64_t> arenas(const ArtifactProgram& program, const SymbolValues& sizes, int64_t& all) {
  std::vector<int64_t> bytes{program.arena_bytes.evaluate(sizes)}, begins;
  for (const ArtifactBuffer& b : program.buffers) {
    if (b.storage != Storage::arena || b.root <= 0) continue;
    const auto number = static_cast<size_t>(b.root);
    bytes.resize(std::max(bytes.size(), number + 1));
    bytes[number] = std::max(bytes[number], b.offset.evaluate(sizes) + b.bytes.evaluate(sizes));
  }
  for (const int64_t b : bytes) begins.push_back(all), all += b;
  return begins;
}

}  // namespace

ArenaUse arena_use(const ArtifactProgram& program, const SymbolValues& sizes) {
  ArenaUse use;
  const std::vector<int64_t> begins = arenas(program, sizes, use.bytes);
  std::vector<int> block_of(program.buffers.size(), -1);
  for (size_t l = 0; l < program.launches.size(); ++l)
    for (int b : program.launches[l].buffers) {
      if (b < 0 || program.buffers[static_cast<size_t>(b)].storage != Storage::arena) continue;
      const ArtifactBuffer& buffer = program.buffers[static_cast<size_t>(b)];
      int& block = block_of[static_cast<size_t>(b)];
      if (block < 0) {
        block = static_cast<int>(use.blocks.size());
        use.blocks.push_back({buffer.name,
                              begins[static_cast<size_t>(std::max(buffer.root, 0))] + buffer.offset.evaluate(sizes),
                              buffer.bytes.evaluate(sizes), static_cast<int>(l), 0});
      }
      use.blocks[static_cast<size_t>(block)].last = static_cast<int>(l);
    }
  live_through_loops(program, use.blocks);
  for (size_t l = 0; l < program.launches.size(); ++l) {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const ArenaBlock& block : use.blocks)
      if (block.first <= static_cast<int>(l) && static_cast<int>(l) <= block.last)
        ranges.emplace_back(block.offset, block.offset + block.bytes);
    use.live.push_back(covered(std::move(ranges)));
  }
  return use;
}

}  // namespace opfuse::report
