// Generating inputs; see the header for what each kind of input gets.
#include "interp/random_inputs.hpp"

#include <algorithm>
#include <cmath>

#include "base/fail.hpp"
#include "base/hash.hpp"
#include "tensor/number.hpp"

namespace opfuse {
namespace {

constexpr double kPi = 3.14159265358979323846;

// An image: waves of at most kMaxFrequency periods per side carry most of the energy, as in photographs, so that
// convolutions of any size respond; noise keeps neighbouring pixels different.
constexpr int kWaves = 4;
constexpr double kMaxFrequency = 6;
constexpr double kNoise = 0.25;

void fill_plane(Tensor& out, int64_t at, int64_t height, int64_t width, Random& random) {
  double fx[kWaves], fy[kWaves], phase[kWaves];
  for (int k = 0; k < kWaves; ++k) {
    fy[k] = 2 * kPi * kMaxFrequency * (random.uniform() - 0.5) / static_cast<double>(height);
    fx[k] = 2 * kPi * kMaxFrequency * (random.uniform() - 0.5) / static_cast<double>(width);
    phase[k] = 2 * kPi * random.uniform();
  }
  const double contrast = 0.5 + random.uniform(), brightness = 0.5 * random.normal();
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      double value = 0;
      for (int k = 0; k < kWaves; ++k)
        value += std::cos(fy[k] * static_cast<double>(y) + fx[k] * static_cast<double>(x) + phase[k]);
      value = value * std::sqrt(2.0 / kWaves) + kNoise * random.normal();
      out.set_real(at + y * width + x, contrast * value + brightness);
    }
}

void fill_images(Tensor& out, Random& random) {
  const int64_t plane = out.dim(2) * out.dim(3);
  for (int64_t at = 0; plane > 0 && at < out.elements(); at += plane)
    fill_plane(out, at, out.dim(2), out.dim(3), random);
}

void fill_mask(Tensor& out, Random& random) {
  const int64_t row = out.rank() == 0 ? 1 : out.dim(out.rank() - 1);
  for (int64_t at = 0; row > 0 && at < out.elements(); at += row) {
    const int64_t ones = random.between((row + 1) / 2, row);
    for (int64_t i = 0; i < row; ++i) out.set_integer(at + i, i < ones);
  }
}

void fill_range(Tensor& out, double low, double high, Random& random) {
  if (!(low <= high)) throw fail(E::bad_option, "the range {}..{} is empty", low, high);
  const bool real = is_float(out.dtype());
  for (int64_t i = 0, n = out.elements(); i < n; ++i) {
    if (real)
      out.set_real(i, low + (high - low) * random.uniform());
    else
      out.set_integer(i, random.between(static_cast<int64_t>(std::ceil(low)), static_cast<int64_t>(std::floor(high))));
  }
}

bool is_mask(const Value& value) {
  std::string name = value.name;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return value.type.dtype == DType::boolean || (is_integer(value.type.dtype) && name.find("mask") != std::string::npos);
}

void fill(Tensor& out, const Value& value, const RandomInputOptions& options, Random& random) {
  const DType dtype = out.dtype();
  auto range = options.ranges.find(value.name);
  if (range != options.ranges.end()) {
    fill_range(out, range->second.first, range->second.second, random);
  } else if (is_mask(value)) {
    fill_mask(out, random);
  } else if (is_float(dtype)) {
    if (out.rank() == 4) return fill_images(out, random);
    for (int64_t i = 0, n = out.elements(); i < n; ++i) out.set_real(i, random.normal());
  } else if (is_integer(dtype)) {
    const auto rows = indexed_rows(value, options.symbols);
    const bool byte = byte_size(dtype) == 1;
    const int64_t high = rows ? std::max<int64_t>(*rows - 1, 0) : byte ? integer_max(dtype) : 9;
    fill_range(out, static_cast<double>(!rows && byte ? integer_min(dtype) : 0), static_cast<double>(high), random);
  } else {
    throw fail(E::unsupported_dtype, "input \"{}\" is {}: no random values for it", value.name, value.type.text())
        .hint("give this input a file");
  }
}

}  // namespace

Random::Random(uint64_t seed, std::string_view name) : state_(seed ^ hash_text(name).low) {}

uint64_t Random::bits() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * kPi * uniform());
}

int64_t Random::between(int64_t low, int64_t high) {
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t offset =
      span == 0 ? bits() : static_cast<uint64_t>(static_cast<unsigned __int128>(bits()) * span >> 64);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

std::vector<Tensor> random_inputs(const Graph& graph, const RandomInputOptions& options) {
  for (const auto& [name, range] : options.ranges) {
    const Value* value = graph.find_value(name);
    if (!value || value->producer || value->constant)
      throw fail(E::unknown_name, "a range is given for \"{}\", which is not an input", name);
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Value& value = *graph.inputs()[i];
    if (!value.type.shape.ranked) throw fail(E::unknown_dimension, "the rank of input \"{}\" is not known", value.name);
    Random random(options.seed, value.name.empty() ? std::to_string(i) : value.name);
    out.emplace_back(value.type.dtype, value.type.shape.evaluate(options.symbols));
    fill(out.back(), value, options, random);
  }
  return out;
}

}  // namespace opfuse
