// Steps of optimisers, element by element; R is the rate, T the number of steps so far. Operands and results are lists:
// all tensors, all gradients, then what the optimiser remembers of each.
//   Adagrad   H' = H + g^2;                     x' = x - R / (1 + T decay) g / (sqrt(H') + epsilon)
//   Momentum  V' = alpha V + (T > 0 ? beta : 1) g;    x' = x - R V', Nesterov's: x - R (g + alpha V')
//   Adam      V' = alpha V + (1 - alpha) g, H' = beta H + (1 - beta) g^2;  x' = x - R' V' / (sqrt(H') + epsilon)
// with g = gradient + norm x.
#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

class Optimiser {
 public:
  Optimiser(NodeImport& node, size_t remembered) : n(node), s(node), lists_(2 + remembered) {
    const size_t given = n.inputs.size();
    if (given < 2 + lists_ || (given - 2) % lists_ != 0)
      throw fail(E::arity_mismatch, "{} inputs cannot be two and {} lists of tensors", given, lists_);
    count_ = (given - 2) / lists_;
    rate = n.required(0);
    dtype = rate->type.dtype;
    steps = s.cast(n.required(1), dtype);
    norm_ = n.real("norm_coefficient", 0);
  }

  NodeImport& n;
  Speller s;
  Value *rate, *steps;
  DType dtype;

  Value* op(const char* name, Value* a, Value* b) { return s.op(name, {a, b}); }
  Value* number(double value) { return s.number(value, dtype); }
  Value* times(double factor, Value* x) { return op("mul", x, number(factor)); }
  Value* operand(size_t list, size_t i) { return n.required(2 + list * count_ + i); }
  Value* gradient(size_t i) {
    return norm_ == 0 ? operand(1, i) : op("add", times(norm_, operand(0, i)), operand(1, i));
  }
  /// Results of `each(i)`, a list of lists, all tensors first.
  template <class Each>
  Results run(Each&& each) {
    std::vector<Results> lists(lists_ - 1);
    for (size_t i = 0; i < count_; ++i) {
      const Results made = each(i);
      for (size_t k = 0; k < lists.size(); ++k) lists[k].push_back(made[k]);
    }
    Results all;
    for (const Results& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
  }

 private:
  size_t lists_, count_ = 0;
  double norm_ = 0;
};

}  // namespace

Results import_adagrad(NodeImport& n) {
  Optimiser o(n, 1);
  const double epsilon = n.real("epsilon", 1e-6), decay = n.real("decay_factor", 0);
  Value* rate = o.op("div", o.rate, o.op("add", o.number(1), o.times(decay, o.steps)));
  return o.run([&](size_t i) -> Results {
    Value* g = o.gradient(i);
    Value* squares = o.op("add", o.operand(2, i), o.op("mul", g, g));
    Value* root = o.op("add", o.s.op("sqrt", {squares}), o.number(epsilon));
    return {o.op("sub", o.operand(0, i), o.op("div", o.op("mul", rate, g), root)), squares};
  });
}

Results import_momentum(NodeImport& n) {
  Optimiser o(n, 1);
  const double alpha = n.real("alpha", 0), beta = n.real("beta", 0);
  const std::string mode = n.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov") throw fail(E::bad_attribute, "mode is \"{}\"", mode);
  Value* share = o.s.op("where", {o.op("greater", o.steps, o.number(0)), o.number(beta), o.number(1)});
  return o.run([&](size_t i) -> Results {
    Value* g = o.gradient(i);
    Value* v = o.op("add", o.times(alpha, o.operand(2, i)), o.op("mul", share, g));
    Value* step = mode == "nesterov" ? o.op("add", g, o.times(alpha, v)) : v;
    return {o.op("sub", o.operand(0, i), o.op("mul", o.rate, step)), v};
  });
}

Results import_adam(NodeImport& n) {
  Optimiser o(n, 2);
  const double alpha = n.real("alpha", 0.9), beta = n.real("beta", 0.999), epsilon = n.real("epsilon", 1e-6);
  const double after = n.real("norm_coefficient_post", 0);
  const auto missing = [&](double of) { return o.op("sub", o.number(1), o.op("pow", o.number(of), o.steps)); };
  Value* corrected = o.op("div", o.op("mul", o.rate, o.s.op("sqrt", {missing(beta)})), missing(alpha));
  Value* rate = o.s.op("where", {o.op("greater", o.steps, o.number(0)), corrected, o.rate});
  return o.run([&](size_t i) -> Results {
    Value* g = o.gradient(i);
    Value* v = o.op("add", o.times(alpha, o.operand(2, i)), o.times(1 - alpha, g));
    Value* h = o.op("add", o.times(beta, o.operand(3, i)), o.times(1 - beta, o.op("mul", g, g)));
    Value* root = o.op("add", o.s.op("sqrt", {h}), o.number(epsilon));
    Value* x = o.op("sub", o.operand(0, i), o.op("div", o.op("mul", rate, v), root));
    return {after == 0 ? x : o.times(1 - after, x), v, h};
  });
}

}  // namespace opfuse::onnx
