// Text that is no graph: the problem, its line and column.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fail.hpp"
#include "ir/graph.hpp"
#include "ops/registry.hpp"

namespace opfuse {
namespace {

struct Case {
  const char* text;
  const char* message;  ///< part of it
};

class ParseErrors : public ::testing::TestWithParam<Case> {};

TEST_P(ParseErrors, NameTheProblemAndThePlace) {
  try {
    parse_graph(GetParam().text, ops());
    FAIL() << "parsed: " << GetParam().text;
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().name, "bad_text") << e.what();
    EXPECT_THAT(e.diagnostic().message, ::testing::HasSubstr(GetParam().message)) << GetParam().text;
    EXPECT_THAT(e.diagnostic().message, ::testing::HasSubstr("line ")) << GetParam().text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ParseErrors,
    ::testing::Values(
        Case{"", "expected \"graph\", found the end"}, Case{"grap (", "expected \"graph\""},
        Case{"graph x", "expected '('"}, Case{"graph (x", "expected a value such as %x"},
        Case{"graph (%x)", "expected ':'"}, Case{"graph (%x: f32)", "expected a type such as"},
        Case{"graph (%x: f33[1])", "unknown element type \"f33\""}, Case{"graph (%x: f32[1", "no closing ']'"},
        Case{"graph (%x: f32[1+])", "expected a dimension"},
        Case{"graph (%x: f32[1], %x: f32[1])", "%x is defined twice"},
        Case{"graph () {\n  return\n} x", "line 3, column 3: expected the end of the text"},
        Case{"graph () { relu }", "expected a statement or \"return\""},
        Case{"graph () { return %y }", "%y is not defined"},
        Case{"graph (%abc: f32[1]) { return %abd }", "did you mean %abc?"},
        Case{"graph () { %a relu() }", "expected '='"}, Case{"graph () { %a = ", "expected an operator, found the end"},
        Case{"graph () { %a = rleu() }", "did you mean \"relu\"?"},
        Case{"graph (%x: f32[1]) { %a = relu %x }", "expected '('"},
        Case{"graph (%x: f32[1]) { %a = relu(%x }", "expected ')'"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) {k} }", "expected '='"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) {= 1} }", "expected an attribute name"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) {k = 1, k = 2} }", "attribute \"k\" is given twice"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) {k = foo} }", "expected an attribute value"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) {k = [1, \"a\"]} }", "values of one type"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) {k = [true]} }", "a list holds integers, reals or strings"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) : i8[1] return %a }", "%a is declared i8[1] but relu gives f32[1]"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) : (f32[1], f32[1]) return %a }", "2 types for 1 results"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) @\"n\"(X@y) return %a }", "an opset is an integer"},
        Case{"graph (%x: f32[1]) { %a = relu(%x) @\"n return %a }", "quoted string does not end"},
        Case{"graph () { %a, %b = const splat<1> : f32[1] }", "a constant has one name"},
        Case{"graph () { %a = const 5 : f32[1] }", "expected splat<>"},
        Case{"graph () { %a = const splat<1 : f32[1] }", "expected '>'"},
        Case{"graph () { %a = const splat<1> f32[1] }", "expected ':'"},
        Case{"graph () { %a = const splat<1> : f32[n] }", "dimensions are numbers"},
        Case{"graph () { %a = const splat<1> : f32[-1] }", "not negative"},
        Case{"graph () { %a = const splat<1,2> : f32[2] }", "holds 2 values"},
        Case{"graph () { %a = const splat<x> : f32[2] }", "x is not a value of type f32"},
        Case{"graph () { %a = const dense<1> : f32[2] }", "holds 1 values for f32[2]"},
        Case{"graph () { %a = const dense<1,300> : i8[2] }", "300 is not a value of type i8"},
        Case{"graph () { %a = const dense<1,2.5> : i32[2] }", "2.5 is not a value of type i32"},
        Case{"graph () { %a = const splat<-1> : u64[2] }", "-1 is not a value of type u64"},
        Case{"graph () { %a = const hex<00> : f32[1] }", "hex<> holds 8 digits"},
        Case{"graph () { %a = const hex<0000000x> : f32[1] }", "hexadecimal"},
        Case{"graph () { %a = const rand<x> : f32[1] }", "rand<> holds one seed"},
        Case{"graph () { %a = const rand<1> : f32[1000000,1000000] }", "at most 1073741824 bytes"},
        Case{"graph () { %a = const splat<1> : f32[4611686018427387904,2] }", "too large"},
        Case{"graph () { %a = const data<\"00\"> : f32[1] }", "not at hand"},
        Case{"graph () { %a = const file<\"x\", 0> : f32[1] }", "read from a file"},
        Case{"graph () { %a = const file<\"x\"> : f32[1] }", "a quoted name and an offset"},
        Case{"graph () { %a = const splat<1> : string[1] }", "string constants are dense<>"},
        Case{"graph () { %a = const splat<1> : unknown[1] }", "a constant has an element type"},
        Case{"graph (%x: f32[1]) { %a = fused (%x) { yield %x } }", "expected a quoted string"},
        Case{"graph (%x: f32[1]) { %a = fused \"P\" (%x) { yield %x, %x } }", "yields 2 values for 1 results"},
        Case{"graph (%x: f32[1]) { %a = fused \"P\" (%x) { yield %x } : i8[1] return %a }", "the body gives f32[1]"},
        Case{"graph (%x: f32[1]) { %a = fused \"P\" (%x, %x) { yield %x } }", "%x is defined twice"},
        Case{"graph (%x: f32[1]) { %a = fused \"P\" (_) { yield %x } }", "\"as\" after an absent operand"},
        Case{"graph () { meta \"a }", "does not end"}, Case{"graph (%\"\": f32[1]) { return }", "a value has a name"},
        Case{"graph (%x: f32[1]) { %\"a\" = relu(%x) %a = relu(%x) return %a }", "%a is defined twice"}));

TEST(ParseErrors, OfInferenceKeepTheirCodeAndGainALine) {
  try {
    parse_graph("graph (%x: f32[2], %y: f32[3]) {\n  %a = add(%x, %y) @\"sum\"(Add@14)\n  return %a\n}", ops());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.diagnostic().name, "shape_mismatch") << e.what();
    EXPECT_EQ(e.diagnostic().node, "sum");
    EXPECT_EQ(e.diagnostic().op, "Add, opset 14");
    EXPECT_EQ(e.diagnostic().during, "reading line 2");
  }
}

TEST(ParseErrors, BodiesNestOnlySoDeep) {
  std::string text = "graph (%x: f32[1]) { ";
  for (int i = 0; i < 100000; ++i) text += "%a = fused \"P\" (%x) { ";
  EXPECT_THROW(parse_graph(text, ops()), Error);
}

}  // namespace
}  // namespace opfuse
