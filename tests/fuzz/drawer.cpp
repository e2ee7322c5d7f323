// The pool holds every value with its data. A candidate node is inferred, interpreted and measured before it stays:
//   reals: finite, below 1000 (of f16: 200), not all the same;
//   exact graphs: multiples of 2^-p below 2^q with p + q <= 20 (f16: 9), and the same for sums of magnitudes.
#include "fuzz/drawer.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "fuzz/exactness.hpp"
#include "interp/interpreter.hpp"
#include "ops/registry.hpp"

namespace opfuse::fuzz {
namespace {

constexpr int64_t kMaxElements = 20'000;

double most(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? 200 : 1000; }

}  // namespace

Drawer::Drawer(uint64_t seed, DrawOptions options) : options_(options), random_(seed, "fuzz") {
  graph_.name = fmt::format("seed{}", seed);
  add_inputs();
}

int64_t Drawer::extent() {
  if (options_.zero && chance(0.1)) return 0;
  return one_of<int64_t>({1, 1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 19, 24, 32, 33});
}

double Drawer::number() {
  if (options_.exact) return static_cast<double>(between(-2, 2)) * (chance(0.2) ? 0.5 : 1);
  return random_.normal() * 0.5;
}

void Drawer::add_input(std::vector<Dim> dims, DType dtype) {
  const Shape shape(std::move(dims));
  if (Shape::of(shape.evaluate(symbols_)).elements().value() > kMaxElements) return;
  Value* value = graph_.add_input(fmt::format("x{}", graph_.inputs().size()), {dtype, shape});
  Tensor data(is_float(dtype) ? DType::f64 : dtype, shape.evaluate(symbols_));
  for (int64_t i = 0; i < data.elements(); ++i) {
    if (dtype == DType::boolean)
      data.set_integer(i, between(0, 1));
    else if (is_float(dtype))
      data.set_real(i, options_.exact ? static_cast<double>(between(-4, 4)) : random_.normal());
    else
      data.set_integer(i, between(0, 9));
  }
  pool_.push_back(measure(value, std::move(data)));
}

void Drawer::add_inputs() {
  if (options_.open) symbols_ = {{"n", one_of<int64_t>({1, 2, 3, 5})}, {"s", one_of<int64_t>({1, 4, 7, 8, 13})}};
  const auto leading = [&]() -> Dim { return options_.open && chance(0.8) ? Dim::symbol("n") : Dim(between(1, 3)); };
  const auto inner = [&]() -> Dim { return options_.open && chance(0.4) ? Dim::symbol("s") : Dim(extent()); };
  const int64_t channels = one_of<int64_t>({1, 2, 3, 4, 8, 12, 16, 17, 24, 32});
  const std::vector<Dim> image{leading(), channels, inner(), inner()};
  const std::vector<Dim> rows{leading(), inner(), Dim(one_of<int64_t>({1, 4, 7, 8, 16, 31, 32}))};
  const int64_t kind = between(0, 3);
  if (kind != 1) add_input(image, options_.type);
  if (kind != 0) add_input(rows, options_.type);
  if (kind == 3 || chance(0.4)) add_input(chance(0.5) && kind != 1 ? image : rows, options_.type);
  if (chance(0.2)) add_input({leading(), inner()}, options_.type);
  if (chance(0.2)) add_input({Dim(extent())}, options_.type);
  if (chance(0.15)) add_input({leading(), inner()}, chance(0.5) ? DType::i64 : DType::i32);
  if (chance(0.1)) add_input({leading(), inner()}, chance(0.5) ? DType::boolean : DType::u8);
  if (chance(0.08)) add_input({inner(), Dim(extent()), Dim(2), inner(), Dim(3)}, options_.type);
  if (graph_.inputs().empty()) add_input({Dim(2), Dim(8)}, options_.type);  // all were too large
}

Known Drawer::measure(Value* value, Tensor data) const {
  Known known{value, std::move(data)};
  for (int64_t i = 0; i < known.data.elements(); ++i) {
    const double x = known.data.real(i);
    known.low = i == 0 ? x : std::min(known.low, x);
    known.high = i == 0 ? x : std::max(known.high, x);
    known.least = i == 0 ? std::abs(x) : std::min(known.least, std::abs(x));
  }
  return known;
}

const Known& Drawer::known(const Value* value) const {
  for (const std::deque<Known>* list : {&pool_, &constants_})
    for (const Known& k : *list)
      if (k.value == value) return k;
  throw fail(E::internal, "a value that was not drawn");
}

const Known* Drawer::pick(const std::function<bool(const Known&)>& fits) {
  std::vector<Known*> found;
  for (Known& known : pool_)
    if (fits(known)) found.push_back(&known);
  if (found.empty()) return nullptr;
  std::vector<Known*> fresh;
  for (Known* known : found)
    if (known->reads == 0) fresh.push_back(known);
  if (!fresh.empty() && chance(0.5)) return one_of(fresh);
  const int64_t last = static_cast<int64_t>(found.size()) - 1;
  return found[static_cast<size_t>(chance(0.5) ? between(std::max<int64_t>(0, last - 4), last) : between(0, last))];
}

const Known* Drawer::pick_real(size_t min_rank, size_t max_rank) {
  return pick([&](const Known& k) { return k.real() && k.rank() >= min_rank && k.rank() <= max_rank; });
}

Value* Drawer::filled(const std::vector<int64_t>& sizes, DType dtype, const std::function<double(int64_t)>& element) {
  Tensor data(dtype, sizes);
  for (int64_t i = 0; i < data.elements(); ++i) {
    if (is_float(dtype))
      data.set_real(i, element(i));
    else
      data.set_integer(i, static_cast<int64_t>(element(i)));
  }
  Value* value = graph_.add_constant(data, fmt::format("c{}", named_++));
  constants_.push_back(measure(value, is_float(dtype) ? data.cast(DType::f64) : data));
  return value;
}

Value* Drawer::constant(const std::vector<int64_t>& sizes, DType dtype) {
  return filled(sizes, dtype, [&](int64_t) { return number(); });
}

Value* Drawer::constant(const std::vector<int64_t>& sizes, DType dtype, double low, double high) {
  if (!options_.exact) return filled(sizes, dtype, [&](int64_t) { return inside(low, high); });
  const auto from = static_cast<int64_t>(std::ceil(low)), to = static_cast<int64_t>(std::floor(high));
  return filled(sizes, dtype, [&](int64_t) { return static_cast<double>(between(from, std::max(from, to))); });
}

Value* Drawer::integers(const std::vector<int64_t>& values) {
  return filled({static_cast<int64_t>(values.size())}, DType::i64,
                [&](int64_t i) { return static_cast<double>(values[static_cast<size_t>(i)]); });
}

Value* Drawer::scalar(DType dtype, double value) {
  return filled({}, dtype, [&](int64_t) { return value; });
}

bool Drawer::acceptable(const Known& result) {
  const int64_t n = result.data.elements();
  if (n > kMaxElements || (n == 0 && !options_.zero)) return false;
  if (!result.real()) return true;
  for (int64_t i = 0; i < n; ++i)
    if (!std::isfinite(result.data.real(i))) return false;
  if (result.magnitude() > most(result.dtype())) return false;
  if (n > 1 && result.low == result.high && chance(0.9)) return false;
  return !options_.exact || bits_needed(result.data) <= exact_bits(result.dtype());
}

/// Whether operands that are a little different give results that differ by much.
bool Drawer::leaps(const Node& node, const std::vector<const Tensor*>& operands, const std::vector<Tensor>& results) {
  for (int round = 0; round < 4; ++round) {
    std::vector<Tensor> moved;
    for (size_t k = 0; k < operands.size(); ++k) {
      const Tensor* operand = operands[k];
      moved.push_back(operand ? operand->clone() : Tensor());
      if (!operand || operand->dtype() != DType::f64 || node.inputs[k]->is_constant()) continue;
      const double step = options_.type == DType::f32 ? 1e-4 : 1e-2;
      for (int64_t i = 0; i < operand->elements(); ++i)
        moved.back().set_real(i,
                              operand->real(i) + step * (random_.uniform() - 0.5) * (1 + std::abs(operand->real(i))));
    }
    std::vector<const Tensor*> pointers;
    for (size_t i = 0; i < operands.size(); ++i) pointers.push_back(operands[i] ? &moved[i] : nullptr);
    const std::vector<Tensor> again = interpret_node(node, pointers, {.symbols = symbols_, .keep_exact = true});
    for (size_t i = 0; i < results.size(); ++i)
      for (int64_t k = 0; k < results[i].elements(); ++k)
        if (std::abs(results[i].real(k) - again[i].real(k)) > 0.1 * (1 + std::abs(results[i].real(k)))) return true;
  }
  return false;
}

Node* Drawer::add(const char* op, const AttrMap& attrs, const std::vector<Value*>& inputs, size_t outputs, bool jumps) {
  Node* node = nullptr;
  std::vector<Known> results;
  bool kept = false;
  try {
    node = graph_.add_node(op_named(op), attrs, inputs, outputs, {Source{fmt::format("n{}", named_), op, "", 0}});
    std::vector<const Tensor*> operands;
    for (const Value* value : inputs) operands.push_back(value ? &known(value).data : nullptr);
    const std::vector<Tensor> data = interpret_node(*node, operands, {.symbols = symbols_, .keep_exact = true});
    for (size_t i = 0; i < outputs; ++i) results.push_back(measure(node->outputs[i], data[i]));
    kept = std::all_of(results.begin(), results.end(), [&](const Known& k) { return acceptable(k); }) &&
           (!options_.exact || sums_stay_exact(*node, operands, symbols_)) &&
           (!jumps || options_.exact || !leaps(*node, operands, data));
  } catch (const Error& error) {
    if (error.diagnostic().name == "internal") throw;
  }
  if (!kept) {
    if (node) graph_.erase(node);
    return nullptr;
  }
  for (const Value* value : inputs)
    for (Known& k : pool_)
      if (k.value == value) ++k.reads;
  for (Known& result : results) {
    result.value->name = fmt::format("v{}", named_++);
    pool_.push_back(std::move(result));
  }
  return node;
}

Drawn Drawer::finish() {
  std::vector<Value*> outputs;
  for (const Known& known : pool_)
    if (known.value->producer && outputs.size() < 12 && (known.reads == 0 || chance(0.04)))
      outputs.push_back(known.value);
  if (outputs.empty()) {
    for (const Known& known : pool_)
      if (known.value->producer) outputs = {known.value};
    if (outputs.empty() && !pool_.empty()) {  // nothing fitted: extents of 0 allow little
      Node* node = graph_.add_node(op_named("neg"), AttrMap{}, {pool_.front().value});
      node->output()->name = "v";
      outputs = {node->output()};
    }
  }
  graph_.set_outputs(outputs);
  std::map<std::string, Tensor> data;
  for (const Known& known : pool_) data[known.value->name] = known.data;
  graph_.remove_dead_nodes();
  return {std::move(graph_), symbols_, std::move(data)};
}

}  // namespace opfuse::fuzz
