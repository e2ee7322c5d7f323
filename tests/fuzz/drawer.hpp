// Draws a random graph node by node and computes every value as it goes, so that an operator only meets operands that
// it can take: logarithms of positive numbers, sums that stay exact, indices inside their tables.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "interp/random_inputs.hpp"
#include "ir/graph.hpp"

namespace opfuse::fuzz {

/// A value of the graph with its data for the drawn sizes.
struct Known {
  Value* value = nullptr;
  Tensor data;                          ///< reals in double
  double low = 0, high = 0, least = 0;  ///< least: smallest magnitude
  int reads = 0;

  DType dtype() const { return value->type.dtype; }
  const std::vector<int64_t>& sizes() const { return data.sizes(); }
  size_t rank() const { return data.rank(); }
  double magnitude() const { return std::max(std::abs(low), std::abs(high)); }
  bool real() const { return is_float(value->type.dtype); }
  bool open() const { return !value->type.shape.is_static(); }
};

struct DrawOptions {
  int nodes = 30;
  bool exact = false;       ///< every sum is exact in the values' types: results have to be equal bit for bit
  bool open = false;        ///< inputs have open dimensions
  bool zero = false;        ///< extents may be 0
  DType type = DType::f32;  ///< of the float inputs
  bool codes = false;       ///< convolutions of codes too
  bool attention = false;   ///< of codes too
};

struct Drawn {
  Graph graph;
  SymbolValues symbols;                ///< sizes that the values were computed for
  std::map<std::string, Tensor> data;  ///< of every value, by name
};

class Drawer {
 public:
  Drawer(uint64_t seed, DrawOptions options);

  const DrawOptions& options() const { return options_; }
  Graph& graph() { return graph_; }
  const std::deque<Known>& pool() const { return pool_; }

  // Numbers.
  int64_t between(int64_t low, int64_t high) { return random_.between(low, high); }
  bool chance(double p) { return random_.uniform() < p; }
  template <class T>
  T one_of(const std::vector<T>& list) {
    return list[static_cast<size_t>(between(0, static_cast<int64_t>(list.size()) - 1))];
  }
  int64_t extent();  ///< 1, 2, 3, primes, powers of two, now and then 0
  double number();   ///< of the kind that constants hold
  double inside(double low, double high) { return low + (high - low) * random_.uniform(); }

  // Operands: null when the pool has none. The newest and those not read yet come more often.
  const Known* pick(const std::function<bool(const Known&)>& fits);
  const Known* pick_real(size_t min_rank = 0, size_t max_rank = 6);
  const Known& known(const Value* value) const;

  Value* constant(const std::vector<int64_t>& sizes, DType dtype);  ///< of number()
  Value* constant(const std::vector<int64_t>& sizes, DType dtype, double low, double high);
  Value* integers(const std::vector<int64_t>& values);
  Value* scalar(DType dtype, double value);
  Value* filled(const std::vector<int64_t>& sizes, DType dtype, const std::function<double(int64_t)>& element);

  /// Adds the node when its results are known, small, finite (and exact, where that is asked for); else null and
  /// nothing has changed. `jumps`: results change by leaps, so operands close to a leap are refused.
  Node* add(const char* op, const AttrMap& attrs, const std::vector<Value*>& inputs, size_t outputs = 1,
            bool jumps = false);
  Value* add1(const char* op, const AttrMap& attrs, const std::vector<Value*>& inputs) {
    const Node* node = add(op, attrs, inputs);
    return node ? node->output() : nullptr;
  }

  Drawn finish();

 private:
  DrawOptions options_;
  Random random_;
  Graph graph_;
  SymbolValues symbols_;
  std::deque<Known> pool_, constants_;  // deques: references last
  int named_ = 0;

  void add_inputs();
  void add_input(std::vector<Dim> dims, DType dtype);
  Known measure(Value* value, Tensor data) const;
  bool acceptable(const Known& result);
  bool leaps(const Node& node, const std::vector<const Tensor*>& operands, const std::vector<Tensor>& results);
};

/// One operator or block onto the graph; false when nothing fitted. See operators.cpp for the table.
bool draw_something(Drawer& drawer);

/// A graph of about options.nodes nodes.
Drawn draw_graph(uint64_t seed, const DrawOptions& options);

/// The options that belong to a seed.
DrawOptions options_of(uint64_t seed);

}  // namespace opfuse::fuzz
