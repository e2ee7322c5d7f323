// Evaluation on demand, from the root down with a memo, so that the branch a select does not choose is
// never touched: a guarded read outside its tensor is never performed.
#include "expr/evaluator.hpp"

#include <unordered_map>

#include "base/fail.hpp"
#include "expr/expr_node.hpp"
#include "tensor/number.hpp"

namespace opfuse {

Evaluator::Evaluator(const Expr& e) {
  std::unordered_map<const ExprNode*, int> position;
  e.visit([&](const Expr& node) {
    Step step{node, {}};
    for (const Expr& arg : node.args()) step.args.push_back(position.at(arg.node()));
    position.emplace(node.node(), static_cast<int>(steps_.size()));
    steps_.push_back(std::move(step));
  });
  OPFUSE_CHECK(!steps_.empty(), "an empty expression has no value");
}

ScalarValue Evaluator::operator()(Precision precision, const std::function<ScalarValue(const Expr&)>& leaf) const {
  thread_local std::vector<ScalarValue> values;
  thread_local std::vector<char> known;
  // Nested evaluation (a leaf that evaluates another expression) stacks above this one's part.
  const size_t base = values.size();
  values.resize(base + steps_.size());
  known.resize(base + steps_.size());
  std::fill(known.begin() + static_cast<std::ptrdiff_t>(base), known.end(), 0);
  struct Release {
    size_t base;
    ~Release() { values.resize(base), known.resize(base); }
  } release{base};

  auto typed = [&](ScalarValue v) {
    if (precision == Precision::typed && is_float(v.dtype)) v.real = round_to(v.dtype, v.real);
    return v;
  };
  auto run = [&](auto& self, int at) -> ScalarValue {
    const size_t slot = base + static_cast<size_t>(at);
    if (known[slot]) return values[slot];
    const Step& step = steps_[static_cast<size_t>(at)];
    ScalarValue v;
    if (step.e.op() == ExprOp::constant) {
      v = typed({step.e.dtype(), step.e.node()->real, step.e.node()->integer});
    } else if (step.args.empty()) {
      v = typed(leaf(step.e));
    } else if (step.e.op() == ExprOp::select) {
      v = self(self, self(self, step.args[0]).integer != 0 ? step.args[1] : step.args[2]);
    } else {
      std::vector<ScalarValue> args;
      args.reserve(step.args.size());
      for (int arg : step.args) args.push_back(self(self, arg));
      v = evaluate_op(step.e.op(), step.e.dtype(), args, precision);
    }
    values[slot] = v;
    known[slot] = 1;
    return v;
  };
  return run(run, static_cast<int>(steps_.size()) - 1);
}

ScalarValue evaluate(const Expr& e, Precision precision, const std::function<ScalarValue(const Expr&)>& leaf) {
  return Evaluator(e)(precision, leaf);
}

}  // namespace opfuse
