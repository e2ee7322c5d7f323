// What stands behind build_program: its sources are build.cpp (the order of the steps), build_buffers.cpp,
// build_launches.cpp, build_steps.cpp (bodies) and build_views.cpp.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/for_parts.hpp"
#include "program/build.hpp"
#include "program/levels.hpp"
#include "program/work_list.hpp"

namespace opfuse {

/// A composite has the name of what it computes, which others may compute too.
std::string launch_name(const Node& node);

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& graph, const TargetInfo& target, const BuildOptions& options)
      : target_(target), options_(options), work_(make_work_list(graph, options)) {}

  Program run();

 private:
  const TargetInfo& target_;
  const BuildOptions& options_;
  WorkList work_;
  Program program_;
  std::map<const Value*, int> buffers_;               ///< looked up only
  std::vector<std::pair<const Value*, int>> copies_;  ///< graph outputs that another value's buffer holds
  std::map<std::pair<const Value*, std::string>, int> constants_;
  std::map<std::pair<int, bool>, int> step_boxes_;  ///< by buffer and direction
  int entered_ = 0;                                 ///< the first launch of the body that is being emitted
  std::set<int> moving_;                            ///< boxes of its first part
  bool in_body_ = false;
  Levels levels_;  ///< of the launches so far
  /// By buffer, layout, and the body of a loop that makes the copy.
  std::map<std::tuple<int, std::string, int>, int> copies_in_blocks_;

  Buffer& buffer(int index) { return program_.buffers[static_cast<size_t>(index)]; }
  bool has_kernel(const Region& region, const std::vector<Layout>& layouts) const;
  LayoutWish wish(const Region& region, const std::string& pattern = {}) const;
  std::vector<LayoutWish> wishes_of(const std::vector<LoweredGroup>& groups, const std::string& pattern) const;
  /// The source name, or "%id" for values that conversions made.
  static std::string buffer_name(const Value* value);
  int add_buffer(BufferKind kind, const std::string& name, const TensorType& type);
  void make_buffers();
  /// Unread results of nodes with several have no buffer unless a launch writes them.
  bool produced(const WorkItem& item, const Value* result) const;
  int find(const Value* value) const;
  int constant_buffer(const LoweredOperand& operand, const Param& param, const std::optional<Layout>& wished,
                      const std::string& owner);
  /// A parameter of a loop's launch: the slice of the first step, of which the loop moves on.
  int step_box(int whole, const LoweredGroup& group, const TensorType& type);
  /// An initial state takes the place of a slice in the first step: its rows must lie alike.
  int initial_state(int given, int slices, const Node& node);
  /// No cut but along first axes, and no other layout: a slice is rows one behind the other.
  bool dense_rows(int index);
  int step_buffer(const LoweredGroup& group, size_t i, const std::optional<Layout>& wished, const std::string& owner);
  /// The launches of a step, and the loop around them.
  void loop(const Node& node, const std::vector<LoweredGroup>& groups);
  void launch(const Node& node, const LoweredGroup& group, const std::vector<std::optional<Layout>>& wishes,
              const std::string& name);
  /// The caller's arrays are dense; where a kernel has a faster algorithm on another layout, the input is copied once.
  bool wants_copy(const Launch& launch, size_t i, const Layout& wished);
  int copy_in_blocks(int from, const Layout& layout, const Node& node, const char* reason);
  /// bf16 operands that lie otherwise than as wished, where the launch has no kernel as all lie: a convolution and a
  /// window take no dense bf16, and something else may keep the value dense.
  std::vector<size_t> without_kernel(const Launch& launch, const std::vector<std::optional<Layout>>& wishes) const;
  void launch_all(const Node& node, const std::vector<LoweredGroup>& groups) {
    launch_all(node, groups, wishes_of(groups, node.pattern));
  }
  void launch_all(const Node& node, const std::vector<LoweredGroup>& groups, const std::vector<LayoutWish>& wishes);
  void emit(const WorkItem& item);
  void emit_reference(const Node& node);
  /// The buffer that a chain of reshaped views starts from.
  int reshape_root(int index);
  void emit_reshape(const Node& node);
  bool make_reshape(int from, int to);
  void emit_box(const WorkItem& item);
  bool has_reshaped_views(int index) const;
  /// What moves with a part has all of its rows.
  bool cuts_rows(int part, int whole) const;
  bool has_rows_cut(int whole) const;
  /// Whether the memory of `whole`, and the place in it, is known when `part` is computed.
  bool is_there_for(int whole, int part, const std::vector<Dim>& offset);
  /// Operands computed by launches become parts of the result; others are copied into their part.
  void emit_concat(const WorkItem& item);
  int add_box(int whole, const std::string& name, const TensorType& type, const std::vector<Dim>& offset);
  /// A box of the first part, or a view into one.
  bool moves(int index);
  /// The launches since `enter`.
  void emit_body(const ForParts::Attrs& loop);
  void launch_copy(int from, int to, const Node& node, const std::string& name);
  void launch_copy(const Value* from, int to, const Node& node, const std::string& name);
  /// A graph output that is a graph input, a constant, or another output under a second name.
  void emit_copy(const Value* from, int to);
  void choose_schedules();
};

}  // namespace opfuse
