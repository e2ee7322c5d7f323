// The public quantize(): samples from functions and files, what judges, and what is left in float for a metric.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "ir/graph.hpp"
#include "onnx/tensor_files.hpp"
#include "opfuse/quantize.hpp"
#include "ops/registry.hpp"
#include "testing/temporary_folder.hpp"

namespace opfuse {
namespace {

constexpr int64_t kElements = 16 * 8 * 8;

Model net() {
  return Model::from_graph(parse_graph(R"(graph (%x: f32[1,16,8,8]) {
    %w = const rand<1> : f32[16,16,1,1] %v = const rand<3> : f32[4,16,1,1]
    %c = conv(%x, %w) @"a"(Conv@17) %r = relu(%c) @"a_relu"(Relu@17)
    %y = conv(%r, %v) @"b"(Conv@17) return %y })",
                                       ops()));
}

/// Waves of sample `index`, in memory that the next sample overwrites.
SampleSource waves(size_t count, int64_t first = 0) {
  auto memory = std::make_shared<std::vector<float>>(kElements);
  SampleSource source = [=](size_t index, std::map<std::string, ArrayView>& arrays) {
    if (index >= count) return false;
    for (int64_t i = 0; i < kElements; ++i)
      (*memory)[static_cast<size_t>(i)] = std::sin(0.37f * static_cast<float>(i * (first + 1 + int64_t(index)) % 97));
    arrays["x"] = {DType::f32, memory->data(), {1, 16, 8, 8}};
    return true;
  };
  source.count = count;
  return source;
}

nlohmann::json report_of(const Quantized& made) { return nlohmann::json::parse(made.report); }

QuantizeRequest request() {
  QuantizeRequest r;
  r.threads = 1;
  return r;
}

TEST(QuantizeApi, OtherSamplesJudge) {
  QuantizeRequest r = request();
  r.metric = "cosine";
  const nlohmann::json own = report_of(quantize(net(), waves(6), r));
  r.evaluate = waves(3, 50);
  const nlohmann::json others = report_of(quantize(net(), waves(6), r));
  EXPECT_EQ(own["agreement"]["samples"], 6);
  EXPECT_EQ(others["agreement"]["samples"], 3);
  EXPECT_EQ(others["tensors"], own["tensors"]);  // they choose nothing
  EXPECT_NE(others["metric"]["codes"], own["metric"]["codes"]);
  EXPECT_EQ(others["metric"]["float"], 1);
}

TEST(QuantizeApi, FilesJudgeToo) {
  const test::TemporaryFolder folder;
  Tensor sample(DType::f32, {1, 16, 8, 8});
  for (int64_t i = 0; i < kElements; ++i) sample.set_real(i, std::cos(static_cast<double>(i)));
  write_npy(folder.path("0.npy"), sample);
  QuantizeRequest r = request();
  r.evaluate_files = SampleFiles{.path = folder.path("")};
  EXPECT_EQ(report_of(quantize(net(), waves(2), r))["agreement"]["samples"], 1);
  r.evaluate = waves(1);
  EXPECT_THROW(quantize(net(), waves(2), r), Error);  // one of the two
}

TEST(QuantizeApi, AScoreIsTheMetricAndAMaxDropLeavesModulesInFloat) {
  QuantizeRequest r = request();
  r.keep_float.emplace();
  std::vector<float> want;
  // how near an output is to the first ones seen: the float model's, since it is asked first
  const auto score = [&](size_t index, const std::map<std::string, ArrayView>& outputs) {
    const ArrayView& y = outputs.at("y");
    const auto* values = static_cast<const float*>(y.data);
    const size_t count = 4 * 8 * 8;
    if (want.size() < (index + 1) * count) want.insert(want.end(), values, values + count);
    double off = 0, all = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto was = static_cast<double>(want[index * count + i]);
      off += std::fabs(was - static_cast<double>(values[i])), all += std::fabs(was);
    }
    return 1 - off / all;
  };
  r.score = score;
  const nlohmann::json whole = report_of(quantize(net(), waves(4), r));
  EXPECT_EQ(whole["metric"]["name"], "score");
  EXPECT_EQ(whole["products"].size(), 2u);
  const double drop = 1 - whole["metric"]["codes"].get<double>();
  ASSERT_GT(drop, 0);
  r.max_drop = std::to_string(drop / 2);
  const nlohmann::json less = report_of(quantize(net(), waves(4), r));
  EXPECT_LT(less["products"].size(), 2u);
  EXPECT_LE(less["search"]["frontier"].back()["drop"], drop / 2);
  r.score = [](size_t, const auto&) { return std::nan(""); };
  EXPECT_THROW(quantize(net(), waves(4), r), Error);
}

/// 256 rows: a bound of 98.5 % where none differs.
TEST(QuantizeApi, ALowerBoundAsksForMoreThanAValue) {
  QuantizeRequest r = request();
  r.metric = "top1", r.max_drop = "90%";
  const nlohmann::json value = report_of(quantize(net(), waves(8), r));
  r.lower_bound = true;
  const nlohmann::json bound = report_of(quantize(net(), waves(8), r));
  EXPECT_EQ(bound["metric"], value["metric"]);
  const auto first = [](const nlohmann::json& report) {
    return report["search"]["frontier"][0]["metric"].get<double>();
  };
  EXPECT_LT(first(bound), first(value) - 0.01);
  r.max_drop = "2%";
  EXPECT_LE(report_of(quantize(net(), waves(8), r))["search"]["frontier"].back()["drop"], 0.02);
  r.max_drop = "1%";
  EXPECT_THROW(quantize(net(), waves(8), r), Error);
}

TEST(QuantizeApi, ContradictionsAreRefusedBeforeASampleIsRead) {
  const SampleSource never = [](size_t, std::map<std::string, ArrayView>&) -> bool {
    throw std::logic_error("a sample was read");
  };
  QuantizeRequest r = request();
  r.max_drop = "1%";
  EXPECT_THROW(quantize(net(), never, r), Error);
  r.metric = "sqnr", r.max_drop = "one";
  EXPECT_THROW(quantize(net(), never, r), Error);
  r.metric = "sqnr", r.max_drop = "1%", r.lower_bound = true;  // a bound is that of a share
  EXPECT_THROW(quantize(net(), never, r), Error);
  r = request();
  r.metric = "sqnr", r.compare_samples = 0;
  EXPECT_THROW(quantize(net(), never, r), Error);
}

/// What is wrong with a source is said with the sample's number.
TEST(QuantizeApi, SourcesThatGiveTheWrongThingAreNamed) {
  const auto said = [](const SampleSource& source, QuantizeRequest r) -> std::string {
    try {
      quantize(net(), source, r);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const SampleSource good = waves(3);
  const SampleSource second_empty = [good](size_t index, std::map<std::string, ArrayView>& arrays) {
    return index == 1 || good(index, arrays);
  };
  EXPECT_THAT(said(second_empty, request()), testing::HasSubstr("sample 1 has no array for the input 'x'"));
  EXPECT_THAT(said(SampleSource{}, request()), testing::HasSubstr("function that gives samples is empty"));
  QuantizeRequest r = request();
  r.min_linear = -1;
  EXPECT_THAT(said(good, r), testing::HasSubstr("-1"));
  r = request(), r.metric = "  ";
  EXPECT_THAT(said(good, r), testing::HasSubstr("blank"));
  r.metric = "sh -c 'exit 3'";
  EXPECT_THAT(said(good, r), testing::HasSubstr("exits with 3"));
  r.metric = "kill -9 $$ #";
  EXPECT_THAT(said(good, r), testing::HasSubstr("signal 9"));
}

Model rows() {
  return Model::from_graph(parse_graph(R"(graph (%x: f32[1,16,8,64]) {
    %w = const rand<1> : f32[64,96] %v = const rand<3> : f32[96,64]
    %c = matmul(%x, %w) @"a"(MatMul@17) %r = relu(%c) @"a_relu"(Relu@17)
    %y = matmul(%r, %v) @"b"(MatMul@17) return %y })",
                                       ops()));
}

/// As `--to` of the command line, with samples and without.
TEST(QuantizeApi, ToConverts) {
  auto memory = std::make_shared<std::vector<float>>(16 * 8 * 64);
  const SampleSource source = [=](size_t index, std::map<std::string, ArrayView>& arrays) {
    for (size_t i = 0; i < memory->size(); ++i)
      (*memory)[i] = std::sin(0.3f * static_cast<float>(i * (index + 2) % 89));
    arrays["x"] = {DType::f32, memory->data(), {1, 16, 8, 64}};
    return index < 3;
  };
  QuantizeRequest r = request();
  for (const auto& [to, schema, least] : {std::tuple{"f16", "opfuse.convert/1", 50},
                                          {"bf16", "opfuse.convert/1", 30},
                                          {"int8-weights", "opfuse.code-weights/1", 35},
                                          {"int4-weights", "opfuse.code-weights/1", 12}}) {
    r.to = to;
    const Quantized made = quantize(rows(), source, r);
    const nlohmann::json report = report_of(made);
    EXPECT_EQ(report["schema"], schema);
    EXPECT_GT(report["agreement"]["outputs"][0]["sqnr"], least) << to;
    EXPECT_TRUE(report_of(quantize(rows(), r))["agreement"].is_null());
    EXPECT_THROW(made.save_report("r.html"), Error);
  }
  r.block = 16;
  EXPECT_EQ(report_of(quantize(rows(), r))["block"], 16);
  r.to = "f16";
  EXPECT_THROW(quantize(rows(), r), Error);  // no blocks
  r.to = "", r.block.reset();
  EXPECT_THROW(quantize(rows(), r), Error);  // pairs need samples
  r.to = "int4-weights", r.bias_correction = true;
  EXPECT_THROW(quantize(rows(), source, r), Error);
  r.bias_correction = false, r.to = "int3-weights";
  EXPECT_THROW(quantize(rows(), r), Error);
}

TEST(QuantizeApi, TheReportIsWritten) {
  const test::TemporaryFolder folder;
  const Quantized made = quantize(net(), waves(2), request());
  made.save_report(folder.path("r.json"));
  made.save_report(folder.path("r.html"));
  std::ifstream file(folder.path("r.json"));
  EXPECT_EQ(nlohmann::json::parse(file), report_of(made));
  std::stringstream page;
  page << std::ifstream(folder.path("r.html")).rdbuf();
  EXPECT_THAT(page.str(), testing::HasSubstr("lost here"));
  EXPECT_THROW(made.save_report(folder.path("r.txt")), Error);
  EXPECT_THROW(made.save_report(folder.path("no/r.json")), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path("r.txt")));
}

}  // namespace
}  // namespace opfuse
