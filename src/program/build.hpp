// Fused graph -> program: one launch per node, layouts, views, memory.
#pragma once

#include <functional>
#include <optional>
#include <set>

#include "ir/graph.hpp"
#include "program/layout_wish.hpp"
#include "program/program.hpp"
#include "target/target.hpp"

namespace opfuse {

/// The code generator's answers, as functions so that building a program needs no code generator. Absent
/// ones: everything can be generated, weights stay dense, schedules stay empty.
struct BuildOptions {
  bool allow_reference = false;  ///< operators without a kernel become reference launches
  bool blocked_layouts = true;
  bool views = true;  ///< reshapes, slices and concatenations without a launch where possible
  /// A result may take the place of an operand that is read for the last time at the very coordinates it is
  /// stored. Needs a code generator whose parts read of such an operand only what they write (no tile is
  /// computed twice, no load is assumed to alias no store).
  bool in_place = true;
  bool stretches = false;  ///< open dimensions that may be 1 beside others are read as such (lower_group)
  bool loops = true;       ///< the runtime of the target runs loops of launches
  bool routines = true;    ///< ... and routines, whose results have sizes that they find (program/levels.hpp)

  std::function<std::optional<std::string>(const Region&)> cannot_generate;
  /// The smaller groups that a fused node becomes when it is not a single kernel: its body with fused nodes inside.
  /// Absent: every node of the body by itself.
  std::function<Graph(const Node& fused)> divide;
  std::function<LayoutWish(const Region&)> wish_layouts;
  std::function<Schedule(const Region&, const std::vector<Layout>&, const std::vector<std::vector<Dim>>& strides)>
      choose_schedule;
  /// The same two of groups whose pattern has a kernel of its own; nothing: those above answer.
  std::function<std::optional<LayoutWish>(const std::string& pattern, const Region&)> wish_of_pattern;
  std::function<std::optional<Schedule>(const std::string& pattern, const Region&)> schedule_of_pattern;
  /// Whether a launch of the region is faster with its parameter `data`, an input of the graph, copied into the layout
  /// that `layouts` have there, the copy included. Absent: never.
  std::function<bool(const Region&, size_t data, const std::vector<Layout>& layouts)> copy_of_input_pays;
  int64_t arena_comparisons = Limits{}.arena_comparisons;
  std::set<const void*> quantised;  ///< where constants lie that are integers in the model
  /// Outputs, by name, that lie as kernels wish, not densely, in a program without open sizes.
  std::set<std::string> outputs_in_blocks;
};

/// A fused node that cannot be lowered or generated is split (`divide`), with a note. Single
/// operators without a kernel: E::uncompilable once, listing all of them and the share of FLOP that would
/// be compiled; with allow_reference they become reference launches and a note each.
Program build_program(const Graph& fused_graph, const TargetInfo& target, const BuildOptions& options = {});

}  // namespace opfuse
