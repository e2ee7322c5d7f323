#include "cpu/emit/generic/segments.hpp"

#include <algorithm>
#include <map>

#include "cpu/operation_cost.hpp"
#include "kernel/reads.hpp"

namespace opfuse::cpu {
namespace {

constexpr int64_t kMostInTurns = 8;
constexpr int64_t kFewRegisters = 16;
constexpr double kLongestTurn = 2;  // of code that takes turns well, in functions as long as exp

bool computes_in_f64(ExprOp op) { return op == ExprOp::sin || op == ExprOp::cos || op == ExprOp::tan; }

/// Nodes after which nothing but their own value goes on: places in the order of `nodes`. Between two of them as many
/// functions as take turns well, at least one.
std::vector<size_t> cuts_of(const std::vector<Expr>& nodes) {
  std::map<const ExprNode*, size_t> last;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const Expr& arg : nodes[i].args()) last[arg.node()] = i;
  std::vector<size_t> cuts;
  size_t end = 0;  // the last use of any value so far
  double length = 0, here = 0;
  size_t possible = nodes.size();  // none
  for (size_t i = 0; i < nodes.size(); ++i) {
    length += weight_of(nodes[i]);
    const bool alone = end <= i && !nodes[i].args().empty() && nodes[i].dtype() == DType::f32 && !nodes[i].weak();
    if (possible < nodes.size() && length > kLongestTurn) {
      cuts.push_back(possible);
      length -= here;
      possible = nodes.size();
    }
    if (alone && length > 0) possible = i, here = length;
    if (!nodes[i].args().empty()) end = std::max(end, last[nodes[i].node()]);
  }
  return cuts;
}

/// What may lie where the result does is overwritten by the first loop.
bool reads_place(const Kernel& k, const Stage& segment) {
  const std::set<int> used = reads_used(segment.outputs[0].value);
  return std::any_of(used.begin(), used.end(), [&](int i) {
    return may_share_memory(k.spec.region, segment.reads[static_cast<size_t>(i)], segment.outputs[0]);
  });
}

}  // namespace

int64_t vectors_in_turns(const Expr& value, int64_t registers) {
  bool wide = registers <= kFewRegisters;
  value.visit([&](const Expr& e) { wide |= computes_in_f64(e.op()); });
  return wide ? kMostInTurns / 2 : kMostInTurns;
}

Segments segments_of(const Kernel& k, const StageEmitter& s) {
  const Stage& stage = s.stage;
  if (stage.outputs.size() != 1 || !stage.reductions.empty() || s.clips()) return {};
  const StageOutput& output = stage.outputs[0];
  const bool holds = output.param >= 0 && output.dtype == DType::f32 && output.value.dtype() == DType::f32;
  if (!holds) return {};
  const std::vector<Expr> nodes = nodes_of(output.value);
  std::vector<size_t> cuts = cuts_of(nodes);
  if (cuts.empty()) return {};
  cuts.push_back(nodes.size() - 1);
  const Expr again = Expr::read(static_cast<int>(stage.reads.size()), DType::f32);
  Segments segments;
  for (size_t i = 0; i < cuts.size(); ++i) {
    Stage segment = stage;
    segment.reads.push_back({-1, output.param, output.map});
    const Expr& value = nodes[cuts[i]];
    segment.outputs[0].value = i == 0 ? value : replaced(value, nodes[cuts[i - 1]], again);
    if (i > 0 && reads_place(k, segment)) return {};
    const auto is_same = [&](const Stage& s) { return s.outputs[0].value == segment.outputs[0].value; };
    const auto known = std::find_if(segments.stages.begin(), segments.stages.end(), is_same);
    segments.order.push_back(static_cast<size_t>(known - segments.stages.begin()));
    if (known == segments.stages.end()) segments.stages.push_back(std::move(segment));
  }
  return segments;
}

void emit_in_order(Kernel& k, const Segments& segments, const std::function<void(size_t stage)>& emit) {
  const std::vector<size_t>& order = segments.order;
  if (order.size() == segments.stages.size()) {
    std::for_each(order.begin(), order.end(), emit);
    return;
  }
  auto& b = k.b;
  const std::vector<uint32_t> stages(order.begin(), order.end());
  auto* numbers = llvm::ConstantDataArray::get(k.context(), llvm::ArrayRef(stages));
  auto* table = new llvm::GlobalVariable(*k.function->getParent(), numbers->getType(), true,
                                         llvm::GlobalValue::PrivateLinkage, numbers);
  k.loop(k.i64(0), k.i64(static_cast<int64_t>(order.size())), 1, [&](Value* i) {
    Value* number = b.CreateLoad(b.getInt32Ty(), b.CreateGEP(numbers->getType(), table, {k.i64(0), i}));
    auto* after = llvm::BasicBlock::Create(k.context(), "segments", k.function);
    auto* chosen = b.CreateSwitch(number, after, static_cast<unsigned>(segments.stages.size()));
    for (size_t stage = 0; stage < segments.stages.size(); ++stage) {
      auto* here = llvm::BasicBlock::Create(k.context(), "segment", k.function, after);
      chosen->addCase(b.getInt32(static_cast<uint32_t>(stage)), here);
      b.SetInsertPoint(here);
      emit(stage);
      b.CreateBr(after);
    }
    b.SetInsertPoint(after);
  });
}

}  // namespace opfuse::cpu
