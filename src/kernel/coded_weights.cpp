#include "kernel/coded_weights.hpp"

#include "kernel/view_parts.hpp"

namespace opfuse {
namespace {

const Expr* cast_of(const Expr& e, DType to) {
  return e.op() == ExprOp::cast && e.dtype() == to ? &e.args()[0] : nullptr;
}

/// A read, widened or not; -1: something else.
int read_in(const Expr& e) {
  const Expr& inner = e.op() == ExprOp::cast ? e.args()[0] : e;
  return inner.op() == ExprOp::read ? inner.index() : -1;
}

class Finder {
 public:
  Finder(const Region& region, const Stage& stage) : region_(region), stage_(stage) {}

  /// `weights`: a factor of the sum.
  std::optional<CodedWeights> find(const Expr& weights) {
    if (weights.op() != ExprOp::mul || weights.dtype() != DType::f32) return std::nullopt;
    const Expr* centred = cast_of(weights.args()[0], DType::f32);
    coded_.scales = read_in(weights.args()[1]);
    if (!centred || coded_.scales < 0) return std::nullopt;
    Expr code = *centred;
    if (code.op() == ExprOp::sub) {
      const Expr& zero = code.args()[1];
      if (zero.is_constant())
        coded_.zero = zero.integer_value();
      else if ((coded_.zeros = read_in(zero)) < 0 || dtype_of(region_, read(coded_.zeros)) != DType::u8)
        return std::nullopt;
      code = Expr(code.args()[0]);
    }
    if (!is_code(code) || !places_agree()) return std::nullopt;
    return coded_;
  }

 private:
  const Region& region_;
  const Stage& stage_;
  CodedWeights coded_;
  int row_ = -1;  ///< axis of the rows

  const Read& read(int index) const { return stage_.reads[static_cast<size_t>(index)]; }

  /// words >> bits * (row % unit) & mask
  bool is_code(const Expr& e) {
    if (e.op() != ExprOp::bit_and || !e.args()[1].is_constant()) return false;
    const int64_t mask = e.args()[1].integer_value();
    coded_.bits = mask == 3 ? 2 : mask == 15 ? 4 : mask == 255 ? 8 : 0;
    const Expr& shifted = e.args()[0];
    if (!coded_.bits || shifted.op() != ExprOp::shift_right) return false;
    coded_.words = read_in(shifted.args()[0]);
    const Expr* shift = cast_of(shifted.args()[1], DType::i32);
    if (coded_.words < 0 || !shift) return false;
    shift->visit([&](const Expr& x) {
      if (x.op() == ExprOp::coord) row_ = x.index();
    });
    const IndexExpr place{{{coded_.bits, row_, 1, coded_.unit()}}, 0, {}};
    // by text: the generator's library has an expression table of its own
    return row_ >= static_cast<int>(stage_.domain.size()) && shift->text() == index_value(place).text();
  }

  /// Words, scales and zero points lie at the same column, constants all of them.
  bool places_agree() {
    const Read& words = read(coded_.words);
    const Dim& depth = axis_extent(stage_, row_);
    if (!depth.is_constant() || words.map.dims.size() != 2) return false;
    const IndexExpr word_row{{{1, row_, coded_.unit(), 0}}, 0, {}};
    if (!(words.map.dims[0] == word_row) || dtype_of(region_, words) != DType::i32) return false;
    const IndexExpr& block_row = read(coded_.scales).map.dims[0];
    coded_.block = depth.value();
    if (!block_row.terms.empty()) coded_.block = block_row.terms[0].div.constant().value_or(0);
    if (coded_.block != depth.value() && (coded_.block <= 0 || coded_.block % coded_.unit() != 0)) return false;
    for (const int other : {coded_.words, coded_.scales, coded_.zeros}) {
      if (other < 0) continue;
      const Read& r = read(other);
      if (r.stage >= 0 || !is_constant(region_, r) || r.map.dims.size() != 2) return false;
      if (!(r.map.dims[1] == words.map.dims[1])) return false;
      if (other != coded_.words && !(r.map.dims[0] == block_row)) return false;
    }
    if (!block_row.terms.empty() && !(block_row == IndexExpr{{{1, row_, coded_.block, 0}}, 0, {}})) return false;
    coded_.map = words.map;
    coded_.map.dims[0] = IndexExpr{{{1, row_}}, 0, {}};
    return true;
  }
};

}  // namespace

std::optional<CodedWeights> coded_weights(const Region& region, const Stage& stage) {
  if (stage.reductions.size() != 1 || stage.reductions[0].kind != ReduceKind::sum) return std::nullopt;
  const Expr& e = stage.reductions[0].value;
  if (e.op() != ExprOp::mul || e.dtype() != DType::f32) return std::nullopt;
  for (const Expr& factor : e.args())
    if (auto found = Finder(region, stage).find(factor)) return found;
  return std::nullopt;
}

Region with_plain_weights(const Region& region, int stage, const CodedWeights& coded) {
  Region plain = region;
  Stage& s = plain.stages[static_cast<size_t>(stage)];
  Read& weights = s.reads[static_cast<size_t>(coded.words)];
  TensorType& type = plain.params[static_cast<size_t>(weights.index)].type;
  type = {DType::f32,
          Shape{s.reduce[static_cast<size_t>(coded.map.dims[0].terms[0].axis) - s.domain.size()], type.shape[1]}};
  weights.map = coded.map;
  const Expr product = s.reductions[0].value;
  const bool left = Finder(region, region.stages[static_cast<size_t>(stage)]).find(product.args()[0]).has_value();
  s.reductions[0].value = Expr::make(ExprOp::mul, {product.args()[left ? 1 : 0], Expr::read(coded.words, DType::f32)});
  return plain;
}

}  // namespace opfuse
