// What a graph asks a program to do, in order: regions to launch, and values that may be views.
#pragma once

#include <memory>

#include "program/build.hpp"
#include "region/lower.hpp"

namespace opfuse {

enum class WorkKind {
  launch,     ///< `groups` are launched
  reshape,    ///< the result may be the operand's memory under another shape
  box,        ///< results may be boxes of the operand (slice with step 1, split)
  concat,     ///< operands may be boxes of the result
  reference,  ///< no kernel; allowed by option
  enter,      ///< what follows, up to `leave`, runs for each part (ir/for_parts.hpp)
  leave,
};

struct WorkItem {
  WorkKind kind = WorkKind::launch;
  const Node* node = nullptr;
  std::vector<LoweredGroup> groups{};
  const Value* whole = nullptr;             ///< box, concat
  std::vector<const Value*> parts{};        ///< box, concat: of it
  std::vector<std::vector<Dim>> offsets{};  ///< per part
  std::vector<LayoutWish> wishes{};         ///< launch: per group
};

/// Values that exist only between the launches of one node whose stages had to be separated.
using Temporaries = std::vector<std::unique_ptr<Value>>;

struct WorkList {
  Graph graph;  ///< a copy of the fused graph with declined groups split; items point into it
  Temporaries temporaries;
  std::vector<std::unique_ptr<Value>> cut{};  ///< parts of what a loop cuts: boxes, made by no node
  std::vector<WorkItem> items;
  std::vector<std::string> notes;
};

/// Only what the graph's outputs need. Throws as build_program does.
WorkList make_work_list(const Graph& fused_graph, const BuildOptions& options);

/// Regions of a node, several when its stages are independent of each other; declines are errors here.
std::vector<LoweredGroup> lowered(const Node& node, const BuildOptions& options);

/// Every stage a region of its own. Values between stages become temporaries in memory.
std::vector<LoweredGroup> separate_stages(LoweredGroup group, Temporaries& temporaries);

/// A region that copies a box of a value (empty offset: from its origin) to another place.
LoweredGroup copy_group(const Value* from, const Value* to, const Shape& shape, const std::vector<Dim>& offset = {});

}  // namespace opfuse
