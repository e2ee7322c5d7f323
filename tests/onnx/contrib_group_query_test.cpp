// GroupQueryAttention of ONNX Runtime, held to loops that say what it is: two samples with pasts of different lengths,
// a cache that grows and one with room, rotary positions, a window, a cap and a bias.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "interp/interpreter.hpp"
#include "model_bytes.hpp"
#include "onnx/read.hpp"
#include "ops/registry.hpp"

namespace opfuse::test {
namespace {

constexpr int64_t kI32 = 6, kBatch = 2, kNew = 2, kHeads = 4, kKeyHeads = 2, kSize = 4, kTurned = 2, kTotal = 5;
constexpr int64_t kRows = 8, kWindow = 4;
constexpr double kCap = 1.5;

Tensor drawn(const std::vector<int64_t>& sizes, double seed) {
  Tensor t(DType::f32, sizes);
  for (int64_t i = 0; i < t.elements(); ++i) t.set_real(i, std::sin(7.0 * static_cast<double>(i) + seed));
  return t;
}

int64_t columns() { return (kHeads + 2 * kKeyHeads) * kSize; }

struct Inputs {
  Tensor packed, past_key, past_value, last, cos, sin, bias;
  int64_t room;  ///< rows of the past caches
  std::vector<Tensor> list() const { return {packed, past_key, past_value, last, cos, sin, bias}; }
};

Inputs inputs(int64_t room) {
  const std::vector<int64_t> cache{kBatch, kKeyHeads, room, kSize}, table{kRows, kTurned / 2};
  Inputs in{drawn({kBatch, kNew, columns()}, 0),
            drawn(cache, 1),
            drawn(cache, 2),
            Tensor(DType::i32, {kBatch}),
            drawn(table, 3),
            drawn(table, 4),
            drawn({kBatch, kHeads, kNew, kTotal}, 5),
            room};
  in.last.set_integer(0, kTotal - 1);
  in.last.set_integer(1, kTotal - 2);  // one key less
  return in;
}

std::string model(const Inputs& in, bool open) {
  ModelBytes m;
  const auto sizes = [&](const Tensor& t) {
    Strings list;
    for (int64_t size : t.sizes()) list.push_back(std::to_string(size));
    return list;
  };
  const Strings names{"q", "pk", "pv", "last", "cos", "sin", "bias"};
  const std::vector<Tensor> list = in.list();
  for (size_t i = 0; i < names.size(); ++i) {
    Strings dims = sizes(list[i]);
    if (open && (names[i] == "pk" || names[i] == "pv")) dims[2] = "past";
    if (open && names[i] == "bias") dims[3] = "total";
    m.graph.inputs.push_back(value_info(names[i], names[i] == "last" ? kI32 : kFloat, dims));
  }
  m.graph.initializers = {tensor("three", 7, {}, integers({3}))};
  m.graph.nodes = {
      node("Shape", {"bias"}, {"shape"}), node("Gather", {"shape", "three"}, {"most"}),
      node("Cast", {"most"}, {"total"}, {attribute("to", kI32)}),
      node("GroupQueryAttention", {"q", "", "", "pk", "pv", "last", "total", "cos", "sin", "", "bias"},
           {"y", "nk", "nv"},
           {attribute("num_heads", kHeads), attribute("kv_num_heads", kKeyHeads), attribute("do_rotary", int64_t{1}),
            real_attribute("qk_norm_epsilon", 1e-6), attribute("sliding_window_cache", int64_t{0}),
            attribute("causal", int64_t{1}),  // as saved by ONNX Runtime
            attribute("local_window_size", kWindow), real_attribute("softcap", static_cast<float>(kCap))},
           "n", "com.microsoft")};
  for (const char* name : {"y", "nk", "nv"}) m.graph.outputs.push_back(value_info(name, 0, {}));
  m.domains = {"com.microsoft"};
  return m.text();
}

using Row = std::vector<double>;

/// Columns of a head of the packed operand, turned by the position's angles.
Row head(const Inputs& in, int64_t sample, int64_t i, int64_t number, int64_t position) {
  Row row;
  for (int64_t d = 0; d < kSize; ++d)
    row.push_back(in.packed.real((sample * kNew + i) * columns() + number * kSize + d));
  if (position < 0) return row;
  const double cos = in.cos.real(position), sin = in.sin.real(position), a = row[0], b = row[1];
  row[0] = a * cos - b * sin;
  row[1] = b * cos + a * sin;
  return row;
}

struct Keys {
  std::vector<Row> k, v;
};

/// All keys of a sample, in order: what the past has, and the new ones.
Keys keys_of(const Inputs& in, int64_t sample, int64_t number, int64_t past) {
  Keys keys;
  const auto cached = [&](const Tensor& t, int64_t j) {
    Row row;
    for (int64_t d = 0; d < kSize; ++d)
      row.push_back(t.real(((sample * kKeyHeads + number) * in.room + j) * kSize + d));
    return row;
  };
  for (int64_t j = 0; j < past; ++j)
    keys.k.push_back(cached(in.past_key, j)), keys.v.push_back(cached(in.past_value, j));
  for (int64_t i = 0; i < kNew; ++i) {
    keys.k.push_back(head(in, sample, i, kHeads + number, past + i));
    keys.v.push_back(head(in, sample, i, kHeads + kKeyHeads + number, -1));
  }
  return keys;
}

Row attended(const Inputs& in, const Keys& keys, int64_t sample, int64_t number, int64_t i, int64_t past) {
  const Row q = head(in, sample, i, number, past + i);
  Row weights(keys.k.size(), 0), y(kSize, 0);
  double sum = 0;
  for (int64_t j = std::max<int64_t>(0, past + i - kWindow + 1); j <= past + i; ++j) {
    double score = 0;
    for (size_t d = 0; d < kSize; ++d) score += q[d] * keys.k[static_cast<size_t>(j)][d];
    score = kCap * std::tanh(score / std::sqrt(static_cast<double>(kSize)) / kCap);
    score += in.bias.real(((sample * kHeads + number) * kNew + i) * kTotal + j);
    sum += weights[static_cast<size_t>(j)] = std::exp(score);
  }
  for (size_t j = 0; j < weights.size(); ++j)
    for (size_t d = 0; d < kSize; ++d) y[d] += weights[j] / sum * keys.v[j][d];
  return y;
}

void expect_right(const Inputs& in, const std::vector<Tensor>& results) {
  const int64_t length = std::max(in.room, kTotal);
  ASSERT_EQ(results[1].sizes(), (std::vector<int64_t>{kBatch, kKeyHeads, length, kSize}));
  for (int64_t sample = 0; sample < kBatch; ++sample)
    for (int64_t number = 0; number < kHeads; ++number) {
      const int64_t past = in.last.integer(sample) + 1 - kNew, shared = number / (kHeads / kKeyHeads);
      const Keys keys = keys_of(in, sample, shared, past);
      for (size_t j = 0; j < keys.k.size(); ++j)
        for (size_t d = 0; d < kSize; ++d) {
          const int64_t at =
              ((sample * kKeyHeads + shared) * length + static_cast<int64_t>(j)) * kSize + static_cast<int64_t>(d);
          EXPECT_NEAR(results[1].real(at), keys.k[j][d], 1e-5);
          EXPECT_NEAR(results[2].real(at), keys.v[j][d], 1e-5);
        }
      for (int64_t i = 0; i < kNew; ++i) {
        const Row y = attended(in, keys, sample, number, i, past);
        for (int64_t d = 0; d < kSize; ++d)
          EXPECT_NEAR(results[0].real((sample * kNew + i) * kHeads * kSize + number * kSize + d),
                      y[static_cast<size_t>(d)], 1e-5)
              << sample << " " << number << " " << i;
      }
    }
}

TEST(GroupQueryAttention, WritesEachSamplesKeysBehindItsPast) {
  for (const int64_t room : {kTotal - kNew, kTotal + 2}) {
    const Inputs in = inputs(room);
    expect_right(in, interpret(read_onnx_bytes(model(in, false)), in.list(), {}));
  }
}

/// past + 2 is the mask's length: what a run has to bring.
TEST(GroupQueryAttention, GrowsWithAnOpenPast) {
  const Inputs in = inputs(kTotal - kNew);
  Graph graph = read_onnx_bytes(model(in, true));
  EXPECT_EQ(graph.outputs()[1]->type.shape.text(), "[2,2,total,4]");
  graph.bind_dimensions({{"past", kTotal - kNew}, {"total", kTotal}});
  expect_right(in, interpret(graph, in.list(), {}));
}

TEST(GroupQueryAttention, APastThatIsNotWhatTheMaskSaysIsRefused) {
  const Inputs in = inputs(kTotal - kNew);
  Graph graph = read_onnx_bytes(model(in, true));
  EXPECT_THROW(graph.bind_dimensions({{"past", kTotal}, {"total", kTotal}}), Error);
}

}  // namespace
}  // namespace opfuse::test
