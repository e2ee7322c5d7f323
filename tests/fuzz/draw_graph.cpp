// The table of everything that can be drawn, and the loop that fills a graph.
#include "fuzz/operators.hpp"

namespace opfuse::fuzz {
namespace {

std::vector<Draw> all_draws() {
  std::vector<Draw> all;
  for (const auto* list : {&elementwise_draws(), &contraction_draws(), &window_draws(), &row_draws(), &movement_draws(),
                           &shape_draws(), &indexing_draws(), &quantized_draws(), &block_draws()})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

}  // namespace

bool draw_something(Drawer& drawer) {
  static const std::vector<Draw> draws = all_draws();
  static const int64_t total = [] {
    int64_t sum = 0;
    for (const Draw& draw : draws) sum += draw.weight;
    return sum;
  }();
  if (drawer.options().codes && drawer.chance(0.1)) return quantized_convolution(drawer);
  if (drawer.options().attention && drawer.chance(0.1)) return quantized_attention(drawer);
  int64_t at = drawer.between(0, total - 1);
  for (const Draw& draw : draws)
    if ((at -= draw.weight) < 0) return draw.draw(drawer);
  return false;
}

DrawOptions options_of(uint64_t seed) {
  Random random(seed, "options");
  DrawOptions options;
  options.nodes = static_cast<int>(random.between(20, 60));
  options.exact = random.uniform() < 0.35;
  options.open = random.uniform() < 0.3;
  options.zero = random.uniform() < 0.05;
  options.type = random.uniform() < 0.12 ? DType::f16 : DType::f32;
  constexpr uint64_t kFirstOfCodes = 100'000, kFirstOfAttention = 300'000;
  options.codes = seed >= kFirstOfCodes;
  options.attention = seed >= kFirstOfAttention;
  return options;
}

Drawn draw_graph(uint64_t seed, const DrawOptions& options) {
  Drawer drawer(seed, options);
  for (int tries = 0; tries < 40 * options.nodes; ++tries) {
    if (static_cast<int>(drawer.graph().nodes().size()) >= options.nodes) break;
    draw_something(drawer);
  }
  return drawer.finish();
}

}  // namespace opfuse::fuzz
