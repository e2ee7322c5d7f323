// What must hold of every operator, whatever it computes: its law means the same on doubles, typed constants and
// expressions; inference predicts the reference; attributes survive the way to text form and back.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/run_op.hpp"

namespace opfuse {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<const OpInfo*> ops_with_law() {
  std::vector<const OpInfo*> out;
  for (const OpInfo* info : ops().all())
    if (info->law) out.push_back(info);
  return out;
}

/// Operands of an operator that would accept `dtype`: all of that dtype, a boolean condition for `where`.
std::vector<Tensor> operands_of(const OpInfo& op, DType dtype) {
  const std::vector<double> edges = is_float(dtype)
                                        ? std::vector<double>{-kInf, -2.5, -1, -0.0, 0, 0.3, 1, 2.5, 7, kInf, kNan}
                                        : std::vector<double>{0, 1, 2, 3, 5, 7, 11, 13, 17, 100, 127};
  std::vector<Tensor> out;
  for (size_t k = 0; k < op.inputs.size() + (op.inputs.back().variadic ? 2 : 0); ++k) {
    if (k < op.inputs.size() && op.inputs[k].optional) continue;
    const bool condition = op.name == "where" && k == 0;
    std::vector<double> values(edges.size());
    for (size_t i = 0; i < edges.size(); ++i) values[i] = edges[(i * (2 * k + 1) + 3 * k) % edges.size()];
    if (condition)
      for (double& v : values) v = v > 0;
    out.push_back(reals(condition ? DType::boolean : dtype, values));
  }
  return out;
}

ScalarValue element(const Tensor& t, int64_t i) {
  return is_float(t.dtype()) ? ScalarValue{t.dtype(), t.real(i), 0} : ScalarValue{t.dtype(), 0, t.integer(i)};
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-12 * std::max(1.0, std::fabs(a));
}

/// Compares the reference with the expression of the law, element by element. False: the dtype is not accepted.
bool check_law(const OpInfo& op, DType dtype) {
  const std::vector<Tensor> in = operands_of(op, dtype);
  const auto attrs = op.attrs_from_map({});
  if (error_of([&] { infer_op(op.name, {}, in); }) != "none") return false;
  const TensorType type = infer_op(op.name, {}, in).at(0);
  const Tensor out = run_op(op.name, {}, in, Precision::exact);
  std::vector<Expr> operands;
  for (size_t k = 0; k < in.size(); ++k) operands.push_back(Expr::read(static_cast<int>(k), in[k].dtype()));
  const Expr law = op.law(attrs.get(), operands);
  EXPECT_EQ(law.dtype(), type.dtype) << op.name;
  EXPECT_EQ(out.dtype(), is_float(type.dtype) ? DType::f64 : type.dtype) << op.name;
  EXPECT_EQ(Shape::of(out.sizes()), type.shape) << op.name;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const ScalarValue want = evaluate(
        law, Precision::exact, [&](const Expr& leaf) { return element(in[static_cast<size_t>(leaf.index())], i); });
    EXPECT_TRUE(same(out.real(i), want.as_real())) << op.name << " " << name_of(dtype) << " element " << i << ": "
                                                   << out.real(i) << " and " << want.as_real() << "\n"
                                                   << law.text();
  }
  return true;
}

TEST(EveryLaw, MeansTheSameInEveryDomain) {
  for (const OpInfo* op : ops_with_law()) {
    int accepted = 0;
    for (DType dtype : {DType::f64, DType::i64, DType::i32, DType::u8, DType::boolean})
      accepted += check_law(*op, dtype);
    EXPECT_GT(accepted, 0) << op->name << " accepts no element type";
  }
}

TEST(EveryOperator, HasADocAndItsAttributesSurviveTheMap) {
  EXPECT_GT(ops().all().size(), 60u);
  for (const OpInfo* op : ops().all()) {
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_FALSE(op->outputs.empty()) << op->name;
    if (!op->attrs_from_map) continue;
    const auto attrs = op->attrs_from_map(op->default_attrs);
    EXPECT_EQ(op->attrs_to_map(attrs.get()), op->default_attrs) << op->name;
    EXPECT_EQ(error_of([&] { op->attrs_from_map({{"no_such_attribute", int64_t{1}}}); }), "bad_attribute") << op->name;
  }
}

TEST(EveryOperator, ToleratesOperandsOfUnknownRank) {
  for (const OpInfo* op : ops().all()) {
    if (!op->infer) continue;
    for (DType dtype : {DType::f32, DType::i64, DType::u8, DType::boolean}) {
      size_t required = 0;
      for (size_t i = 0; i < op->inputs.size(); ++i)
        if (!op->inputs[i].optional) required = i + 1;
      for (size_t count = required; count <= op->inputs.size() + op->inputs.back().variadic; ++count) {
        std::vector<TensorType> types(count, {dtype, Shape::unknown()});
        if (op->name == "where") types[0].dtype = DType::boolean;
        const auto infer = [&] {
          const auto attrs = op->attrs_from_map({});
          for (const TensorType& type : op->infer(attrs.get(), Inference(types, {}, 1)))
            EXPECT_TRUE(!type.shape.ranked || type.shape.rank() <= 1) << op->name << " " << type.text();
        };
        EXPECT_NE(error_of(infer), "internal") << op->name;
      }
    }
  }
}

TEST(Attributes, AreReadByTypeWithTheLenienceOfTheTextForm) {
  auto alpha = [](const AttrValue& value) {
    const OpInfo* op = op_named("leaky_relu");
    return std::get<double>(*find(op->attrs_to_map(op->attrs_from_map({{"alpha", value}}).get()), "alpha"));
  };
  EXPECT_EQ(alpha(0.5), 0.5);
  EXPECT_EQ(alpha(int64_t{2}), 2.0);
  EXPECT_EQ(error_of([&] { alpha(std::string("2")); }), "bad_attribute");
  auto with = [](std::string_view op, const AttrMap& map) { op_named(op)->attrs_from_map(map); };
  EXPECT_EQ(error_of([&] { with("gelu", {{"form", std::string("cubic")}}); }), "bad_attribute");
  EXPECT_EQ(error_of([&] { with("squeeze", {{"axes", std::vector<double>{}}}); }), "none");
  EXPECT_EQ(error_of([&] { with("mod", {{"fmod", int64_t{1}}}); }), "none");
  EXPECT_EQ(error_of([&] { with("mod", {{"fmod", int64_t{2}}}); }), "bad_attribute");
  EXPECT_EQ(error_of([&] { with("cast", {{"to", std::string("f16")}}); }), "none");
  EXPECT_EQ(error_of([&] { with("cast", {{"to", std::string("f17")}}); }), "bad_attribute");
}

TEST(Registry, SuggestsANameForAMistypedOne) {
  EXPECT_EQ(op_named("relu")->name, "relu");
  EXPECT_EQ(error_of([] { op_named("rellu"); }), "unknown_name");
}

TEST(Inference, RefusesElementTypesThatHaveNoMeaning) {
  const Tensor f = reals(DType::f32, {1}), i = integers(DType::i32, {1}), d = reals(DType::f64, {1});
  EXPECT_EQ(error_of([&] { infer_op("exp", {}, {i}); }), "unsupported_dtype");
  EXPECT_EQ(error_of([&] { infer_op("add", {}, {f, d}); }), "dtype_mismatch");
  EXPECT_EQ(error_of([&] { infer_op("and", {}, {f, f}); }), "unsupported_dtype");
  EXPECT_EQ(error_of([&] { infer_op("where", {}, {f, f, f}); }), "dtype_mismatch");
  EXPECT_EQ(error_of([&] { infer_op("bit_shift", {}, {f, f}); }), "unsupported_dtype");
}

TEST(Broadcast, FollowsNumpyAndKeepsSymbols) {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  EXPECT_EQ(broadcast(Shape{2, 3}, Shape{3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast(Shape{2, 1, 4}, Shape{3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast(Shape{}, Shape{5}), (Shape{5}));
  EXPECT_EQ(broadcast(Shape{0, 3}, Shape{1, 3}), (Shape{0, 3}));
  EXPECT_EQ(broadcast(Shape{n, 3}, Shape{n, 1}), (Shape{n, 3}));
  EXPECT_EQ(broadcast(Shape{n}, Shape{1}), (Shape{n}));
  EXPECT_EQ(broadcast(Shape{n}, Shape{8}), (Shape{8}));
  EXPECT_EQ(broadcast(Shape{n}, Shape{m}), (Shape{max(n, m) * min(min(n, m), 1)}));
  EXPECT_EQ(broadcast(Shape{n}, Shape{min(n, 8)}), (Shape{n}));                    // positions cut from a table
  EXPECT_EQ(broadcast(Shape{n}, Shape{max(0, min(130, n + 2) - 2)}), (Shape{n}));  // and moved, as in RoBERTa
  EXPECT_NE(broadcast(Shape{n}, Shape{max(0, min(130, n + 2) - 3)}), (Shape{n}));
  EXPECT_EQ(broadcast(Shape{min(8, n)}, Shape{n}), (Shape{n}));
  EXPECT_EQ(broadcast(broadcast(Shape{n}, Shape{m}), Shape{min(n, 8)}), broadcast(Shape{n}, Shape{m}));
  EXPECT_NE(broadcast(Shape{n}, Shape{min(m, 8)}), (Shape{n}));
  EXPECT_NE(broadcast(Shape{n}, Shape{min(n, m)}), (Shape{n}));  // with m = 0
  EXPECT_FALSE(broadcast(Shape::unknown(), Shape{8}).ranked);
  EXPECT_EQ(error_of([] { broadcast(Shape{2}, Shape{3}); }), "shape_mismatch");
  EXPECT_EQ(error_of([] { broadcast(Shape{0}, Shape{3}); }), "shape_mismatch");
}

TEST(Broadcast, OpenExtentsAreTheSameInEveryOrder) {
  const Shape n{Dim::symbol("n")}, m{Dim::symbol("m")}, k{Dim::symbol("k")}, longer{Dim::symbol("n") + 1};
  EXPECT_EQ(broadcast(broadcast(n, m), k), broadcast(n, broadcast(k, m)));
  EXPECT_EQ(broadcast(broadcast(n, m), m), broadcast(m, n));
  EXPECT_EQ(broadcast(longer, Shape{Dim::symbol("m") + 1})[0], max(longer[0], Dim::symbol("m") + 1));  // never empty
  const Dim all = broadcast(broadcast(n, m), k)[0];
  EXPECT_EQ(Dim::parse(all.text()), all);
  EXPECT_EQ(all.evaluate({{"n", 0}, {"m", 1}, {"k", 1}}), 0);
  EXPECT_EQ(all.evaluate({{"n", 1}, {"m", 5}, {"k", 1}}), 5);
}

}  // namespace
}  // namespace opfuse
