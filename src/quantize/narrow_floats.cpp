//     x f32 -- conv -- range -- y f32      becomes      x f32 -- cast -- conv -- cast -- range -- y f32
//
// Values that nodes make are 16 bits; what the caller gives and gets, and what ONNX has in f32 alone, is cast. Readers
// of one value share its cast.
#include "quantize/narrow_floats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/fail.hpp"
#include "ir/free_names.hpp"
#include "onnx/metadata.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "ops/registry.hpp"
#include "ops/resize.hpp"

namespace opfuse::quantization {
namespace {

constexpr int64_t kOldestF16 = 13, kOldestBf16 = 22;  // opset 22 gave bf16 to convolutions and pools

/// Positive ones; subnormal in f16, whose range is short, not in bf16, where hardware takes such for 0.
struct Extremes {
  double largest, smallest;
};
Extremes extremes_of(DType to) { return to == DType::f16 ? Extremes{65504, 0x1p-24} : Extremes{0x1.FEp127, 0x1p-126}; }

/// Operators that ONNX has in f32 alone, or whose bodies are not looked into.
bool stays(const Node& node) {
  constexpr std::array kNames{"range", "non_max_suppression", "bit_cast", "einsum", "random_normal", "random_uniform"};
  return node.op == opaque_op() || node.body ||
         std::any_of(kNames.begin(), kNames.end(), [&](const char* name) { return node.is(name); });
}

/// The region and the factors of a Resize are f32 beside any data.
bool stays(const Use& use) { return stays(*use.node) || (is_a<Resize>(*use.node) && use.index > 0); }

class Narrower {
 public:
  Narrower(const Graph& model, DType to) : to_(to), made_{model.clone(), model.clone()}, names_(model) {}

  NarrowedModel run() {
    check();
    for (Value* value : graph().values())
      if (value->type.dtype == DType::f32 && value->is_constant()) take_constant(value);
    for (Value* value : graph().values())
      if (value->type.dtype == DType::f32 && !value->is_constant()) take_value(value);
    cast_outputs();
    for (Node* node : graph().nodes())
      if (!stays(*node))
        narrow_attributes(*node);
      else if (reads_floats(*node))
        made_.kept.push_back(node->name());
    graph().infer_types();
    raise_opset();
    if (made_.values == 0) throw fail(E::bad_option, "the model has no f32 values");
    return std::move(made_);
  }

 private:
  Graph& graph() { return made_.graph; }

  void check() {
    for (const Node* node : graph().nodes())
      if (is_a<QuantizeLinear>(*node) || is_a<DequantizeLinear>(*node))
        throw fail(E::bad_option, "the model has Q/DQ pairs, whose scales are f32")
            .hint("convert the float model that it was made of");
  }

  static bool reads_floats(const Node& node) {
    const auto is_float = [](const Value* v) { return v && v->type.dtype == DType::f32; };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_float) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), is_float);
  }

  static bool all_zero(const Tensor& t) {
    for (int64_t i = 0; i < t.elements(); ++i)
      if (t.real(i) != 0) return false;
    return true;
  }

  Tensor narrowed(const Value* value) {
    const Tensor& from = *value->constant;
    const Extremes limits = extremes_of(to_);
    const bool scalar = from.elements() == 1;
    Tensor bounded = from.clone();
    int64_t large = 0, small = 0;
    for (int64_t i = 0; i < from.elements(); ++i) {
      const double x = from.real(i), size = std::fabs(x);
      if (std::isfinite(x) && size > limits.largest) bounded.set_real(i, std::copysign(limits.largest, x)), ++large;
      if (scalar && size > 0 && size < limits.smallest) bounded.set_real(i, std::copysign(limits.smallest, x)), ++small;
    }
    const std::string name = value->name.empty() ? "a constant" : "'" + value->name + "'";
    if (large > 0)
      made_.warnings.push_back(fmt::format("{} of {} numbers of {} are beyond {:g}, the largest of {}, and become it",
                                           large, from.elements(), name, limits.largest, name_of(to_)));
    if (small > 0)
      made_.warnings.push_back(fmt::format("{} is {:g}, and becomes {:g}, the smallest number of {}", name,
                                           from.real(0), bounded.real(0), name_of(to_)));
    Tensor narrow = bounded.cast(to_);
    if (!all_zero(from) && all_zero(narrow))
      made_.warnings.push_back(fmt::format("all {} numbers of {} become 0 in {}", from.elements(), name, name_of(to_)));
    return narrow;
  }

  /// Readers that take f32 keep the constant as it is.
  void take_constant(Value* value) {
    const size_t bytes = value->constant->bytes();
    made_.bytes_before += bytes;
    const std::vector<Use> uses = value->uses;
    const auto keeps =
        static_cast<size_t>(std::count_if(uses.begin(), uses.end(), [](const Use& u) { return stays(u); }));
    if (keeps > 0 || value->as_output > 0) made_.bytes_after += bytes;
    if (keeps == uses.size()) return;
    Tensor narrow = narrowed(value);
    made_.bytes_after += narrow.bytes();
    ++made_.values;
    if (keeps == 0 && value->as_output == 0) {
      value->constant = std::move(narrow), value->type.dtype = to_;
      return;
    }
    Value* other = graph().add_constant(std::move(narrow));
    for (const Use& use : uses)
      if (!stays(use)) graph().set_input(use.node, use.index, other);
  }

  Node* cast(Value* value, DType to) {
    Node* before = value->producer ? behind(value->producer) : graph().nodes().front();
    ++made_.casts;
    Node* node = graph().add_node(ops().find("cast"), AttrMap{{"to", to}}, {value}, 1, {}, before);
    casts_.insert(node);
    if (!value->name.empty()) node->output()->name = names_.take(fmt::format("{}_{}", value->name, name_of(to)));
    return node;
  }

  Node* behind(const Node* node) {
    const size_t next = graph().position(node) + 1;
    return next < graph().nodes().size() ? graph().nodes()[next] : nullptr;
  }

  /// Of 16 bits where a node that works in them makes it; readers of the other kind get a cast.
  void take_value(Value* value) {
    const bool wide = !value->producer || stays(*value->producer);
    const std::vector<Use> uses = value->uses;
    if (!wide) value->type.dtype = to_, ++made_.values;
    const auto other = [&](const Use& use) { return stays(use) != wide; };
    if (std::none_of(uses.begin(), uses.end(), other)) return;
    Node* node = cast(value, wide ? to_ : DType::f32);
    for (const Use& use : uses)
      if (other(use)) graph().set_input(use.node, use.index, node->output());
  }

  void cast_outputs() {
    std::vector<Value*> outputs = graph().outputs();
    std::map<Value*, Value*> done;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const DType wanted = made_.reference.outputs()[i]->type.dtype;
      if (outputs[i]->type.dtype != to_ || wanted == to_) continue;
      Value*& wide = done[outputs[i]];
      if (!wide) {
        const std::string name =
            std::exchange(outputs[i]->name, names_.take(fmt::format("{}_{}", outputs[i]->name, name_of(to_))));
        wide = cast(outputs[i], wanted)->output();
        wide->name = name;
      }
      outputs[i] = wide;
    }
    graph().set_outputs(std::move(outputs));
  }

  /// Those that name an element type.
  void narrow_attributes(Node& node) {
    if (casts_.contains(&node)) return;
    AttrMap attrs = node.attr_map();
    bool changed = false;
    for (auto& [name, value] : attrs)
      if (auto* dtype = std::get_if<DType>(&value); dtype && *dtype == DType::f32) *dtype = to_, changed = true;
    if (changed) node.attrs_ = node.op->attrs_from_map(attrs);
  }

  void raise_opset() {
    const int64_t oldest = to_ == DType::f16 ? kOldestF16 : kOldestBf16;
    const std::string key(onnx::kOpset);
    const int64_t own = onnx::metadata_number(graph(), key, 0);
    if (own >= oldest) return;
    auto& all = graph().metadata;
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == key; });
    if (at == all.end())
      all.emplace_back(key, std::to_string(std::max<int64_t>(oldest, 17)));
    else
      at->second = std::to_string(oldest);
  }

  DType to_;
  NarrowedModel made_;
  FreeNames names_;
  std::set<const Node*> casts_;  ///< that were put in
};

}  // namespace

DType parse_narrow(const std::string& text) {
  if (text == "f16" || text == "fp16") return DType::f16;
  if (text == "bf16") return DType::bf16;
  throw fail(E::bad_option, "models are converted to f16 or bf16, not '{}'", text);
}

NarrowedModel narrow_floats(const Graph& model, DType to) { return Narrower(model, to).run(); }

}  // namespace opfuse::quantization
