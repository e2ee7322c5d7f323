// Rearrangements that people name, written as reshape -> transpose -> reshape:
//   channel_shuffle    [N, g*c, H, W] -> [N, g, c, H, W] -> [N, c, g, H, W] -> [N, g*c, H, W]
//   window_partition   [N, H, W, C] -> [N, H/w, w, W/w, w, C] -> [N, H/w, W/w, w, w, C] -> [windows, ...]
//   window_reverse     the way back: [..] -> [N, H/w, W/w, w, w, C] -> [N, H/w, w, W/w, w, C] -> [N, H, W, C]
// a roll along one axis, written as two slices and a concatenation: [x[k:], x[:k]]; and a rotary embedding, which turns
// pairs of elements half a head apart, [a, b] = x:
//   x cos + [-b, a] sin            Hugging Face; cos and sin as wide as x
//   [a cos - b sin, a sin + b cos] ONNX's RotaryEmbedding; cos and sin half as wide
// where a and b are two slices, or the results of one Split.
#include <fmt/format.h>

#include "match/attention.hpp"
#include "ops/axes.hpp"
#include "ops/concat.hpp"
#include "ops/slice.hpp"
#include "ops/slice_ranges.hpp"
#include "ops/split.hpp"
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

MatchPredicate named(const std::string& what, const std::function<bool(const Match&, const Sides&)>& holds) {
  return {what, [what, holds](const Match& m) -> std::optional<Decline> {
            const Sides s = sides_of(m);
            if (s.x.ranked && s.apart.ranked && s.y.ranked && holds(m, s)) return std::nullopt;
            return Decline{
                "shapes", fmt::format("{} to {} to {} is not a {}", s.x.text(), s.apart.text(), s.y.text(), what), {}};
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

MatchPredicate rolls() {
  return {"the slices change places", [](const Match& m) -> std::optional<Decline> {
            const Node &tail = *m.node("tail"), &head = *m.node("head"), &whole = *m.node("whole");
            const auto back = slice_of_one_axis(tail), front = slice_of_one_axis(head);
            const Shape& x = m.value("x")->type.shape;
            if (!back || !front || !x.ranked)
              return Decline{"unknown_dimension", describe(tail) + " has no constant bounds on one axis", {}};
            const size_t axis = normalize_axis(whole.as<Concat>().axis, x.rank());
            const bool same = back->axis == axis && front->axis == axis && x == whole.output()->type.shape;
            if (same && front->start == 0 && front->count == back->start && back->start + back->count == back->size)
              return std::nullopt;
            return Decline{"no_roll",
                           fmt::format("{} and {} are not the two parts of one axis", describe(tail), describe(head)),
                           {}};
          }};
}

Pattern rolled() {
  return any("x") >> op("slice", "tail") >> op("concat", "whole").with(any("x") >> op("slice", "head"));
}

/// [first, count) of the last axis, of the two halves of x.
bool halve_by_slices(const Match& m, size_t last) {
  const auto back = slice_of_one_axis(*m.node("tail")), front = slice_of_one_axis(*m.node("head"));
  return back && front && back->axis == last && front->axis == last && front->start == 0 &&
         front->count == back->start && back->start + back->count == back->size && front->count == back->count;
}

bool halve_by_split(const Node& split, size_t last) {
  const Shape& first = split.outputs[0]->type.shape;
  return split.outputs.size() == 2 && normalize_axis(split.as<Split>().axis, last + 1) == last &&
         split.outputs[1]->type.shape == first && first[last].is_constant();
}

/// The pattern's two halves are those of the last axis, and so is what is put together.
MatchPredicate halves() {
  return {"halves of the last axis", [](const Match& m) -> std::optional<Decline> {
            const Node* split = m.node("halves");
            const Shape& x = m.value("x")->type.shape;
            if (!x.ranked || x.rank() == 0) return Decline{"unknown_dimension", "the rank of x is not known", {}};
            const size_t last = x.rank() - 1;
            const bool halved = split ? halve_by_split(*split, last) : halve_by_slices(m, last);
            if (halved && normalize_axis(m.node("whole")->as<Concat>().axis, x.rank()) == last &&
                m.anchor->output()->type == m.value("x")->type)
              return std::nullopt;
            const std::string what = split
                                         ? describe(*split) + " does not make"
                                         : describe(*m.node("tail")) + " and " + describe(*m.node("head")) + " are not";
            return Decline{"no_halves", what + " the halves of the last axis", {}};
          }};
}

struct Halves {
  Pattern first, second;
};
Halves sliced() { return {any("x") >> op("slice", "head"), any("x") >> op("slice", "tail")}; }
Halves split() { return {any("x") >> op("split", "halves").result(0), any("x") >> op("split", "halves").result(1)}; }

/// x cos + concat(-b, a) sin
Pattern rotated(const Halves& of) {
  const Pattern half = of.second >> op("neg") >> op("concat", "whole").with(of.first);
  return any("x") >> op("mul").with(any("cos")) >> op("add").with(half >> op("mul").with(any("sin")));
}

/// concat(a cos - b sin, a sin + b cos)
Pattern rotated_halves(const Halves& of) {
  const auto times = [](const Pattern& half, const char* by) { return half >> op("mul").with(any(by)); };
  const Pattern imaginary = times(of.first, "sin") >> op("add").with(times(of.second, "cos"));
  return times(of.first, "cos") >> op("sub").with(times(of.second, "sin")) >> op("concat", "whole").with(imaginary);
}

}  // namespace

std::optional<AxisSlice> slice_of_one_axis(const Node& slice) {
  const auto ranges = slice_ranges(slice);
  if (!ranges || ranges->size() != 1 || ranges->begin()->second.step != 1) return std::nullopt;
  const auto& [axis, range] = *ranges->begin();
  const Dim& extent = slice.input(0)->type.shape[axis];
  if (!extent.is_constant()) return std::nullopt;
  const int64_t size = extent.value();
  const SliceAxis cut = slice_axis(range.start, range.end, 1, size);
  return AxisSlice{axis, cut.start, cut.count, size};
}

const std::vector<Spelling>& movement_spellings() {
  static const std::vector<Spelling> kAll{
      {kRotaryEmbedding, "x cos + concat(-x[h:], x[:h]) sin", rotated(sliced()), {halves()}, {}},
      {kRotaryEmbedding, "x cos + concat(-b, a) sin of a split", rotated(split()), {halves()}, {}},
      {kRotaryEmbedding, "concat(a cos - b sin, a sin + b cos)", rotated_halves(sliced()), {halves()}, {}},
      {kRotaryEmbedding, "concat(a cos - b sin, a sin + b cos) of a split", rotated_halves(split()), {halves()}, {}},
      {"roll", "concat(x[k:], x[:k])", rolled(), {rolls()}, {}},
      {"channel_shuffle", "reshape, swap groups, reshape", rearranged(), {named("channel shuffle", is_shuffle)}, {}},
      {"window_partition", "reshape, swap, reshape", rearranged(), {named("window partition", is_partition)}, {}},
      {"window_reverse", "reshape, swap, reshape", rearranged(), {named("window reversal", is_reverse)}, {}},
  };
  return kAll;
}

}  // namespace opfuse
