//     x ------------ QuantizeLinear -- DequantizeLinear --.
//     w codes ------------------------ DequantizeLinear -- Conv -- y          scale s_w by output channel
//     b codes (i32) ------------------ DequantizeLinear --'                   scale s_x s_w
//
// A pair stands right behind what makes its tensor. Weights that several products share have one constant.
#include "quantize/insert_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "ir/free_names.hpp"
#include "ir/outline.hpp"
#include "onnx/metadata.hpp"
#include "ops/conv.hpp"
#include "ops/gemm.hpp"
#include "ops/is_a.hpp"
#include "ops/matmul.hpp"
#include "ops/quantize.hpp"
#include "ops/registry.hpp"
#include "passes/linear_product.hpp"
#include "quantize/bias_shift.hpp"
#include "quantize/linear_size.hpp"
#include "quantize/weight_codes.hpp"
#include "tensor/finite.hpp"

namespace opfuse::quantization {
namespace {

constexpr int64_t kOldestOpset = 13;  // of scales by channel

Source source_of(const std::string& tensor, const char* op_type) {
  return {fmt::format("{}_{}", tensor, op_type), op_type, "", kOldestOpset};
}

class Inserter {
 public:
  Inserter(const Graph& base, const Placement& placement, const std::vector<Codes>& codes, const InsertOptions& options)
      : graph_(base.clone()), names_(graph_), placement_(placement), codes_(codes), options_(options) {
    for (Node* node : graph_.nodes()) nodes_[node->id] = node;
    for (Value* value : graph_.values()) values_[value->id] = value;
  }

  QuantizedGraph run() {
    for (size_t i = 0; i < placement_.tensors.size(); ++i) take_scale(i);
    for (const PlacedProduct& product : placement_.products) quantize_product(product);
    for (size_t i = 0; i < placement_.tensors.size(); ++i) insert_pair(placement_.tensors[i], codes_[i]);
    graph_.remove_dead_nodes();
    raise_opset();
    return {std::move(graph_), std::move(products_)};
  }

 private:
  void take_scale(size_t i) {
    const PlacedTensor& placed = placement_.tensors[i];
    for (int reader : placed.readers) scales_[{reader, placed.tensor}] = codes_[i].scale;
  }

  void raise_opset() {
    for (auto& [key, value] : graph_.metadata)
      if (key == onnx::kOpset && onnx::metadata_number(graph_, key, kOldestOpset) < kOldestOpset)
        value = std::to_string(kOldestOpset);
  }

  Value* constant(Tensor tensor, const std::string& name) {
    return graph_.add_constant(std::move(tensor), names_.take(name));
  }

  Value* scalar(DType dtype, double value, const std::string& name) {
    Tensor t(dtype, {});
    t.set_real(0, value);
    return constant(std::move(t), name);
  }

  Node* behind(const Value* value) const {
    if (!value->producer) return graph_.nodes().front();
    const size_t next = graph_.position(value->producer) + 1;
    return next < graph_.nodes().size() ? graph_.nodes()[next] : nullptr;
  }

  void insert_pair(const PlacedTensor& placed, const Codes& codes) {
    Value* value = values_.at(placed.value);
    const std::string& name = placed.tensor;
    Value* scale = scalar(DType::f32, static_cast<double>(codes.scale), name + "_scale");
    Value* zero = scalar(codes.dtype, codes.zero, name + "_zero_point");
    Node* before = behind(value);
    Node* quantize = graph_.add_node(op_named("quantize_linear"), AttrMap{}, {value, scale, zero}, 1,
                                     {source_of(name, "QuantizeLinear")}, before);
    quantize->output()->name = names_.take(name + "_quantized");
    Node* dequantize = graph_.add_node(op_named("dequantize_linear"), AttrMap{}, {quantize->output(), scale, zero}, 1,
                                       {source_of(name, "DequantizeLinear")}, before);
    dequantize->output()->name = names_.take(name + "_dequantized");
    for (int reader : placed.readers) {
      Node* node = nodes_.at(reader);
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (node->inputs[i] == value) graph_.set_input(node, i, dequantize->output());
    }
  }

  /// The step of a product's data: of its pair, or of one that the model brought; 0: there is none.
  float data_scale(const Node& node) const {
    const Value* data = node.input(0);
    if (const auto at = scales_.find({node.id, data->name}); at != scales_.end()) return at->second;
    const Node* given = data->producer;
    const bool known = given && is_a<DequantizeLinear>(*given) && given->input(1)->is_constant() &&
                       given->input(1)->constant->elements() == 1;
    return known ? static_cast<float>(given->input(1)->constant->real(0)) : 0;
  }

  /// Bias of a convolution or Gemm, one number for each output channel; empty: none that is constant.
  static std::vector<double> bias_of(const Node& node, int64_t channels) {
    std::vector<double> bias;
    const Value* value = node.input(2);
    if (!value || !value->is_constant() || !is_float(value->constant->dtype())) return bias;
    const Tensor& t = *value->constant;
    if (t.elements() != 1 && (t.elements() != channels || t.sizes().back() != channels)) return bias;
    for (int64_t c = 0; c < channels; ++c) bias.push_back(t.real(t.elements() == 1 ? 0 : c));
    return bias;
  }

  void quantize_product(const PlacedProduct& product) {
    Node* node = nodes_.at(product.node);
    QuantizedProduct& report =
        products_.emplace_back(QuantizedProduct{product.name, product.module, node->input(0)->name});
    if (!node->input(1)->is_constant()) return;  // codes already
    const size_t axis = output_axis(*node);
    const Tensor weights = *node->input(1)->constant;
    std::vector<double> bias = bias_of(*node, weights.sizes()[axis]);
    const float scale = data_scale(*node);
    const bool as_codes = options_.bias_codes && scale > 0 && !bias.empty();
    const Codes8 codes = codes_for(node, axis, as_codes ? least_scales(bias, scale) : std::vector<double>{});
    report.weight_sqnr = codes.codes.sqnr, report.dead_channels = codes.codes.dead;
    report.moved_codes = codes.codes.moved, report.cut_codes = codes.codes.cut;
    if (options_.means) bias = corrected(node, axis, weights, codes.codes, std::move(bias), report);
    graph_.set_input(node, 1, codes.dequantized);
    if (options_.added_bias_codes && scale > 0 && is_a<MatMul>(*node)) set_added_bias(node, scale, codes.codes.scales);
    if (as_codes && !bias.empty()) set_bias_codes(node, bias, scale, codes.codes.scales);
  }

  struct Codes8 {
    WeightCodes codes;
    Value* dequantized = nullptr;
  };

  Codes8 codes_for(const Node* node, size_t axis, const std::vector<double>& least) {
    const Value* weights = node->input(1);
    // a depthwise convolution adds nothing but its taps, one by one in 32 bits
    const bool pairs = options_.int16_pairs && !is_depthwise(*node);
    std::vector<Codes8>& made = weights_[{weights->id, axis, pairs}];
    for (const Codes8& known : made) {
      const auto enough = [&](size_t c) { return known.codes.scales.real(static_cast<int64_t>(c)) >= least[c]; };
      bool fits = true;
      for (size_t c = 0; fits && c < least.size(); ++c) fits = enough(c);
      if (fits) return known;
    }
    const std::string name = weights->name.empty() ? node->name() + "_weight" : weights->name;
    const WeightOptions with{least, options_.per_channel, options_.window_sums, pairs};
    Codes8 fresh{weight_codes(*weights->constant, axis, with), nullptr};
    fresh.dequantized = dequantized(name, fresh.codes.codes, fresh.codes.scales, fresh.codes.zeros, axis);
    made.push_back(fresh);
    return fresh;
  }

  /// A scalar of what all elements are.
  static Tensor first_of(const Tensor& same) {
    Tensor one(same.dtype(), {});
    if (same.elements() > 0) one.set_real(0, same.real(0));
    return one;
  }

  Value* dequantized(const std::string& name, const Tensor& codes, const Tensor& scales, const Tensor& zeros,
                     size_t axis) {
    Value* stored = constant(codes, name + "_quantized");
    Value* scale = constant(options_.per_channel ? scales : first_of(scales), name + "_scale");
    Value* zero = constant(options_.per_channel ? zeros : first_of(zeros), name + "_zero_point");
    Node* node =
        graph_.add_node(op_named("dequantize_linear"), AttrMap{{"axis", static_cast<int64_t>(axis)}},
                        {stored, scale, zero}, 1, {source_of(name, "DequantizeLinear")}, graph_.nodes().front());
    node->output()->name = names_.take(name + "_dequantized");
    return node->output();
  }

  void set_bias_codes(Node* node, const std::vector<double>& bias, float scale, const Tensor& weight_scales) {
    const Value* old = node->input(2);
    const BiasCodes made = bias_codes(bias, scale, weight_scales);
    const std::string name = old && !old->name.empty() ? old->name : node->name() + "_bias";
    const Tensor zeros(DType::i32, made.codes.sizes());
    graph_.set_input(node, 2, dequantized(name, made.codes, made.scales, zeros, 0));
  }

  /// ONNX Runtime joins MatMul and Add as a Gemm, which multiplies codes only where its bias is codes of s_x s_w.
  void set_added_bias(Node* product, float scale, const Tensor& weight_scales) {
    Node* add = product->output()->only_reader();
    const int64_t channels = weight_scales.elements();
    const Value* bias = add ? row_bias(*add, product->output(), channels) : nullptr;
    if (!bias || !all_finite(*bias->constant)) return;
    std::vector<double> numbers;
    for (int64_t c = 0; c < channels; ++c) numbers.push_back(bias->constant->real(c));
    const std::vector<double> least = least_scales(numbers, scale);
    for (int64_t c = 0; c < channels; ++c)
      if (weight_scales.real(c) < least[static_cast<size_t>(c)]) return;  // beyond i32
    const BiasCodes made = bias_codes(numbers, scale, weight_scales);
    const Tensor zeros(DType::i32, made.codes.sizes());
    graph_.set_input(add, add->input(0) == bias ? 0 : 1,
                     dequantized(add->name() + "_bias", made.codes, made.scales, zeros, 0));
  }

  /// The bias with what the codes of the weights shift on average taken back. A product without one gets one; that of a
  /// MatMul stands in the Add behind it.
  std::vector<double> corrected(Node*& node, size_t axis, const Tensor& weights, const WeightCodes& codes,
                                std::vector<double> bias, QuantizedProduct& report) {
    const TensorStatistics* data = statistics_of(node->input(0)->name);
    if (!data || data->channel_sums.empty()) {
      report.note = "its bias is not corrected: no means of its data";
      return bias;
    }
    const std::vector<double> shift = bias_shift(*node, weights, codes, axis, *data);
    if (is_a<MatMul>(*node)) {
      correct_add(node, shift, report);
      return bias;
    }
    if (node->input(2) && bias.empty()) {
      report.note = "its bias is not corrected: it is not constant, or not a row";
      return bias;
    }
    bias.resize(shift.size());
    note_shift(report, shift, bias);
    for (size_t c = 0; c < shift.size(); ++c) bias[c] -= shift[c];
    set_bias(node, bias);
    return bias;
  }

  static Tensor row_of(const std::vector<double>& numbers) {
    Tensor t(DType::f32, {static_cast<int64_t>(numbers.size())});
    for (size_t c = 0; c < numbers.size(); ++c) t.set_real(static_cast<int64_t>(c), numbers[c]);
    return t;
  }

  void set_bias(Node*& node, const std::vector<double>& bias) {
    Value* row = constant(row_of(bias), node->name() + "_bias_corrected");
    if (node->inputs.size() > 2) return graph_.set_input(node, 2, row);
    const int old = node->id;
    Node* made = graph_.add_node(node->op, node->attrs_, {node->input(0), node->input(1), row}, 1, node->sources, node,
                                 {node->output()->type});
    values_[node->output()->id] = made->output();
    take_over(graph_, node->output(), made->output());
    graph_.erase(node);
    node = nodes_[old] = made;
  }

  void correct_add(Node* product, const std::vector<double>& shift, QuantizedProduct& report) {
    Node* add = product->output()->only_reader();
    const auto channels = static_cast<int64_t>(shift.size());
    const Value* bias = add ? row_bias(*add, product->output(), channels) : nullptr;
    if (!bias) {
      report.note = "it has no bias to correct";
      return;
    }
    std::vector<double> numbers;
    for (int64_t c = 0; c < channels; ++c) numbers.push_back(bias->constant->real(c));
    note_shift(report, shift, numbers);
    Tensor moved(bias->constant->dtype(), bias->constant->sizes());
    for (int64_t c = 0; c < channels; ++c)
      moved.set_real(c, numbers[static_cast<size_t>(c)] - shift[static_cast<size_t>(c)]);
    const size_t at = add->input(0) == bias ? 0 : 1;
    graph_.set_input(add, at, constant(std::move(moved), add->name() + "_bias_corrected"));
  }

  static void note_shift(QuantizedProduct& report, const std::vector<double>& shift, const std::vector<double>& bias) {
    double most = 0, of = 0;
    for (double s : shift) most = std::max(most, std::fabs(s));
    for (double b : bias) of = std::max(of, std::fabs(b));
    report.bias_shift = of > 0 ? most / of : 0;
  }

  const TensorStatistics* statistics_of(const std::string& tensor) const {
    for (size_t i = 0; i < placement_.tensors.size(); ++i)
      if (placement_.tensors[i].tensor == tensor) return &(*options_.means)[i];
    return nullptr;
  }

  Graph graph_;
  FreeNames names_;
  const Placement& placement_;
  const std::vector<Codes>& codes_;
  const InsertOptions& options_;
  std::map<int, Node*> nodes_;                           ///< by id in the base graph
  std::map<int, Value*> values_;                         ///< the same
  std::map<std::pair<int, std::string>, float> scales_;  ///< by reader and tensor
  std::map<std::tuple<int, size_t, bool>, std::vector<Codes8>> weights_;
  std::vector<QuantizedProduct> products_;
};

}  // namespace

QuantizedGraph insert_pairs(const Graph& base, const Placement& placement, const std::vector<Codes>& codes,
                            const InsertOptions& options) {
  return Inserter(base, placement, codes, options).run();
}

}  // namespace opfuse::quantization
