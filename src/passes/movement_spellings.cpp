// Rearrangements that people name, written as reshape -> transpose -> reshape:
//   channel_shuffle    [N, g*c, H, W] -> [N, g, c, H, W] -> [N, c, g, H, W] -> [N, g*c, H, W]
//   window_partition   [N, H, W, C] -> [N, H/w, w, W/w, w, C] -> [N, H/w, W/w, w, w, C] -> [windows, ...]
//   window_reverse     the way back: [..] -> [N, H/w, W/w, w, w, C] -> [N, H/w, w, W/w, w, C] -> [N, H, W, C]
#include <fmt/format.h>

#include "ops/transpose.hpp"
#include "passes/recompose.hpp"

namespace opfuse {

namespace {

bool permutes(const Node& node, const std::vector<size_t>& wanted) {
  return Transpose::permutation(node.as<Transpose>(), node.input(0)->type.shape.rank()) == wanted;
}

Pattern rearranged() {
  return any("x") >> op("reshape", "apart").with(any()) >> op("transpose", "swap") >>
         op("reshape", "together").with(any());
}

struct Sides {
  const Shape &x, &apart, &y;
};
Sides sides_of(const Match& m) {
  return {m.value("x")->type.shape, m.value("apart")->type.shape, m.value("together")->type.shape};
}

MatchPredicate named(std::string what, std::function<bool(const Match&, const Sides&)> holds) {
  return {what, [what, holds](const Match& m) -> std::optional<Decline> {
            const Sides s = sides_of(m);
            if (s.x.ranked && s.apart.ranked && s.y.ranked && holds(m, s)) return std::nullopt;
            return Decline{
                "shapes", fmt::format("{} to {} to {} is no {}", s.x.text(), s.apart.text(), s.y.text(), what), {}};
          }};
}

bool is_shuffle(const Match& m, const Sides& s) {
  return s.x.rank() == 4 && s.apart.rank() == 5 && s.x == s.y && permutes(*m.node("swap"), {0, 2, 1, 3, 4}) &&
         s.apart[0] == s.x[0] && s.apart[3] == s.x[2] && s.apart[4] == s.x[3];
}

bool is_partition(const Match& m, const Sides& s) {
  return s.x.rank() == 4 && s.apart.rank() == 6 && permutes(*m.node("swap"), {0, 1, 3, 2, 4, 5}) &&
         s.apart[2] == s.apart[4] && s.apart[0] == s.x[0] && s.apart[5] == s.x[3] && s.y[s.y.rank() - 1] == s.x[3] &&
         s.apart[1] * s.apart[2] == s.x[1];
}

bool is_reverse(const Match& m, const Sides& s) {
  return s.y.rank() == 4 && s.apart.rank() == 6 && permutes(*m.node("swap"), {0, 1, 3, 2, 4, 5}) &&
         s.apart[3] == s.apart[4] && s.apart[5] == s.y[3] && s.apart[0] == s.y[0] && s.apart[1] * s.apart[3] == s.y[1];
}

}  // namespace

const std::vector<Spelling>& movement_spellings() {
  static const std::vector<Spelling> kAll{
      {"channel_shuffle", "reshape, swap groups, reshape", rearranged(), {named("channel shuffle", is_shuffle)}, {}},
      {"window_partition", "reshape, swap, reshape", rearranged(), {named("window partition", is_partition)}, {}},
      {"window_reverse", "reshape, swap, reshape", rearranged(), {named("window reversal", is_reverse)}, {}},
  };
  return kAll;
}

}  // namespace opfuse
