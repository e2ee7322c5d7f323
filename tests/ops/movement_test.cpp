// Operators that move elements: concat, split, slice, pad, tile, triangles, space and depth.
#include <fmt/format.h>

#include "ir/graph.hpp"
#include "ops/registry.hpp"
#include "ops/sample_tensors.hpp"
#include "ops/slice.hpp"

namespace opfuse {
namespace {

const Dim kN = Dim::symbol("n");

std::optional<std::vector<Dim>> dims_of(std::string_view op, const AttrMap& attrs, const std::vector<Tensor>& inputs,
                                        const std::vector<std::optional<std::vector<Dim>>>& dims) {
  const OpInfo* info = op_named(op);
  std::vector<TensorType> types;
  for (size_t i = 0; i < dims.size(); ++i)
    types.push_back(i < inputs.size() && !inputs[i].empty()
                        ? inputs[i].type()
                        : TensorType{DType::i64, Shape{dims[i] ? static_cast<int64_t>(dims[i]->size()) : 1}});
  const auto constants = pointers(inputs);
  return info->dims(info->attrs_from_map(attrs).get(),
                    Inference(types, constants, 1, [&](size_t i) { return dims[i]; }));
}

TEST(Concat, JoinsAlongAnyAxis) {
  const Tensor a = ramp({2, 2}), b = ramp({2, 1}, 10);
  expect_values(run_checked("concat", {{"axis", int64_t{1}}}, {a, b}), {2, 3}, {0, 1, 10, 2, 3, 11});
  expect_values(run_checked("concat", {{"axis", int64_t{-2}}}, {a, a}), {4, 2}, {0, 1, 2, 3, 0, 1, 2, 3});
  expect_values(run_checked("concat", {}, {a, f64({0, 2}, {})}), {2, 2}, {0, 1, 2, 3});
  EXPECT_EQ(inferred("concat", {{"axis", int64_t{1}}}, {"f32[n,3,8]", "f32[n,c,8]"}),
            TensorType({DType::f32, Shape{kN, Dim::symbol("c") + 3, 8}}).text());
  EXPECT_EQ(inference_error("concat", {{"axis", int64_t{1}}}, {"f32[2,3]", "f32[3,3]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("concat", {{"axis", int64_t{2}}}, {"f32[2,3]", "f32[2,3]"}), "bad_attribute");
  EXPECT_EQ(inference_error("concat", {}, {"f32[2,3]", "f16[2,3]"}), "dtype_mismatch");
  EXPECT_EQ(dims_of("concat", {}, {}, {{{kN}}, {{Dim(3), Dim(4)}}}), (std::vector<Dim>{kN, 3, 4}));
}

TEST(Split, CutsBySizesOrEvenly) {
  const Tensor x = ramp({2, 5});
  const auto parts = run_all("split", {{"axis", int64_t{1}}, {"split", Ints{2, 3}}}, {x});
  expect_values(parts.at(0), {2, 2}, {0, 1, 5, 6});
  expect_values(parts.at(1), {2, 3}, {2, 3, 4, 7, 8, 9});
  expect_values(run_all("split", {{"axis", int64_t{1}}}, {x, i64({2}, {4, 1})}).at(1), {2, 1}, {4, 9});
  expect_values(run_all("split", {{"axis", int64_t{1}}, {"num_outputs", int64_t{3}}}, {x}).at(2), {2, 1}, {4, 9});
  EXPECT_EQ(infer_op("split", {{"axis", int64_t{1}}, {"num_outputs", int64_t{3}}}, {x}, 3).at(2).text(), "f64[2,1]");
  EXPECT_EQ(error_of([&] {
              infer_op("split", {{"axis", int64_t{1}}, {"split", Ints{2, 2}}}, {x}, 2);
            }),
            "shape_mismatch");
  EXPECT_EQ(error_of([&] { infer_op("split", {{"split", Ints{3, -1}}}, {x}, 2); }), "bad_attribute");
  EXPECT_EQ(error_of([&] { infer_op("split", {{"split", Ints{1, 1}}}, {x}, 3); }), "arity_mismatch");
  EXPECT_EQ(error_of([&] { infer_op("split", {}, {x}, 2); }), "bad_attribute");
}

TEST(Slice, TakesRangesInBothDirections) {
  const Tensor x = ramp({2, 5});
  const auto slice = [&](Ints starts, Ints ends, Ints axes, Ints steps) {
    const auto n = static_cast<int64_t>(starts.size());
    return run_checked("slice", {}, {x, i64({n}, starts), i64({n}, ends), i64({n}, axes), i64({n}, steps)});
  };
  expect_values(slice({1}, {4}, {1}, {1}), {2, 3}, {1, 2, 3, 6, 7, 8});
  expect_values(slice({0}, {INT64_MAX}, {1}, {2}), {2, 3}, {0, 2, 4, 5, 7, 9});
  expect_values(slice({-1}, {INT64_MIN}, {1}, {-1}), {2, 5}, {4, 3, 2, 1, 0, 9, 8, 7, 6, 5});
  expect_values(slice({3}, {0}, {-1}, {-2}), {2, 2}, {3, 1, 8, 6});
  expect_values(slice({0, -2}, {1, 5}, {0, 1}, {1, 1}), {1, 2}, {3, 4});
  expect_values(slice({4}, {2}, {1}, {1}), {2, 0}, {});
  expect_values(slice({100}, {-100}, {1}, {-4}), {2, 2}, {4, 0, 9, 5});
  expect_values(slice({2}, {INT64_MIN}, {1}, {INT64_MIN}), {2, 1}, {2, 7});
  expect_values(run_checked("slice", {{"starts", Ints{1}}, {"ends", Ints{2}}}, {x}), {1, 5}, {5, 6, 7, 8, 9});
}

TEST(Slice, AgreesWithAWalkForAllSmallRanges) {
  for (int64_t size = 0; size < 5; ++size)
    for (int64_t start = -6; start < 7; ++start)
      for (int64_t end = -6; end < 7; ++end)
        for (int64_t step : {-3, -1, 1, 2}) {
          const int64_t first = std::clamp<int64_t>(start < 0 ? start + size : start, 0, step > 0 ? size : size - 1);
          const int64_t last =
              std::clamp<int64_t>(end < 0 ? end + size : end, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
          int64_t count = 0;
          for (int64_t i = first; size > 0 && (step > 0 ? i < last : i > last); i += step) ++count;
          const SliceAxis s = slice_axis(start, end, step, size);
          ASSERT_EQ(s.count, count) << start << ":" << end << ":" << step << " of " << size;
          if (count > 0) {
            ASSERT_EQ(s.start, first);
          }
          // The symbolic count is the same function.
          const Shape y =
              infer_types("slice", {{"starts", Ints{start}}, {"ends", Ints{end}}}, {parse_type("f32[n]")}).shape;
          if (step == 1) {
            ASSERT_EQ(y[0].evaluate({{"n", size}}), count) << start << ":" << end << " of " << size;
          }
        }
}

TEST(Slice, CountsOfOpenAxesAreThoseOfTheirSizes) {
  for (int64_t start = -6; start < 7; ++start)
    for (int64_t end = -6; end < 7; ++end)
      for (int64_t step : {-3, -1, 2}) {
        const Graph graph = parse_graph(
            fmt::format("graph (%x: f32[n]) {{ %s = const dense<{}> : i64[1] %e = const dense<{}> : i64[1] %a = const "
                        "dense<0> : i64[1] %t = const dense<{}> : i64[1] %y = slice(%x, %s, %e, %a, %t) return %y }}",
                        start, end, step),
            ops());
        for (int64_t size = 0; size < 5; ++size)
          ASSERT_EQ(graph.outputs()[0]->type.shape[0].evaluate({{"n", size}}), slice_axis(start, end, step, size).count)
              << start << ":" << end << ":" << step << " of " << size;
      }
}

TEST(Slice, InfersSymbolicExtentsAndRefuses) {
  EXPECT_EQ(inferred("slice", {{"starts", Ints{0}}, {"ends", Ints{INT64_MAX}}, {"axes", Ints{1}}}, {"f32[n,s]"}),
            "f32[n,s]");
  EXPECT_EQ(inferred("slice", {{"starts", Ints{0}}, {"ends", Ints{1}}, {"axes", Ints{1}}}, {"f32[n,8]"}), "f32[n,1]");
  EXPECT_EQ(inference_error("slice", {{"starts", Ints{0}}, {"ends", Ints{1, 2}}}, {"f32[4,8]"}), "bad_attribute");
  EXPECT_EQ(
      inference_error("slice", {{"starts", Ints{0, 0}}, {"ends", Ints{1, 2}}, {"axes", Ints{1, -1}}}, {"f32[4,8]"}),
      "bad_attribute");
  EXPECT_EQ(inference_error("slice", {}, {"f32[4]", "i64[1]", "i64[1]"}), "unknown_dimension");
  const Tensor x = ramp({4});
  EXPECT_EQ(error_of([&] {
              infer_op("slice", {}, {x, i64({1}, {0}), i64({1}, {2}), i64({1}, {0}), i64({1}, {0})});
            }),
            "bad_attribute");
  EXPECT_EQ(dims_of("slice", {{"starts", Ints{1}}, {"ends", Ints{3}}}, {}, {{{Dim(1), kN, Dim(2)}}}),
            (std::vector<Dim>{kN, 2}));
}

TEST(Pad, FillsByMode) {
  const Tensor x = ramp({3}, 1);
  const auto pad = [&](const char* mode, Ints pads) {
    return run_checked("pad", {{"mode", mode}, {"pads", pads}}, {x});
  };
  expect_values(pad("constant", {1, 2}), {6}, {0, 1, 2, 3, 0, 0});
  expect_values(pad("reflect", {2, 2}), {7}, {3, 2, 1, 2, 3, 2, 1});
  expect_values(pad("reflect", {5, 0}), {8}, {2, 1, 2, 3, 2, 1, 2, 3});
  expect_values(pad("edge", {2, 1}), {6}, {1, 1, 1, 2, 3, 3});
  expect_values(pad("wrap", {2, 4}), {9}, {2, 3, 1, 2, 3, 1, 2, 3, 1});
  expect_values(pad("constant", {-1, 1}), {3}, {2, 3, 0});
}

TEST(Pad, TakesOperandsAndAxes) {
  const Tensor x = ramp({1, 2}, 1);
  expect_values(run_checked("pad", {}, {x, i64({4}, {1, 0, 0, 1}), f64({}, {9})}), {2, 3}, {9, 9, 9, 1, 2, 9});
  expect_values(run_checked("pad", {}, {x, i64({2}, {1, 1}), absent(), i64({1}, {-1})}), {1, 4}, {0, 1, 2, 0});
  EXPECT_EQ(inferred("pad", {{"pads", Ints{0, 0, 1, 1, 0, 0, 1, 1}}}, {"f32[n,3,8,8]"}), "f32[n,3,10,10]");
  EXPECT_EQ(inference_error("pad", {{"pads", Ints{1, 1}}}, {"f32[1,2]"}), "bad_attribute");
  EXPECT_EQ(inference_error("pad", {{"pads", Ints{-2, -1}}}, {"f32[2]"}), "bad_dimension");
  EXPECT_EQ(inference_error("pad", {{"mode", "edge"}, {"pads", Ints{1, 1}}}, {"f32[0]"}), "bad_dimension");
  EXPECT_EQ(inference_error("pad", {}, {"f32[2]", "i64[2]", "f64[]"}), "dtype_mismatch");
}

TEST(Tile, RepeatsEveryAxis) {
  expect_values(run_checked("tile", {}, {ramp({2, 2}), i64({2}, {2, 2})}), {4, 4},
                {0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3});
  expect_values(run_checked("tile", {}, {ramp({2, 2}), i64({2}, {0, 2})}), {0, 4}, {});
  EXPECT_EQ(inferred("tile", {}, {"f32[n,3]", "i64[2]"}, {{1, {Dim(1), Dim(2)}}}), "f32[n,6]");
  EXPECT_EQ(inference_error("tile", {}, {"f32[2,3]", "i64[1]"}, {{1, {Dim(2)}}}), "shape_mismatch");
  EXPECT_EQ(inference_error("tile", {}, {"f32[2,3]", "i64[2]"}, {{1, {Dim(2), Dim(-1)}}}), "bad_dimension");
  EXPECT_EQ(inference_error("tile", {}, {"f32[2,3]", "i64[2]"}), "unknown_dimension");
}

TEST(Trilu, KeepsATriangle) {
  const Tensor x = ramp({2, 3}, 1);
  expect_values(run_checked("trilu", {}, {x}), {2, 3}, {1, 2, 3, 0, 5, 6});
  expect_values(run_checked("trilu", {{"upper", false}}, {x}), {2, 3}, {1, 0, 0, 4, 5, 0});
  expect_values(run_checked("trilu", {}, {x, i64({}, {1})}), {2, 3}, {0, 2, 3, 0, 0, 6});
  expect_values(run_checked("trilu", {{"upper", false}}, {x, i64({}, {-1})}), {2, 3}, {0, 0, 0, 4, 0, 0});
  expect_values(run_checked("trilu", {}, {x, i64({}, {INT64_MIN})}), {2, 3}, values_of(x));
  EXPECT_EQ(inference_error("trilu", {}, {"f32[3]"}), "rank_mismatch");
}

TEST(SpaceDepth, AreInverse) {
  const Tensor x = ramp({2, 12, 2, 3});
  for (const char* mode : {"DCR", "CRD"})
    EXPECT_EQ(run_checked("depth_to_space", {{"blocksize", int64_t{2}}, {"mode", mode}}, {x}).sizes(),
              (Ints{2, 3, 4, 6}));
  expect_close(run_checked("space_to_depth", {{"blocksize", int64_t{2}}},
                           {run_op("depth_to_space", {{"blocksize", int64_t{2}}}, {x})}),
               x);
  // Channels 0..3 of one pixel become a 2x2 block; with two output channels CRD keeps a channel's four together.
  const Tensor pixel = ramp({1, 8, 1, 1});
  expect_values(run_op("depth_to_space", {{"blocksize", int64_t{2}}}, {pixel}), {1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7});
  expect_values(run_op("depth_to_space", {{"blocksize", int64_t{2}}, {"mode", "CRD"}}, {pixel}), {1, 2, 2, 2},
                {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(inference_error("depth_to_space", {{"blocksize", int64_t{2}}}, {"f32[1,6,2,2]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("space_to_depth", {{"blocksize", int64_t{2}}}, {"f32[1,6,3,2]"}), "shape_mismatch");
  EXPECT_EQ(inference_error("space_to_depth", {{"blocksize", int64_t{0}}}, {"f32[1,6,3,2]"}), "bad_attribute");
}

}  // namespace
}  // namespace opfuse
