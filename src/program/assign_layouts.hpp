// Layouts of a program's intermediates: dense, or channels in blocks of a vector.
#pragma once

#include <map>
#include <set>
#include <string>

#include "program/work_list.hpp"

namespace opfuse {

/// Whether there is a kernel of a region whose parameters lie so.
using TakesLayouts = std::function<bool(const Region&, const std::vector<Layout>&)>;

/// Chooses the layout of every intermediate buffer so that the bytes that kernels must convert, and the
/// copies that views would save, are least over the whole program, among layouts of which every region has a kernel.
/// `buffers` maps values to buffers. Outputs stay dense, but for those named in `outputs_in_blocks`. Wishes for blocks
/// that others do not allow become those for a vector's.
void assign_layouts(Program& program, WorkList& work, const std::map<const Value*, int>& buffers,
                    const TargetInfo& target, const TakesLayouts& takes,
                    const std::set<std::string>& outputs_in_blocks = {});

}  // namespace opfuse
