// log2(n) rounds; round h exchanges the off-diagonal h x h squares of every 2h x 2h square. Each shuffle is an
// instruction as it stands, but LLVM looks through trees of shuffles for better ones, from each root and after each of
// its phases, which took a tenth of the compile time of convolutional networks: it sees two rounds at a time.
#include "cpu/emit/transpose.hpp"

#include "cpu/emit/fence.hpp"

namespace opfuse::cpu {
namespace {

constexpr int kRoundsInSight = 2;

void hide(Kernel& k, std::vector<Value*>& vectors) {
  for (Value*& vector : vectors)
    if (!llvm::isa<llvm::Constant>(vector)) vector = opaque_vector(k, vector);
}

}  // namespace

std::vector<Value*> transpose(Kernel& k, std::vector<Value*> vectors) {
  const int n = static_cast<int>(vectors.size());
  for (int h = 1, round = 0; h < n; h *= 2, ++round) {
    if (round > 0 && round % kRoundsInSight == 0) hide(k, vectors);
    std::vector<int> low, high;
    for (int lane = 0; lane < n; ++lane) {
      low.push_back(lane & h ? n + lane - h : lane);
      high.push_back(lane & h ? n + lane : lane + h);
    }
    const auto distance = static_cast<size_t>(h);
    for (size_t i = 0; i < vectors.size(); ++i) {
      if (i & distance) continue;
      auto &first = vectors[i], &second = vectors[i + distance];
      Value* upper = k.b.CreateShuffleVector(first, second, low);
      second = k.b.CreateShuffleVector(first, second, high);
      first = upper;
    }
  }
  return vectors;
}

}  // namespace opfuse::cpu
