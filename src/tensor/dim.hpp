// A dimension: an integer, or an expression over named symbols ("batch", "(h + 1) / 2").
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace opfuse {

/// Values of dimension symbols by name.
using SymbolValues = std::map<std::string, int64_t>;

enum class DimOp { symbol, constant, add, mul, floor_div, mod, min, max };

struct DimNode;

/// Immutable integer expression, kept in a canonical form (a sum of integer-weighted products, terms
/// sorted), so that equal expressions such as `n*2 + 1` and `1 + 2*n` compare equal. Arithmetic on
/// constants folds; overflow throws E::bad_dimension.
class Dim {
 public:
  Dim() : Dim(0) {}
  Dim(int64_t value) : value_(value) {}  // NOLINT: implicit by design, `Shape{1, 3, 8, 8}`
  static Dim symbol(std::string name);

  bool is_constant() const { return node_ == nullptr; }
  std::optional<int64_t> constant() const { return is_constant() ? std::optional<int64_t>(value_) : std::nullopt; }
  /// The constant value; E::unknown_dimension when symbolic.
  int64_t value() const;
  /// The value under the given symbols; E::missing_dimension names a symbol without a value.
  int64_t evaluate(const SymbolValues& symbols) const;
  /// Replaces the symbols that have values.
  Dim substitute(const SymbolValues& symbols) const;
  void collect_symbols(std::set<std::string>& into) const;

  // Structure, for code generators. A constant Dim has op() == constant.
  DimOp op() const;
  const std::string& symbol_name() const;
  const std::vector<Dim>& args() const;

  std::string text() const;
  /// Parses what text() prints. Throws E::bad_text.
  static Dim parse(std::string_view text);

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);
  bool operator==(const Dim& other) const;

 private:
  int64_t value_ = 0;
  std::shared_ptr<const DimNode> node_;
  explicit Dim(std::shared_ptr<const DimNode> node) : node_(std::move(node)) {}
  friend struct DimBuilder;
};

/// Dimensions of a value; `ranked == false` when not even the number of dimensions is known (only
/// results of opaque nodes).
struct Shape {
  std::vector<Dim> dims;
  bool ranked = true;

  Shape() = default;
  Shape(std::initializer_list<Dim> list) : dims(list) {}
  explicit Shape(std::vector<Dim> list) : dims(std::move(list)) {}
  static Shape of(const std::vector<int64_t>& sizes);
  static Shape unknown();

  size_t rank() const { return dims.size(); }
  Dim& operator[](size_t i) { return dims[i]; }
  const Dim& operator[](size_t i) const { return dims[i]; }
  bool is_static() const;
  /// Product of all dimensions (1 for a scalar).
  Dim elements() const;
  /// Concrete sizes; throws E::unknown_dimension when symbolic.
  std::vector<int64_t> sizes() const;
  std::vector<int64_t> evaluate(const SymbolValues& symbols) const;
  std::string text() const;  ///< "[1,3,h,w]", "[]", "[*]" when unranked
  bool operator==(const Shape&) const = default;
};

}  // namespace opfuse
