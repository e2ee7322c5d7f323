// Each intermediate of rank 4 (or one that a kernel wishes so) is dense (label 0) or has its channels in
// blocks of a vector, on GPUs last (label 1). The channels are axis 1, or the last axis where a kernel wishes so
// (images whose channels are last, before or after a transpose inside a kernel). Costs, in bytes that are moved
// awkwardly:
//   a kernel's wish not met         LayoutWish::reads times for an operand, twice for a result (strided stores)
//   padding lanes                   written and read
//   elementwise maps                where operand and result differ
//   reshape, slice, concat          a copy where the labels forbid a view
// All costs are unary or pairwise with equal labels free, so the minimum cut is the exact optimum. Where a region has
// no kernel under its labels, its buffers become dense and the cut is made again: then the others pay for their wishes.
#include "program/assign_layouts.hpp"

#include "program/layout_facts.hpp"
#include "program/min_cut.hpp"
#include "region/single_stage.hpp"
#include "tensor/tf32.hpp"

namespace opfuse {
namespace {

/// Axis 1 innermost.
Layout channels_last(size_t rank) {
  Layout layout = Layout::dense(rank);
  layout.order.erase(layout.order.begin() + 1);
  layout.order.push_back(1);
  return layout;
}

/// Codes and bf16 factors elsewhere than their kernel wants them are many times slower.
constexpr int64_t kPacked = 64;

/// Bytes that no other cost outweighs.
constexpr int64_t kNever = int64_t{1} << 50;

/// Stands for a symbolic extent when costs are compared.
constexpr int64_t kTypicalExtent = 8;

class Assigner {
 public:
  Assigner(Program& program, WorkList& work, const std::map<const Value*, int>& buffers, const TargetInfo& target,
           const TakesLayouts& takes, const std::set<std::string>& outputs_in_blocks)
      : program_(program),
        work_(work),
        buffers_(buffers),
        target_(target),
        takes_(takes),
        outputs_in_blocks_(outputs_in_blocks),
        labels_(count()) {
    std::set<std::string> names(program.symbols.begin(), program.symbols.end());
    for (const std::string& name : names) symbols_[name] = kTypicalExtent;
    free_.resize(program.buffers.size(), 0);
    channel_.resize(program.buffers.size(), 1);
    block_.resize(program.buffers.size(), target.lanes_f32());
  }

  void run() {
    if (target_.traits.channel_blocks) find_channels(), find_blocks();
    const std::vector<char> wished = this->wished();
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      const bool image = buffer.type.shape.rank() == 4 || (buffer.type.shape.rank() > 2 && wished[i]);
      free_[i] = is_ours(buffer) && fast_type(buffer.type.dtype) && image && channels(i).is_constant() &&
                 channels(i).value() > 1;
    }
    for (size_t i = 0; i < free_.size(); ++i)
      if (free_[i])
        labels_.add_cost(static_cast<int>(i), 1, 2 * (bytes(static_cast<int>(i), true) - bytes(static_cast<int>(i))));
    for (const WorkItem& item : work_.items) add_item(item);
    std::vector<char> labels = labels_.solve();
    while (keep_dense_what_no_kernel_takes(labels)) labels = labels_.solve();
    for (size_t i = 0; i < free_.size(); ++i)
      if (free_[i] && labels[i]) program_.buffers[i].layout = blocked(static_cast<int>(i));
  }

 private:
  Program& program_;
  WorkList& work_;
  const std::map<const Value*, int>& buffers_;
  const TargetInfo& target_;
  const TakesLayouts& takes_;
  const std::set<std::string>& outputs_in_blocks_;
  TwoLabels labels_;
  SymbolValues symbols_;
  std::vector<char> free_;      ///< may be blocked
  std::vector<int> channel_;    ///< axis of the channels
  std::vector<int64_t> block_;  ///< channels of a block

  int count() const { return static_cast<int>(program_.buffers.size()); }
  const Buffer& buffer(int index) const { return program_.buffers[static_cast<size_t>(index)]; }
  /// What the fast kernels read: f32, 16 bits and bytes on CPUs, 16 bits and tf32 on tensor cores.
  bool fast_type(DType d) const {
    if (!target_.traits.channel_blocks) return d == DType::f16 || d == DType::bf16 || d == kTf32;
    return d == DType::f32 || d == DType::bf16 || d == DType::f16 || byte_size(d) == 1;
  }
  /// Operands that only one kernel takes, where they lie as it wishes.
  bool packed(DType d) const {
    return target_.traits.channel_blocks && (d == DType::u8 || d == DType::i8 || d == DType::bf16);
  }
  Layout blocked(int index) const {
    const size_t rank = buffer(index).type.shape.rank();
    return target_.traits.channel_blocks
               ? Layout::channels_blocked(rank, channel_axis(index), block_[static_cast<size_t>(index)])
               : channels_last(rank);
  }
  bool is_ours(const Buffer& b) const {
    if (b.kind == BufferKind::output) return program_.symbols.empty() && outputs_in_blocks_.contains(b.name);
    return b.kind == BufferKind::intermediate;
  }
  int channel_axis(int index) const { return channel_[static_cast<size_t>(index)]; }
  const Dim& channels(size_t index) const {
    return program_.buffers[index].type.shape[static_cast<size_t>(channel_[index])];
  }
  /// Images, and rows of features, whose last axis some kernel wants in blocks, and none axis 1.
  void find_channels() {
    std::vector<char> last(channel_.size(), 0), second(channel_.size(), 0);
    for (const WorkItem& item : work_.items)
      for (size_t g = 0; g < item.wishes.size(); ++g)
        for (size_t p = 0; p < item.wishes[g].params.size(); ++p) {
          const int index = find(item.groups[g].operands[p].value);
          const auto& wish = item.wishes[g].params[p];
          if (index < 0 || !wish || buffer(index).type.shape.rank() < 3) continue;
          const std::vector<Block>& blocks = wish->blocks;
          if (blocks.size() != 1) continue;
          if (blocks[0].axis + 1 == static_cast<int>(buffer(index).type.shape.rank()))
            last[static_cast<size_t>(index)] = 1;
          if (blocks[0].axis == 1) second[static_cast<size_t>(index)] = 1;
        }
    share_wishes(last, second);
    for (size_t i = 0; i < channel_.size(); ++i)
      if (last[i] && !second[i]) channel_[i] = static_cast<int>(program_.buffers[i].type.shape.rank()) - 1;
  }
  /// Blocks are as large as some reader wishes (rows of matrix registers), where no channel is padding then. What takes
  /// smaller ones takes whole multiples. Parts of a tensor, and results of one loop nest, lie alike.
  void find_blocks() {
    for (const WorkItem& item : work_.items)
      for (size_t g = 0; g < item.wishes.size(); ++g)
        for (size_t p = 0; p < item.wishes[g].params.size(); ++p) {
          const auto& wish = item.wishes[g].params[p];
          const int index = find(item.groups[g].operands[p].value);
          if (index < 0 || !wish || item.groups[g].region.params[p].role != ParamRole::input) continue;
          if (wish->blocks.size() != 1 || wish->blocks[0].axis != channel_axis(index)) continue;
          const auto all = channels(static_cast<size_t>(index)).constant();
          int64_t& block = block_[static_cast<size_t>(index)];
          if (all && *all % wish->blocks[0].factor == 0) block = std::max(block, wish->blocks[0].factor);
        }
    shrink_blocks();
    for (bool changed = true; changed;) {
      changed = false;
      for (const WorkItem& item : work_.items)
        for (size_t i = 0; i < item.parts.size(); ++i)
          changed |= raise_block_of_box(find(item.whole), find(item.parts[i]), item.offsets[i]);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const WorkItem& item : work_.items) {
        for (size_t i = 0; i < item.parts.size(); ++i)
          changed |= share_block_of_box(find(item.whole), find(item.parts[i]), item.offsets[i]);
        if (item.kind == WorkKind::reshape)
          changed |= share_block(find(item.node->input(0)), find(item.node->output()));
        for (const LoweredGroup& group : item.groups) changed |= share_blocks_of_results(group);
      }
    }
    for (WorkItem& item : work_.items)
      for (size_t g = 0; g < item.wishes.size(); ++g)
        if (!item.wishes[g].narrow.empty() && !lies_as_wished(item.groups[g], item.wishes[g]))
          item.wishes[g].params = item.wishes[g].narrow;
  }
  /// The few channels of a first image, which a map stores and all that wish something of it wish in less than a
  /// vector.
  void shrink_blocks() {
    std::vector<int64_t> most(block_.size(), 0);
    std::vector<char> by_map(block_.size(), 1);
    for (const WorkItem& item : work_.items)
      for (size_t g = 0; g < item.wishes.size(); ++g) {
        const Region& region = item.groups[g].region;
        const bool map = is_single_stage(region) && region.stages[0].anchor == Anchor::map;
        for (size_t p = 0; p < item.wishes[g].params.size(); ++p) {
          const int index = find(item.groups[g].operands[p].value);
          if (index < 0) continue;
          if (region.params[p].role == ParamRole::output && !map) by_map[static_cast<size_t>(index)] = 0;
          const auto& wish = item.wishes[g].params[p];
          if (!wish || wish->blocks.size() != 1 || wish->blocks[0].axis != channel_axis(index)) continue;
          most[static_cast<size_t>(index)] = std::max(most[static_cast<size_t>(index)], wish->blocks[0].factor);
        }
      }
    for (size_t i = 0; i < block_.size(); ++i) {
      if (!by_map[i] || most[i] == 0 || most[i] >= block_[i]) continue;
      const auto all = channels(i).constant();
      if (all && *all <= most[i]) block_[i] = most[i];
    }
  }
  /// Blocks of what a group reads are as large as it wishes.
  bool lies_as_wished(const LoweredGroup& group, const LayoutWish& wish) const {
    for (size_t p = 0; p < wish.params.size(); ++p) {
      const int index = find(group.operands[p].value);
      if (index < 0 || !wish.params[p] || group.region.params[p].role != ParamRole::input) continue;
      if (wish.params[p]->blocks.size() == 1 && blocked(index).blocks[0].factor % wish.params[p]->blocks[0].factor != 0)
        return false;
    }
    return true;
  }
  /// The smaller block becomes that of both.
  bool share_block(int a, int b) {
    if (a < 0 || b < 0) return false;
    int64_t &x = block_[static_cast<size_t>(a)], &y = block_[static_cast<size_t>(b)];
    if (x == y) return false;
    x = y = std::min(x, y);
    return true;
  }
  /// The larger block becomes that of both where the part stays a view.
  bool raise_block_of_box(int whole, int part, const std::vector<Dim>& offset) {
    if (whole < 0 || part < 0) return false;
    int64_t &x = block_[static_cast<size_t>(whole)], &y = block_[static_cast<size_t>(part)];
    if (x == y) return false;
    const int64_t before[] = {x, y}, larger = std::max(x, y);
    const auto divides = [&](int index) {
      const auto all = channels(static_cast<size_t>(index)).constant();
      return all && *all % larger == 0;
    };
    x = y = larger;
    if (divides(whole) && divides(part) &&
        box_fits_blocks(blocked(whole), buffer(whole).type.shape, offset, buffer(part).type.shape))
      return true;
    x = before[0], y = before[1];
    return false;
  }
  /// Larger blocks than a vector's would make a copy of a part that is a view; smaller ones stay.
  bool share_block_of_box(int whole, int part, const std::vector<Dim>& offset) {
    if (whole < 0 || part < 0) return false;
    int64_t& block = block_[static_cast<size_t>(whole)];
    const bool changed = share_block(whole, part);
    if (block <= target_.lanes_f32() ||
        box_fits_blocks(blocked(whole), buffer(whole).type.shape, offset, buffer(part).type.shape))
      return changed;
    block = target_.lanes_f32();
    return share_block(whole, part) || changed;
  }
  /// Lanes of a plain nest run along one block of all results; register tiles store each in blocks of its own.
  static bool is_plain_nest(const Stage& stage) {
    return stage.anchor != Anchor::contraction && stage.anchor != Anchor::window;
  }
  bool share_blocks_of_results(const LoweredGroup& group) {
    bool changed = false;
    for (const Stage& stage : group.region.stages) {
      if (!is_plain_nest(stage)) continue;
      std::vector<int> stored;
      for (const StageOutput& o : stage.outputs)
        if (o.param >= 0) stored.push_back(find(group.operands[static_cast<size_t>(o.param)].value));
      std::erase(stored, -1);
      for (int pass = 0; pass < 2; ++pass)  // the smallest comes to the first, and from there to all
        for (const int other : stored) changed |= share_block(stored.front(), other);
    }
    return changed;
  }
  /// A kernel that wishes blocks takes multiples of them.
  static bool meets(const Layout& lies, const Layout& wish) {
    if (lies == wish) return true;
    return lies.blocks.size() == 1 && wish.blocks.size() == 1 && lies.blocks[0].axis == wish.blocks[0].axis &&
           lies.order == wish.order && lies.blocks[0].factor % wish.blocks[0].factor == 0;
  }
  /// A part that no kernel has a wish for is stored as its whole, and the other way around.
  void share_wishes(std::vector<char>& last, std::vector<char>& second) const {
    const auto share = [&](const Value* a, const Value* b) {
      const int i = find(a), j = find(b);
      if (i < 0 || j < 0) return;
      const auto from = static_cast<size_t>(i), to = static_cast<size_t>(j);
      if (!last[to] && !second[to]) last[to] = last[from], second[to] = second[from];
    };
    for (const WorkItem& item : work_.items) {
      for (const Value* part : item.parts) share(item.whole, part), share(part, item.whole);
    }
  }
  int find(const Value* value) const {
    const auto it = buffers_.find(value);
    return it == buffers_.end() ? -1 : it->second;
  }

  int64_t bytes(int index, bool padded = false) const {
    const Buffer& b = buffer(index);
    const Dim elements = padded ? blocked(index).physical_elements(b.type.shape) : b.type.shape.elements();
    return elements.evaluate(symbols_) * static_cast<int64_t>(byte_size(b.type.dtype));
  }

  void cost(int index, int label, int64_t amount) {
    if (index >= 0 && free_[static_cast<size_t>(index)]) labels_.add_cost(index, label, amount);
  }
  /// Paid when one is dense and the other blocked; what is not free is dense.
  void differ(int a, int b, int64_t amount) {
    if (a < 0 || b < 0) return;
    if (!free_[static_cast<size_t>(a)]) return cost(b, 1, amount);
    if (!free_[static_cast<size_t>(b)]) return cost(a, 1, amount);
    labels_.add_edge(a, b, amount);
  }

  /// Buffers of a region that has no kernel under these labels: the others pay for what they wished.
  bool keep_dense_what_no_kernel_takes(const std::vector<char>& labels) {
    bool changed = false;
    for (const WorkItem& item : work_.items)
      for (size_t g = 0; g < item.wishes.size(); ++g) {
        const LoweredGroup& group = item.groups[g];
        const std::vector<Layout> layouts = layouts_of(group, item.wishes[g], labels);
        const bool any = item.wishes[g].any && alike(group.region, layouts, true);
        if (alike(group.region, layouts, false) && (any || takes_(group.region, layouts))) continue;
        for (const LoweredOperand& operand : group.operands)
          if (const int index = find(operand.value); is_blocked(index, labels)) {
            free_[static_cast<size_t>(index)] = 0;
            labels_.add_cost(index, 1, kNever);
            changed = true;
          }
      }
    return changed;
  }
  /// Results of one loop nest have the same blocks; `all`: of register tiles too, else these may differ in size.
  static bool alike(const Region& region, const std::vector<Layout>& layouts, bool all) {
    for (const Stage& stage : region.stages) {
      const std::vector<Block>* blocks = nullptr;
      for (const StageOutput& output : stage.outputs) {
        if (output.param < 0) continue;
        const std::vector<Block>& own = layouts[static_cast<size_t>(output.param)].blocks;
        const bool sizes = all || is_plain_nest(stage);
        if (blocks && !(sizes ? *blocks == own : along_same(*blocks, own))) return false;
        blocks = &own;
      }
    }
    return true;
  }
  static bool along_same(const std::vector<Block>& a, const std::vector<Block>& b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](const Block& x, const Block& y) { return x.axis == y.axis; });
  }
  bool is_blocked(int index, const std::vector<char>& labels) const {
    return index >= 0 && free_[static_cast<size_t>(index)] && labels[static_cast<size_t>(index)];
  }
  std::vector<Layout> layouts_of(const LoweredGroup& group, const LayoutWish& wish,
                                 const std::vector<char>& labels) const {
    std::vector<Layout> layouts;
    for (size_t p = 0; p < group.region.params.size(); ++p) {
      const Param& param = group.region.params[p];
      const int index = param.role == ParamRole::constant ? -1 : find(group.operands[p].value);
      const Layout dense = Layout::dense(param.type.shape.rank());
      layouts.push_back(param.role == ParamRole::constant ? wish.params[p].value_or(dense)
                        : is_blocked(index, labels)       ? blocked(index)
                                                          : dense);
    }
    return layouts;
  }

  /// By buffer: blocks of its own are what some kernel wishes, where it has rows of channels.
  std::vector<char> wished() const {
    std::vector<char> wished(program_.buffers.size(), 0);
    for (const WorkItem& item : work_.items)
      for (size_t g = 0; g < item.wishes.size(); ++g)
        for (size_t p = 0; p < item.wishes[g].params.size(); ++p) {
          const int index = item.wishes[g].params[p] ? find(item.groups[g].operands[p].value) : -1;
          if (index >= 0 && buffer(index).type.shape.rank() > 2 && meets(blocked(index), *item.wishes[g].params[p]))
            wished[static_cast<size_t>(index)] = 1;
        }
    return wished;
  }

  void add_item(const WorkItem& item) {
    switch (item.kind) {
      case WorkKind::launch:
        for (size_t g = 0; g < item.groups.size(); ++g) {
          add_group(item.groups[g], item.wishes[g]);
          if (!item.groups[g].step_operands.empty()) keep_rows(item.groups[g]);
        }
        break;
      case WorkKind::reshape:
        add_reshape(find(item.node->input(0)), find(item.node->output()));
        break;
      case WorkKind::box:
      case WorkKind::concat:
        for (size_t i = 0; i < item.parts.size(); ++i) add_box(find(item.whole), find(item.parts[i]), item.offsets[i]);
        break;
      case WorkKind::enter:
      case WorkKind::leave:
        break;
      case WorkKind::reference:
        for (const Value* value : item.node->inputs) cost(find(value), 1, kNever);
        for (const Value* value : item.node->outputs) cost(find(value), 1, kNever);
        break;
    }
  }

  /// Slices of a loop, and what takes their place in its first step, lie alike.
  void keep_rows(const LoweredGroup& group) {
    for (const LoweredOperand& operand : group.operands)
      if (operand.value) cost(find(operand.value), 1, kNever);
  }

  void add_reshape(int from, int to) {
    if (from < 0 || to < 0) return;
    if (buffer(from).type.shape == buffer(to).type.shape) return differ(from, to, 2 * bytes(from));
    for (int index : {from, to})
      if (free_[static_cast<size_t>(index)] && !stores_row_major(blocked(index), buffer(index).type.shape))
        cost(index, 1, 2 * bytes(index));
  }

  void add_box(int whole, int part, const std::vector<Dim>& offset) {
    if (whole < 0 || part < 0) return;
    differ(whole, part, 2 * bytes(part));
    if (!free_[static_cast<size_t>(whole)]) return;
    if (!box_fits_blocks(blocked(whole), buffer(whole).type.shape, offset, buffer(part).type.shape))
      cost(whole, 1, 2 * bytes(part));
  }

  void add_group(const LoweredGroup& group, const LayoutWish& wished) {
    const std::vector<std::optional<Layout>>& wish = wished.params;
    for (size_t p = 0; p < wish.size(); ++p) {
      const int index = find(group.operands[p].value);
      if (!wish[p] || index < 0 || group.region.params[p].role == ParamRole::constant) continue;
      const bool result = group.region.params[p].role == ParamRole::output;
      if (result && !wished.writes_padding) {
        cost(index, 1, kNever);
        continue;
      }
      const int64_t weight = (result ? 2 : wished.reads_of(p)) * (packed(buffer(index).type.dtype) ? kPacked : 1);
      cost(index, meets(blocked(index), *wish[p]) ? 0 : 1, weight * bytes(index));
    }
    for (const Stage& stage : group.region.stages) {
      if (stage.outputs.size() > 1) keep_together(group, stage);
      if (stage.anchor == Anchor::scatter)
        for (const StageOutput& output : stage.outputs)
          cost(find(group.operands[static_cast<size_t>(output.param)].value), 1, kNever);
      else if (stage.anchor == Anchor::map || stage.anchor == Anchor::row)
        add_stage(group, stage, wish);
    }
  }

  /// The domain axis that the channel dimension of a buffer is in a map, or -1.
  int domain_channel(int index, const IndexMap& map, const Stage& stage) const {
    if (map.dims.size() < 3 || index < 0) return -1;
    const IndexExpr& dim = map.dims[static_cast<size_t>(channel_axis(index))];
    if (dim.dynamic || dim.terms.size() != 1 || !(dim.offset == Dim(0))) return -1;
    const IndexTerm& term = dim.terms[0];
    const bool plain = term.coef == Dim(1) && term.div == Dim(1) && term.mod == Dim(0);
    return plain && term.axis < static_cast<int>(stage.domain.size()) ? term.axis : -1;
  }

  /// Results of one loop nest lie alike.
  void keep_together(const LoweredGroup& group, const Stage& stage) {
    int first = -1;
    for (const StageOutput& output : stage.outputs) {
      const int result = output.param < 0 ? -1 : find(group.operands[static_cast<size_t>(output.param)].value);
      if (result < 0) continue;
      if (first >= 0) differ(first, result, kNever);
      first = result;
    }
  }

  /// Maps and rows: operands and results should agree where both have the channels on one axis; where the
  /// channels are taken apart, dense is easier.
  void add_stage(const LoweredGroup& group, const Stage& stage, const std::vector<std::optional<Layout>>& wish) {
    for (const StageOutput& output : stage.outputs) {
      if (output.param < 0) continue;
      const int result = find(group.operands[static_cast<size_t>(output.param)].value);
      const int axis = domain_channel(result, output.map, stage);
      bool related = false;
      for (const Read& read : stage.reads) {
        if (read.stage >= 0) continue;
        const int operand = find(group.operands[static_cast<size_t>(read.index)].value);
        if (operand < 0) continue;
        if (axis >= 0 && domain_channel(operand, read.map, stage) == axis) {
          differ(operand, result, bytes(operand));
          related = true;
        } else if (!wish_of(wish, read.index)) {
          cost(operand, 1, bytes(operand));
        }
      }
      if (!related && result >= 0 && !wish_of(wish, output.param)) cost(result, 1, bytes(result));
    }
  }
  static bool wish_of(const std::vector<std::optional<Layout>>& wish, int param) {
    return static_cast<size_t>(param) < wish.size() && wish[static_cast<size_t>(param)].has_value();
  }
};

}  // namespace

void assign_layouts(Program& program, WorkList& work, const std::map<const Value*, int>& buffers,
                    const TargetInfo& target, const TakesLayouts& takes,
                    const std::set<std::string>& outputs_in_blocks) {
  Assigner(program, work, buffers, target, takes, outputs_in_blocks).run();
}

}  // namespace opfuse
