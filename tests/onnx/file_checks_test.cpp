// What is wrong with a file whatever its operators mean, one row a mistake; and declarations that are not so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "onnx/model_bytes.hpp"
#include "onnx/read.hpp"

namespace opfuse::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kU8 = 2, kI8 = 3, kBool = 9;

std::vector<Diagnostic> told(const ModelBytes& model) {
  std::vector<Diagnostic> problems;
  try {
    read_onnx_bytes(model.text(), {}, {.problems = &problems});
  } catch (const Error&) {
    EXPECT_FALSE(problems.empty());
  }
  return problems;
}

ModelBytes relu() {
  return {.graph = {.nodes = {node("Relu", {"x"}, {"y"}, {}, "relu")},
                    .inputs = {value_info("x", kFloat, {"2", "4"})},
                    .outputs = {value_info("y", kFloat, {"2", "4"})}}};
}

/// y = softmax(x) with these attributes
ModelBytes softmax(const Strings& attributes) {
  ModelBytes m = relu();
  m.graph.nodes = {node("Softmax", {"x"}, {"y"}, attributes, "softmax")};
  return m;
}

/// y = x where w, an initializer of [4]; its data are `fields`
ModelBytes with_weight(int64_t type, const Encoder& fields) {
  Encoder t;
  t.integers(1, {4}), t.integer(2, type), t.bytes(8, "w"), t.raw(fields.text());
  ModelBytes m = relu();
  m.graph.nodes.push_back(node("Cast", {"w"}, {"z"}, {attribute("to", int64_t{1})}, "cast"));
  m.graph.initializers = {t.text()};
  return m;
}

Encoder raw(const std::string& bytes) {
  Encoder e;
  e.bytes(9, bytes);
  return e;
}

Encoder numbers(uint32_t field, const std::vector<int64_t>& values) {
  Encoder e;
  e.integers(field, values);
  return e;
}

Encoder both(Encoder first, const Encoder& second) {
  first.raw(second.text());
  return first;
}

/// An attribute with the value 1 in field 3 (i) and 1.5 in field 2 (f), said to be of `type`.
std::string two_values(int64_t type) {
  Encoder a;
  a.bytes(1, "axis"), a.real(2, 1.5F), a.integer(3, 1), a.integer(20, type);
  return a.text();
}

std::string real_said_to_be_integer() {
  Encoder a;
  a.bytes(1, "axis"), a.real(2, 1.5F), a.integer(20, 2);
  return a.text();
}

ModelBytes opsets_of(const Strings& sets) {
  ModelBytes m = relu();
  Encoder extra;
  for (const std::string& set : sets) extra.bytes(8, set);
  m.extra = extra.text();
  return m;
}

ModelBytes with_default(int64_t type, const Strings& dims) {
  ModelBytes m = relu();
  m.graph.inputs.push_back(value_info("w", type, dims));
  m.graph.initializers = {tensor("w", kFloat, {4}, floats({1, 2, 3, 4}))};
  return m;
}

ModelBytes version(int64_t ir) {
  ModelBytes m = relu();
  m.ir = ir;
  return m;
}

struct Mistake {
  const char* what;
  ModelBytes model;
  std::string code, says;
};

std::vector<Mistake> mistakes() {
  const std::string four = floats({1, 2, 3, 4});
  return {
      {"no IR version", version(0), "E0109", "no ONNX IR version"},
      {"two opsets", opsets_of({operator_set("ai.onnx", 11)}), "E0109", "opset 17 and opset 11"},
      {"raw and typed", with_weight(1, both(raw(four), numbers(5, {1}))), "E0105", "in raw_data and in int32_data"},
      {"two lists", with_weight(7, both(numbers(7, {1, 2, 3, 4}), numbers(5, {1}))), "E0105", "twice"},
      {"another list", with_weight(1, numbers(5, {1, 2, 3, 4})), "E0105",
       "of type FLOAT and has its data in int32_data"},
      {"too many bytes", with_weight(1, raw(four + "1")), "E0105", "16 bytes) but has 17"},
      {"beyond i8", with_weight(kI8, numbers(5, {1, 300, 2, 3})), "E0105", "300, which i8 cannot hold"},
      {"below u8", with_weight(kU8, numbers(5, {1, -3, 2, 3})), "E0105", "-3, which u8 cannot hold"},
      {"a third boolean", with_weight(kBool, raw(std::string("\0\1\2\1", 4))), "E0105", "the byte 2"},
      {"a third boolean in a list", with_weight(kBool, numbers(5, {0, 1, 2, 1})), "E0105", "which bool cannot hold"},
      {"default of another type", with_default(kInt64, {"4"}), "E0202", "declared INT64 and its initializer is FLOAT"},
      {"default of another shape", with_default(kFloat, {"1"}), "E0204", "declared [1] and its initializer is [4]"},
      {"two values", softmax({two_values(2)}), "E0107", "of type INT and holds FLOAT and INT"},
      {"a value of another type", softmax({real_said_to_be_integer()}), "E0107", "of type INT and holds FLOAT"},
      {"twice", softmax({attribute("axis", int64_t{0}), attribute("axis", int64_t{1})}), "E0107", "given twice"},
      {"no name", softmax({attribute("", int64_t{0})}), "E0107", "an attribute has no name"},
      {"a reference", softmax({reference_attribute("axis", "k", 2)}), "E0107", "and the node is in none"},
  };
}

TEST(FileChecks, EachMistakeIsToldOnceWithWhatHelps) {
  EXPECT_THAT(told(relu()), IsEmpty());
  for (const Mistake& m : mistakes()) {
    const std::vector<Diagnostic> all = told(m.model);
    ASSERT_EQ(all.size(), 1u) << m.what;
    EXPECT_EQ(all[0].code, m.code) << m.what;
    EXPECT_THAT(all[0].message, HasSubstr(m.says)) << m.what;
    EXPECT_FALSE(all[0].hint.empty()) << m.what;
    EXPECT_THROW(read_onnx_bytes(m.model.text()), Error) << m.what;
  }
}

TEST(FileChecks, AllOfAModelAreToldTogether) {
  ModelBytes m = softmax({attribute("axis", int64_t{0}), attribute("axis", int64_t{1})});
  m.ir = 99;
  m.graph.initializers = {tensor("w", kFloat, {4}, "")};
  m.graph.nodes.push_back(node("Add", {"y", "q"}, {"z"}, {}, "sum"));
  std::vector<std::string> codes;
  for (const Diagnostic& d : told(m)) codes.push_back(d.code);
  EXPECT_THAT(codes, ElementsAre("E0109", "E0107", "E0102", "E0105"));
}

TEST(FileChecks, NodesOfFunctionsAndBodiesAreLookedAt) {
  ModelBytes m = relu();
  m.domains = {"f"};
  m.functions = {
      function("f", "F", {"p"}, {"q"}, {"k"},
               {node("Softmax", {"p"}, {"q"}, {reference_attribute("axis", "k", 2), two_values(2)}, "inner")})};
  const auto inside = told(m);
  ASSERT_EQ(inside.size(), 2u);
  EXPECT_EQ(inside[0].node, "inner");
  m = relu();
  const std::string branch = GraphBytes{
      .nodes = {node("Softmax", {"x"}, {"r"}, {two_values(2)}, "in branch")},
      .outputs = {value_info(
          "r", kFloat, {})}}.text();
  m.graph.nodes = {node("If", {"go"}, {"y"},
                        {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)}, "if")};
  m.graph.initializers = {tensor("go", kBool, {}, std::string(1, '\1'))};
  const auto in_branch = told(m);
  ASSERT_EQ(in_branch.size(), 1u);
  EXPECT_EQ(in_branch[0].node, "in branch");
}

TEST(FileChecks, AnOutputHasTheElementTypeThatIsDeclared) {
  ModelBytes m = relu();
  m.graph.outputs = {value_info("y", kInt64, {"2", "4"})};
  const auto all = told(m);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].code, "E0202");
  EXPECT_EQ(all[0].node, "relu");
  EXPECT_EQ(all[0].message, "graph output \"y\" is declared i64[2,4] and is f32[2,4]");
}

TEST(FileChecks, ShapesThatAreNotSoAreRemarks) {
  ModelBytes m = relu();
  m.graph.nodes = {node("Relu", {"x"}, {"a"}, {}, "relu"), node("Neg", {"a"}, {"y"}, {}, "neg")};
  m.graph.outputs = {value_info("y", kFloat, {"2", "5"})};
  m.graph.values = {value_info("a", kFloat, {"2", "4", "1"}), value_info("elsewhere", kFloat, {"7"})};
  std::vector<std::string> remarks;
  EXPECT_EQ(read_onnx_bytes(m.text(), {}, {.remarks = &remarks}).outputs()[0]->type.text(), "f32[2,4]");
  EXPECT_THAT(
      remarks,
      ElementsAre("graph output \"y\" is declared f32[2,5] in the file and is f32[2,4], as follows from its node",
                  "tensor \"a\" is declared f32[2,4,1] in the file and is f32[2,4], as follows from its node"));
  m.graph.outputs = {value_info("y", kFloat, {"N", "4"})};
  m.graph.values = {value_info("a", kFloat, {"", "-1"})};
  remarks.clear();
  read_onnx_bytes(m.text(), {}, {.remarks = &remarks});
  EXPECT_THAT(remarks, IsEmpty());
}

}  // namespace
}  // namespace opfuse::test
