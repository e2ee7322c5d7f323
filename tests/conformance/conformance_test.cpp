// ONNX's backend test suite. A case whose operators are all declared must give the expected outputs, or be refused
// with an E::unsupported_* error and stand in refused.txt; the list must be exact. Every engine runs every case.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>

#include "base/fail.hpp"
#include "base/mapped_file.hpp"
#include "conformance/cases.hpp"
#include "conformance/engines.hpp"
#include "interp/interpreter.hpp"
#include "onnx/mutate.hpp"
#include "onnx/read.hpp"
#include "onnx/write.hpp"
#include "opfuse/error.hpp"

namespace opfuse::conformance {

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

namespace {

bool is_refusal(const Error& error) { return error.diagnostic().code.starts_with("E03"); }

/// The suite's own tolerances (onnx/backend/test/runner): rtol 1e-3, atol 1e-7. Its bfloat16 data was made by cutting
/// bits off, where ONNX demands rounding: one unit in the last place is allowed.
void expect_close(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  const double rtol = want.dtype() == DType::bf16 ? 1.0 / 128 : 1e-3;
  for (int64_t i = 0; i < want.elements(); ++i) {
    if (!is_float(want.dtype())) {
      ASSERT_EQ(got.integer(i), want.integer(i)) << what << " element " << i;
      continue;
    }
    const double g = got.real(i), w = want.real(i);
    if (std::isnan(w) || std::isinf(w)) {
      ASSERT_TRUE(g == w || (std::isnan(g) && std::isnan(w))) << what << " element " << i << ": " << g << " for " << w;
    } else {
      ASSERT_NEAR(g, w, 1e-7 + rtol * std::abs(w)) << what << " element " << i;
    }
  }
}

/// The model when the types of its results are known, else nothing.
std::optional<Graph> read_if_known(const Case& c, const ReadOptions& options) {
  try {
    Graph graph = read_onnx(c.folder + "/model.onnx", options);
    for (const Value* output : graph.outputs())
      if (output->type.dtype == DType::unknown || !output->type.shape.ranked) return std::nullopt;
    return graph;
  } catch (const Error& error) {
    if (error.diagnostic().name != "unknown_dimension") throw;
    return std::nullopt;
  }
}

/// Many cases pass shapes and axes as graph inputs. Where the result's shape depends on their values, all inputs but
/// the first are read as constants, and when that is not enough the first one too.
Graph read_case(const Case& c, DataSet& set) {
  const std::vector<std::string> names = input_names(c);
  for (size_t free = set.inputs.size();; free = std::min<size_t>(free - 1, 1)) {
    ReadOptions options;
    for (size_t i = free; i < names.size() && i < set.inputs.size(); ++i)
      options.fixed_inputs[names[i]] = set.inputs[i];
    auto graph = read_if_known(c, options);
    if (!graph && free > 0) continue;
    set.inputs.resize(free);
    return graph ? std::move(*graph) : read_onnx(c.folder + "/model.onnx", options);
  }
}

/// The packaged data holds bfloat16 values as 16 bit integers.
Tensor as_declared(const Tensor& tensor, DType declared) {
  if (declared != DType::bf16 || tensor.dtype() != DType::u16) return tensor;
  return Tensor::wrap(DType::bf16, tensor.sizes(), tensor.data(), std::make_shared<Tensor>(tensor));
}

/// CastLike's second operand, of which only the type matters, has one element where the model declares more.
Tensor as_input(const Tensor& tensor, const TensorType& declared) {
  const bool shortened = tensor.elements() == 1 && declared.shape.is_static() && declared.shape.elements() != 1;
  return shortened ? Tensor(declared.dtype, declared.shape.sizes()) : as_declared(tensor, declared.dtype);
}

/// What the interpreter would say, before its inputs are looked at (they may be strings).
void refuse_opaque_nodes(const Graph& graph) {
  for (const Node* node : graph.nodes())
    if (node->is("opaque"))
      throw fail(E::unsupported_op, "{}", static_cast<const OpaqueAttrs*>(node->attrs())->reason).node(node->name());
}

/// A model over strings or sequences is refused before the data, which could not be read, is.
void refuse_unknown_values(const Case& c) {
  try {
    refuse_opaque_nodes(read_onnx(c.folder + "/model.onnx"));
  } catch (const Error& error) {
    if (error.diagnostic().name != "unknown_dimension") throw;
  }
}

/// Throws the first refusal: of the reader, of an opaque node, of the engine.
void run_case(const Case& c, const Engine& engine) {
  refuse_unknown_values(c);
  for (DataSet& set : data_sets(c)) {
    const Graph graph = read_case(c, set);
    verify(graph);
    refuse_opaque_nodes(graph);
    for (size_t i = 0; i < set.inputs.size(); ++i) set.inputs[i] = as_input(set.inputs[i], graph.inputs().at(i)->type);
    const std::vector<Tensor> outputs = engine.run(graph, set.inputs);
    ASSERT_EQ(outputs.size(), set.outputs.size()) << set.name;
    for (size_t i = 0; i < outputs.size(); ++i)
      expect_close(outputs[i], as_declared(set.outputs[i], outputs[i].dtype()),
                   set.name + " output " + std::to_string(i));
  }
}

class Conformance : public testing::TestWithParam<std::tuple<Case, size_t>> {};

TEST_P(Conformance, GivesTheExpectedOutputsOrIsRefusedByName) {
  const auto& [c, engine] = GetParam();
  const bool listed = listed_refusals().contains(c.name);
  try {
    run_case(c, engines()[engine]);
    EXPECT_FALSE(listed) << c.name << " stands in refused.txt but runs";
  } catch (const Error& error) {
    EXPECT_TRUE(is_refusal(error)) << error.diagnostic().text();
    EXPECT_TRUE(listed) << c.name << " is refused but does not stand in refused.txt:\n" << error.diagnostic().text();
  }
}

std::vector<Case> declared_cases() {
  std::vector<Case> declared;
  for (const Case& c : all_cases())
    if (undeclared_operators(c).empty() && opset_of(c) >= kOldestOpset) declared.push_back(c);
  return declared;
}

std::string test_name(const testing::TestParamInfo<std::tuple<Case, size_t>>& info) {
  std::string name = std::get<0>(info.param).name + "_" + engines()[std::get<1>(info.param)].name;
  for (char& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Conformance);
INSTANTIATE_TEST_SUITE_P(Onnx, Conformance,
                         testing::Combine(testing::ValuesIn(declared_cases()),
                                          testing::Range<size_t>(0, engines().size())),
                         test_name);

TEST(ConformanceData, IsInstalled) {
  if (data_root().empty())
    GTEST_SKIP() << "no ONNX test data: apt install libonnx-testdata, or set OPFUSE_ONNX_TESTDATA";
  EXPECT_GT(all_cases().size(), 900u);
}

TEST(ConformanceData, CountsWhatIsNotDeclared) {
  std::map<std::string, int> cases_by_operator;
  size_t undeclared = 0, old = 0, all = 0;
  for (const Case& c : all_cases()) {
    ++all;
    if (opset_of(c) < kOldestOpset && ++old) continue;
    const auto names = undeclared_operators(c);
    undeclared += names.empty() ? 0 : 1;
    for (const std::string& name : names) ++cases_by_operator[name];
  }
  std::printf("%zu of %zu cases are older than opset 7; %zu use operators that are not declared:", old, all,
              undeclared);
  for (const auto& [name, count] : cases_by_operator) std::printf(" %s (%d)", name.c_str(), count);
  std::printf("\n");
}

TEST(ConformanceData, RefusedCasesExist) {
  if (data_root().empty()) GTEST_SKIP() << "no ONNX test data";
  std::set<std::string> names;
  for (const Case& c : declared_cases()) names.insert(c.name);
  for (const std::string& name : listed_refusals()) EXPECT_TRUE(names.contains(name)) << name;
}

/// Every operator's importer and inference meets attributes and shapes that no exporter would write.
TEST(ConformanceFuzz, DamagedCasesAreReadOrRefusedNeverWorse) {
  constexpr int kRounds = 10;
  for (const Case& c : all_cases()) {
    const auto file = MappedFile::open(c.folder + "/model.onnx");
    test::Generator random(std::hash<std::string>{}(c.name));
    for (int round = 0; round < kRounds; ++round) {
      const std::string bytes = test::mutated(std::string(file->bytes()), random);
      try {
        const Graph graph = read_onnx_bytes(bytes);
        verify(graph);
        write_onnx_bytes(graph);
      } catch (const Error& error) {
        EXPECT_NE(error.diagnostic().name, "internal") << c.name << ": " << error.diagnostic().text();
      } catch (const std::exception& error) {
        FAIL() << c.name << " round " << round << ": " << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace opfuse::conformance
