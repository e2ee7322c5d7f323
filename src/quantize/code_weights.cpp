//     w f32 [K, N] -- MatMul      becomes      codes [K, N], scales [ceil(K / B), N] -- DequantizeLinear -- MatMul
//
// A Transpose between the constant and its product stays. Where something else reads the constant too (a Gather from
// tied embeddings) codes would lie beside the floats, so the product stays.
#include "quantize/code_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "base/integers.hpp"
#include "ir/free_names.hpp"
#include "match/pattern.hpp"
#include "onnx/metadata.hpp"
#include "ops/conv.hpp"
#include "ops/gemm.hpp"
#include "ops/is_a.hpp"
#include "ops/quantize.hpp"
#include "ops/registry.hpp"
#include "ops/transpose.hpp"
#include "quantize/block_codes.hpp"
#include "quantize/linear_size.hpp"
#include "quantize/scale_data.hpp"
#include "tensor/finite.hpp"

namespace opfuse::quantization {
namespace {

constexpr int64_t kOldestOpset = 13, kOldestBlocks = 21;  // of scales by channel; of i4 and block_size
constexpr int64_t kBlockUnit = 8;                         // a word of 4-bit codes

size_t stored_bytes(const Tensor& t) {
  return static_cast<size_t>(ceil_of(t.elements() * bit_size(t.dtype()), int64_t{8}));
}

size_t constant_bytes(const Graph& graph) {
  size_t bytes = 0;
  for (const Value* value : graph.constants()) bytes += stored_bytes(*value->constant);
  return bytes;
}

/// Everything that --skip and --only may call a product by.
std::set<std::string> callable_by(const Node& node) {
  std::set<std::string> names{node.name(), node.label, std::string(operator_name(node))};
  for (const Source& source : node.sources) names.insert({source.name, source.op_type});
  names.erase("");
  return names;
}

bool swaps(const Node& node) {
  if (!is_a<Transpose>(node) || node.input(0)->type.shape.rank() != 2) return false;
  const std::vector<int64_t>& perm = node.as<Transpose>().perm;
  return perm.empty() || perm[0] == 1;
}

class Rewriter {
 public:
  Rewriter(const Graph& model, const CodeWeightsOptions& options)
      : options_(options), made_{model.clone(), model.clone(), {}, {}}, names_(model) {}

  CodedModel run() {
    check();
    made_.bytes_before = constant_bytes(graph());
    find_products(graph(), true);
    leave_shared();
    if (options_.powers) scale_channels();
    for (size_t i = 0; i < found_.size(); ++i) {
      if (options_.progress) options_.progress("codes of weights", i, found_.size());
      code(found_[i]);
    }
    if (made_.products.empty()) throw none();
    graph().remove_dead_nodes();
    graph().infer_types();
    raise_opset();
    made_.bytes_after = constant_bytes(graph());
    return std::move(made_);
  }

 private:
  struct Found {
    Node* product;
    Value* weights;  ///< the constant
    size_t depth_axis;
  };

  Graph& graph() { return made_.graph; }

  void check() {
    if (options_.block < 0 || options_.block % kBlockUnit != 0)
      throw fail(E::bad_option, "blocks of {} weights", options_.block)
          .hint("a multiple of 8 such as 16, 32, 64 or 128, or 0: one scale per column");
    std::set<std::string> known;
    for (const Node* node : graph().nodes())
      if (is_matrix_product(*node)) known.merge(callable_by(*node));
    for (const auto* list : {&options_.skip, &options_.only})
      for (const std::string& name : *list)
        if (!known.contains(name))
          throw fail(E::unknown_name, "no matrix product is called '{}'", name)
              .hint(did_you_mean(name, {known.begin(), known.end()}));
  }

  void find_products(const Graph& graph, bool outer) {
    for (Node* node : graph.nodes()) {
      if (node->body) find_products(*node->body, false);
      if (!is_a<Conv>(*node) && !is_matrix_product(*node)) continue;
      Found found{node, nullptr, 0};
      auto why = outer ? unfit(found) : Decline{"body", "it lies in the body of another operator", {}};
      if (why)
        made_.left.push_back({node->name(), std::move(*why)});
      else
        found_.push_back(found);
    }
  }

  std::optional<Decline> unfit(Found& found) const {
    const Node& node = *found.product;
    if (is_a<Conv>(node)) return Decline{"convolution", "weights of convolutions stay floats", {}};
    const std::set<std::string> names = callable_by(node);
    const auto named = [&](const std::string& name) { return names.contains(name); };
    if (const auto at = std::find_if(options_.skip.begin(), options_.skip.end(), named); at != options_.skip.end())
      return Decline{"skipped", fmt::format("left out by --skip {}", *at), {*at}};
    if (!options_.only.empty() && std::none_of(options_.only.begin(), options_.only.end(), named))
      return Decline{"skipped", "not among what --only names", {}};
    Value* weights = node.input(1);
    const bool swapped = weights->producer && swaps(*weights->producer);
    if (swapped) weights = weights->producer->input(0);
    if (weights->producer && is_a<DequantizeLinear>(*weights->producer))
      return Decline{"given", "the weights are codes already", {}};
    if (!weights->is_constant()) return Decline{"variable_weights", "the second factor is computed", {}};
    const Tensor& matrix = *weights->constant;
    if (matrix.dtype() != DType::f32)
      return Decline{"not_f32", fmt::format("the weights are {}", weights->type.text()), {}};
    if (matrix.rank() != 2) return Decline{"rank", fmt::format("{} is not a matrix", weights->type.text()), {}};
    found.weights = weights;
    found.depth_axis = (1 - output_axis(node)) ^ static_cast<size_t>(swapped);
    return unfit_numbers(matrix);
  }

  std::optional<Decline> unfit_numbers(const Tensor& matrix) const {
    const int64_t a = matrix.dim(0), b = matrix.dim(1), size = a + b > 0 ? a * b / (a + b) : 0;
    if (a * b == 0 || size < options_.min_linear)
      return Decline{"small_linear",
                     fmt::format("K N / (K + N) = {} of {} x {} weights is below {}", size, a, b, options_.min_linear),
                     {}};
    if (all_finite(matrix)) return std::nullopt;
    return Decline{"not_finite", "the weights hold NaN or infinities", {}};
  }

  /// Whether `use` is that of a product which reads `weights` along the same axis.
  bool is_found(const Use& use, const Found& like) const {
    return std::any_of(found_.begin(), found_.end(), [&](const Found& f) {
      return use.index == 1 && f.product == use.node && f.weights == like.weights && f.depth_axis == like.depth_axis;
    });
  }

  const Node* other_reader(const Found& found) const {
    for (const Use& use : found.weights->uses) {
      if (is_found(use, found)) continue;
      if (!swaps(*use.node)) return use.node;
      for (const Use& behind : use.node->output()->uses)
        if (!is_found(behind, found)) return behind.node;
    }
    return nullptr;
  }

  void leave_shared() {
    std::vector<Found> kept;
    for (const Found& found : found_) {
      const Node* other = other_reader(found);
      if (!other && found.weights->as_output == 0)
        kept.push_back(found);
      else
        made_.left.push_back(
            {found.product->name(),
             {"shared",
              other ? fmt::format("{} reads the same constant, and would keep the floats", other->name())
                    : "the weights are an output of the model too",
              {}}});
    }
    found_ = std::move(kept);
  }

  Node* first_reader(const Value* value) {
    Node* first = value->uses.front().node;
    for (const Use& use : value->uses)
      if (graph().position(use.node) < graph().position(first)) first = use.node;
    return first;
  }

  /// Products that read the same data have the same factors. Folding them changes constants, so products are found
  /// anew.
  void scale_channels() {
    std::map<const Value*, std::set<const Value*>> data_of;  // by weights
    for (const Found& f : found_) data_of[f.weights].insert(f.product->input(0));
    std::map<const Value*, std::vector<DataReader>> readers;
    for (const Found& f : found_)
      if (data_of[f.weights].size() == 1) readers[f.product->input(0)].push_back({f.product, f.weights, f.depth_axis});
    const DataScaler scaler{graph(), *options_.powers, {options_.type, options_.block, 0, options_.threads, {}}};
    size_t done = 0;
    for (const Found& f : found_) {
      const auto at = readers.find(f.product->input(0));
      if (options_.progress) options_.progress("channels of data", done++, found_.size());
      if (at == readers.end()) continue;
      for (auto& [product, scaled] : scale_data(scaler, at->second)) scaled_[product] = std::move(scaled);
      readers.erase(at);
    }
    found_.clear(), made_.left.clear();
    find_products(graph(), true);
    leave_shared();
  }

  void code(const Found& found) {
    Value* weights = found.weights;
    const Tensor matrix = *weights->constant;
    CodedProduct row{found.product->name(), matrix.dim(found.depth_axis), matrix.dim(1 - found.depth_axis)};
    if (const auto at = done_.find(weights); at != done_.end()) {
      row.sqnr = made_.products[at->second].sqnr;
      made_.products.push_back(std::move(row));
      return;
    }
    std::span<const double> powers;
    if (const auto at = scaled_.find(found.product); at != scaled_.end()) {
      powers = at->second.powers;
      row.alpha = at->second.alpha, row.gain = at->second.gain, row.folded = at->second.folded;
    }
    BlockCodes codes = block_codes(matrix, {options_.type, options_.block, found.depth_axis, options_.threads, powers});
    row.sqnr = codes.sqnr, row.clipped = codes.clipped;
    row.bytes_before = matrix.bytes(), row.bytes_after = stored_bytes(codes.codes) + codes.scales.bytes();
    const std::string name = weights->name.empty() ? found.product->name() + "_weights" : weights->name;
    const auto axis = static_cast<int64_t>(options_.block > 0 ? found.depth_axis : 1 - found.depth_axis);
    Node* before = first_reader(weights);
    Value* values = graph().add_constant(std::move(codes.codes), names_.take(name + "_codes"));
    Value* scales = graph().add_constant(std::move(codes.scales), names_.take(name + "_scales"));
    Node* dequantize =
        graph().add_node(op_named("dequantize_linear"), AttrMap{{"axis", axis}, {"block_size", options_.block}},
                         {values, scales}, 1, {{name + "_DequantizeLinear", "DequantizeLinear", "", oldest()}}, before);
    dequantize->output()->name = names_.take(name + "_dequantized");
    done_[weights] = made_.products.size();
    for (const Use& use : std::vector<Use>(weights->uses)) graph().set_input(use.node, use.index, dequantize->output());
    made_.products.push_back(std::move(row));
  }

  Error none() const {
    std::string reasons;
    for (size_t i = 0; i < std::min<size_t>(made_.left.size(), 3); ++i)
      reasons += fmt::format("{}{}: {} [{}]", i > 0 ? "; " : "", made_.left[i].node, made_.left[i].why.message,
                             made_.left[i].why.code);
    return fail(E::bad_option, "no weights become codes: {} products stay as they are", made_.left.size())
        .hint(reasons.empty() ? "the model has no MatMul and no Gemm" : reasons);
  }

  int64_t oldest() const { return options_.type == DType::i4 || options_.block > 0 ? kOldestBlocks : kOldestOpset; }

  void raise_opset() {
    const std::string key(onnx::kOpset);
    if (onnx::metadata_number(graph(), key, 0) >= oldest()) return;
    auto& all = graph().metadata;
    const auto at = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == key; });
    if (at == all.end())
      all.emplace_back(key, std::to_string(std::max<int64_t>(oldest(), 17)));
    else
      at->second = std::to_string(oldest());
  }

  const CodeWeightsOptions& options_;
  CodedModel made_;
  FreeNames names_;
  std::vector<Found> found_;
  std::map<const Value*, size_t> done_;  ///< constant to row of made_.products
  std::map<const Node*, ScaledData> scaled_;
};

}  // namespace

DType parse_coded_weights(const std::string& text) {
  if (text == "int8-weights") return DType::i8;
  if (text == "int4-weights") return DType::i4;
  throw fail(E::bad_option, "weights become int8-weights or int4-weights, not '{}'", text);
}

int64_t default_block(DType type) { return type == DType::i4 ? 32 : 0; }

CodedModel code_weights(const Graph& model, const CodeWeightsOptions& options) {
  return Rewriter(model, options).run();
}

}  // namespace opfuse::quantization
