// log2(n) rounds; round h exchanges the off-diagonal h x h squares of every 2h x 2h square.
#include "cpu/emit/transpose.hpp"

namespace opfuse::cpu {

std::vector<Value*> transpose(Kernel& k, std::vector<Value*> vectors) {
  const int n = static_cast<int>(vectors.size());
  for (int h = 1; h < n; h *= 2) {
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
