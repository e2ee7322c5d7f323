// What the search leaves in float where one module alone makes the metric fall.
#include "quantize/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/registry.hpp"
#include "quantize/agreement.hpp"
#include "quantize/judge.hpp"
#include "quantize/sample_files.hpp"

namespace opfuse::quantization {
namespace {

constexpr const char* kThree = R"(graph (%x: f32[1,16,8,8]) {
  %w = const rand<1> : f32[16,16,1,1] %v = const rand<2> : f32[16,16,1,1] %u = const rand<3> : f32[16,16,1,1]
  %a = conv(%x, %w) @"a"(Conv@17) %r = relu(%a) @"ar"(Relu@17) %b = conv(%r, %v) @"b"(Conv@17) %s = relu(%b) @"br"(Relu@17)
  %c = conv(%s, %u) @"c"(Conv@17) return %c })";

/// `bad`: the metric is 0.5 where this module is in codes; empty: where any is.
Search searched(const std::string& bad, QuantizedModel& made) {
  const Graph graph = parse_graph(kThree, ops());
  QuantizeOptions options;
  options.run.threads = 1;
  const Samples samples = random_samples(graph, 3, 1, {});
  made = quantize_graph(graph, samples, options);
  const auto metric = [&](const QuantizedModel& candidate) {
    const auto& products = candidate.placement.products;
    const bool falls = std::any_of(products.begin(), products.end(),
                                   [&](const PlacedProduct& p) { return bad.empty() || p.module == bad; });
    return std::pair{falls ? 0.5 : 1.0, 1.0};
  };
  return search_modules(graph, samples, options, 0.1, 2, metric, made);
}

TEST(Search, ModulesThatTheMetricDoesNotNeedGetCodesAgain) {
  QuantizedModel made;
  const Search all = searched("", made);
  ASSERT_EQ(all.order.size(), 3u);
  EXPECT_EQ(all.left.size(), 3u);
  EXPECT_TRUE(std::none_of(all.returned.begin(), all.returned.end(), [](const Returned& r) { return r.held; }));
  const std::string bad = all.order.back().module;  // the last to be left in float
  const Search found = searched(bad, made);
  ASSERT_EQ(found.left.size(), 1u);
  EXPECT_EQ(found.left[0].module, bad);
  EXPECT_EQ(found.frontier[found.chosen].left, 1u);
  EXPECT_NEAR(found.frontier[found.chosen].share, 2.0 / 3, 1e-9);
  EXPECT_GT(found.predicted_float, 0);
  for (const FrontierPoint& p : found.frontier) EXPECT_GT(p.predicted, 0);
  EXPECT_EQ(made.placement.products.size(), 2u);
}

/// One compiled reference for all candidates: each gets the numbers that it has by itself.
TEST(Search, AReferenceThatStaysGivesTheOutputsOfEachModel) {
  const Graph graph = parse_graph(kThree, ops());
  const Samples samples = random_samples(graph, 3, 1, {});
  QuantizeOptions options;
  options.run.threads = 1;
  ObservedModel reference(prepare_model(graph, options).graph, {}, options.run);
  double last = 0;
  for (const std::vector<std::string>& skip : {std::vector<std::string>{}, {"a"}, {"a", "b"}}) {
    options.skip = skip;
    const QuantizedModel made = quantize_graph(graph, samples, options);
    const Agreement own = measure_agreement(made.reference, made.graph, samples, options.run);
    const Agreement kept = measure_outputs(reference, made.graph, samples, options.run);
    EXPECT_TRUE(kept.layers.empty());
    ASSERT_EQ(kept.outputs.size(), 1u);
    EXPECT_NEAR(kept.outputs[0].noise.sqnr(), own.outputs[0].noise.sqnr(), 0.05);
    EXPECT_NEAR(kept.outputs[0].cosine, own.outputs[0].cosine, 1e-5);
    EXPECT_GT(kept.outputs[0].noise.sqnr(), last);  // fewer modules in codes
    last = kept.outputs[0].noise.sqnr();
  }
}

/// The user's runner is asked for the float model once.
TEST(Search, TheFloatModelsMetricIsTakenOnce) {
  const Graph graph = parse_graph(kThree, ops());
  const Samples samples = random_samples(graph, 3, 1, {});
  QuantizeOptions options;
  options.run.threads = 1;
  size_t scores = 0;
  const auto score = [&](size_t, const std::map<std::string, ArrayView>&) {
    ++scores;
    return scores > samples.count && scores <= 2 * samples.count ? 0.0 : 1.0;  // 0 of the first model with codes
  };
  const JudgeChoice choice{.metric = {.name = "", .score = score}, .max_drop = "40%"};
  const JudgedModel judged = quantize_and_judge(graph, samples, nullptr, options, choice);
  ASSERT_TRUE(judged.search);
  EXPECT_EQ(judged.search->frontier.size(), 2u);
  EXPECT_EQ(scores, samples.count * (1 + judged.search->frontier.size() + judged.search->returned.size()));
}

}  // namespace
}  // namespace opfuse::quantization
