// The graph: typed values, nodes with attributes, source names. Owns everything; Node* and Value* are
// handles that never outlive it. The node list is always a topological order.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "ir/op_info.hpp"

namespace opfuse {

class Graph;
struct Value;

/// One reading of a value: input number `index` of `node`.
struct Use {
  Node* node = nullptr;
  size_t index = 0;
  bool operator==(const Use&) const = default;
};

struct Value {
  int id = 0;        ///< unique within the graph, in creation order
  std::string name;  ///< source name (ONNX tensor name), unique when not empty
  TensorType type;
  Node* producer = nullptr;  ///< null for graph inputs and constants
  size_t result = 0;         ///< which output of the producer
  std::optional<Tensor> constant;
  std::vector<Use> uses;  ///< maintained by Graph, in order of creation
  size_t as_output = 0;   ///< how often the graph returns it; maintained by Graph
  bool is_constant() const { return constant.has_value(); }
  /// The use of a value that is read once and not returned; else null.
  const Use* only_use() const { return uses.size() == 1 && as_output == 0 ? &uses.front() : nullptr; }
  /// Its reader; else null.
  Node* only_reader() const { return only_use() ? uses.front().node : nullptr; }
};

/// Where a node came from. Survives cloning, conversion and fusion (a fused node has the union).
struct Source {
  std::string name;     ///< ONNX node name (made up from the first output when empty)
  std::string op_type;  ///< "Conv"
  std::string domain;   ///< "" for ai.onnx
  int64_t opset = 0;
  bool operator==(const Source&) const = default;
};

struct Node {
  int id = 0;
  const OpInfo* op = nullptr;
  std::vector<Value*> inputs;  ///< null: absent optional operand
  std::vector<Value*> outputs;
  std::vector<Source> sources;
  std::unique_ptr<Graph> body;  ///< fused and composite nodes: inputs and outputs in the node's order
  std::string label;            ///< fused: module instance name "FusedConvBNReLU__conv1"; composite: recomposed name
  std::string pattern;          ///< fused: the pattern or rule that made it

  bool is(std::string_view op_name) const { return op->name == op_name; }
  const void* attrs() const { return attrs_.get(); }
  template <class Op>
  const typename Op::Attrs& as() const {
    return *static_cast<const typename Op::Attrs*>(attrs_.get());
  }
  AttrMap attr_map() const { return op->attrs_to_map ? op->attrs_to_map(attrs_.get()) : AttrMap{}; }
  Value* output() const { return outputs.front(); }
  Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  /// The first source name, or "#id" when there is none.
  std::string name() const;

  std::shared_ptr<const void> attrs_;
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;
  /// Deep copy (constants share storage). Ids and order are kept.
  Graph clone() const;

  std::string name;                                           ///< graph name
  std::string model_file;                                     ///< for diagnostics
  std::vector<std::pair<std::string, std::string>> metadata;  ///< kept from and to the model file

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  const std::vector<Node*>& nodes() const { return order_; }  ///< topological
  std::vector<Value*> constants() const;                      ///< in id order
  std::vector<Value*> values() const;                         ///< all, in id order
  std::set<std::string> symbols() const;                      ///< dimension symbols of the inputs

  Value* add_input(std::string name, TensorType type);
  Value* add_constant(Tensor tensor, std::string name = {});
  void set_outputs(std::vector<Value*> outputs);
  /// Appends a node (or inserts it before `before`). Output values are made; their types come from
  /// `types`, or from inference when empty. Errors of inference carry the node's source.
  Node* add_node(const OpInfo* op, std::shared_ptr<const void> attrs, std::vector<Value*> inputs, size_t outputs = 1,
                 std::vector<Source> sources = {}, Node* before = nullptr, std::vector<TensorType> types = {});
  /// Same, with attributes by name.
  Node* add_node(const OpInfo* op, const AttrMap& attrs, std::vector<Value*> inputs, size_t outputs = 1,
                 std::vector<Source> sources = {}, Node* before = nullptr);
  void set_input(Node* node, size_t index, Value* value);
  /// All readers of `from` (graph outputs included) read `to` instead. When `from` is a graph output,
  /// `to` takes its name, so the interface never changes.
  void replace_uses(Value* from, Value* to);
  /// Whether replace_uses(from, to) keeps the interface: false when `from` is a named graph output and
  /// `to` a graph input or another output, whose name must stay. Then a node must remain between them.
  bool can_replace(const Value* from, const Value* to) const;
  void erase(Node* node);                       ///< its outputs must be unread
  void erase(const std::vector<Node*>& nodes);  ///< only each other may read their outputs; one walk for all
  size_t remove_dead_nodes();                   ///< also unread constants; returns how many nodes went
  void sort_topologically();                    ///< stable; E::cyclic_graph names a node on the cycle
  bool is_output(const Value* value) const;
  size_t read_count(const Value* value) const;  ///< uses plus graph outputs
  Value* find_value(std::string_view name) const;
  Node* find_node(std::string_view source_name) const;
  size_t position(const Node* node) const;  ///< index in nodes()

  /// Re-infers all types from the inputs' types (after binding dimensions or editing).
  void infer_types();
  /// Replaces dimension symbols by values everywhere (inputs, then inference).
  void bind_dimensions(const SymbolValues& values);

 private:
  std::vector<std::unique_ptr<Value>> values_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Node*> order_;
  std::vector<Value*> inputs_, outputs_;
  int next_value_ = 0, next_node_ = 0;
  Value* new_value(std::string name, TensorType type);
  friend struct GraphAccess;
};

/// The two operators the IR itself provides (registered by ops::registry() too).
///  fused  - body holds the original nodes; label and pattern say what it is
///  opaque - an operator kept unchanged; attrs: domain, op_type, raw (serialized ONNX attributes)
const OpInfo* fused_op();
const OpInfo* composite_op();
const OpInfo* opaque_op();
struct OpaqueAttrs {
  std::string domain, op_type, raw;
  std::string reason;  ///< why opfuse does not understand it
  template <class Self, class F>
  static void each(Self& s, F&& field) {
    field("domain", s.domain), field("op_type", s.op_type), field("raw", s.raw), field("reason", s.reason);
  }
};

/// Infers one node's result types with its operands' types and constants; errors carry the node.
std::vector<TensorType> infer_node(const OpInfo& op, const void* attrs, const std::vector<Value*>& inputs,
                                   size_t outputs);

/// Whether two statements about one value's type can both be true: unknown agrees with everything, a
/// symbolic dimension with any other.
bool compatible(const TensorType& a, const TensorType& b);

/// Checks every invariant; collects all problems, then throws E::internal once (or the first user error).
void verify(const Graph& graph);

// Text form (.fir). parse(print(g)) == g.
std::string print(const Graph& graph);
struct PrintOptions {
  bool types = true;
  bool sources = true;
  size_t max_constant_elements = 16;
};
std::string print(const Graph& graph, const PrintOptions& options);
/// Constants print as splat<0.5>, dense<1,2,3> (<= max_constant_elements), else as data<"hash"> with the
/// bytes elsewhere: in `ConstantData`, or in the side file of write_fir (ir/fir_file.hpp). rand<seed>
/// (text only) makes seeded values in [-1, 1). See ir/print.cpp and ir/parse.cpp.
Graph parse_graph(std::string_view text, const OpRegistry& registry);
using ConstantData = std::map<std::string, Tensor>;  ///< by content_hash(tensor).hex()
ConstantData constant_data(const Graph& graph);      ///< of bodies too
struct ParseOptions {
  ConstantData data;   ///< for data<"hash">
  std::string folder;  ///< for file<"name", offset>; empty: such constants are refused
};
Graph parse_graph(std::string_view text, const OpRegistry& registry, const ParseOptions& options);
/// Of dtype, sizes and bytes.
Hash128 content_hash(const Tensor& tensor);

/// Structural equality: same nodes, attributes, types and wiring up to value names and the order of
/// independent nodes. `why` receives the first difference.
bool equal(const Graph& a, const Graph& b, std::string* why = nullptr);
/// Stable structural hash (names excluded, constants by content hash when `with_constants`).
Hash128 structural_hash(const Graph& graph, bool with_constants = true);

}  // namespace opfuse
