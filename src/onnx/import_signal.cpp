// Signal processing by tables that follow from lengths.
//   DFT     y[k] = sum x[n] e^(-2 pi i k n / L), a product with a table of cosines and sines     [.., n, 1 or 2] ->
//   [.., k, 2]
//           inverse: e^(+..) / L; one-sided inverses give real numbers of which the table counts each frequency twice
//   STFT    a convolution whose filters are the rows of that table times the window, its stride the step of frames
//   HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix: constants
#include <cmath>
#include <numbers>

#include "base/fail.hpp"
#include "onnx/import_spelled.hpp"
#include "ops/axes.hpp"

namespace opfuse::onnx {
namespace {

using Results = std::vector<Value*>;

constexpr double kTurn = 2 * std::numbers::pi;

int64_t constant_integer(const Value* value, const char* what) {
  if (!value->is_constant() || value->constant->elements() != 1)
    throw fail(E::unsupported_op, "the {} is computed; a constant is needed", what);
  return value->constant->integer(0);
}

double constant_real(const Value* value, const char* what) {
  if (!value->is_constant() || value->constant->elements() != 1)
    throw fail(E::unsupported_op, "the {} is computed; a constant is needed", what);
  return value->constant->real(0);
}

/// 2 pi k n / length with k n reduced first, so that large products lose nothing.
double angle(int64_t k, int64_t n, int64_t length) {
  return kTurn * static_cast<double>(k % length * (n % length) % length) / static_cast<double>(length);
}

/// `elements` of a hostile model may be beyond 2^63.
void check_table(const NodeImport& n, int64_t length, double elements) {
  if (length <= 0) throw fail(E::bad_attribute, "a transform of {} points", length);
  if (elements > static_cast<double>(n.limits.transform_elements))
    throw fail(E::unsupported_op,
               "a transform of {} points needs {:.3g} numbers: at most {} are made (--limit "
               "transform_elements=N)",
               length, elements, n.limits.transform_elements);
}

struct Transform {
  int64_t length = 0;  ///< L
  bool inverse = false, one_sided = false;
  int64_t bins() const { return one_sided ? length / 2 + 1 : length; }
  bool gives_reals() const { return inverse && one_sided; }
  int64_t taken() const { return gives_reals() ? bins() : length; }  ///< points of the operand
  int64_t made() const { return inverse ? length : bins(); }         ///< points of the result
  int64_t parts() const { return gives_reals() ? 1 : 2; }
};

/// What part `from` (0 real, 1 imaginary) of point n adds to part `to` of point k.
double factor(const Transform& t, int64_t n, int from, int64_t k, int to) {
  const double a = angle(k, n, t.length), cosine = std::cos(a), sine = t.inverse ? std::sin(a) : -std::sin(a);
  const double value = from == to ? cosine : to == 0 ? -sine : sine;
  if (!t.inverse) return value;
  const bool mirrored = t.one_sided && n != 0 && 2 * n != t.length;
  return value * (mirrored ? 2.0 : 1.0) / static_cast<double>(t.length);
}

/// [taken * parts of the operand, made * parts of the result]
Tensor table_of(const NodeImport& import, const Transform& t, int64_t parts, DType dtype) {
  check_table(import, t.length, static_cast<double>(t.taken() * parts) * static_cast<double>(t.made() * t.parts()));
  Tensor table(dtype, {t.taken() * parts, t.made() * t.parts()});
  int64_t at = 0;
  for (int64_t n = 0; n < t.taken(); ++n)
    for (int from = 0; from < parts; ++from)
      for (int64_t k = 0; k < t.made(); ++k)
        for (int to = 0; to < t.parts(); ++to) table.set_real(at++, factor(t, n, from, k, to));
  return table;
}

int64_t parts_of(const Value* x) {
  const Shape& shape = x->type.shape;
  const auto parts = shape.ranked && shape.rank() > 0 ? shape[shape.rank() - 1].constant() : std::nullopt;
  if (!parts || (*parts != 1 && *parts != 2))
    throw fail(E::unsupported_op, "the operand is {}; its last dimension is 1 (real) or 2 (complex)", shape.text());
  return *parts;
}

/// x cut off, or with zeros behind, to `length` along `axis`.
Value* fitted(NodeImport& n, Speller& s, Value* x, size_t axis, int64_t length) {
  const Shape& shape = x->type.shape;
  const auto have = shape[axis].constant();
  if (have && *have == length) return x;
  if (!have) throw fail(E::unsupported_op, "{} points of a signal of {} are transformed", length, shape[axis].text());
  if (*have > length) return s.slice(x, static_cast<int64_t>(axis), 0, length);
  std::vector<int64_t> pads(2 * shape.rank(), 0);
  pads[shape.rank() + axis] = length - *have;
  return s.op("pad", {x, n.integers_constant(pads), s.number(0, x->type.dtype)});
}

std::vector<int64_t> swapped(size_t rank, size_t a, size_t b) {
  std::vector<int64_t> perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
  std::swap(perm[a], perm[b]);
  return perm;
}

/// [.., a, b] -> [.., last..]
Value* with_last(Speller& s, Value* x, size_t kept, const std::vector<int64_t>& last) {
  std::vector<int64_t> shape(kept, 0);
  shape.insert(shape.end(), last.begin(), last.end());
  return s.reshape(x, shape);
}

}  // namespace

Results import_dft(NodeImport& n) {
  n.require_inputs(1, 3);
  Transform t;
  t.inverse = n.integer("inverse", 0) != 0;
  t.one_sided = n.integer("onesided", 0) != 0;
  Value* x = n.required(0);
  const int64_t parts = parts_of(x);
  const size_t rank = x->type.shape.rank(), points = rank - 2;
  if (rank < 3) throw fail(E::rank_mismatch, "the operand is {}; a batch of signals is expected", x->type.text());
  const int64_t given = n.opset < 20 ? n.integer("axis", 1) : n.input(2) ? constant_integer(n.input(2), "axis") : -2;
  const size_t axis = normalize_axis(given, rank);
  if (axis == rank - 1) throw fail(E::bad_attribute, "axis {} holds the parts of numbers", given);
  const auto have = x->type.shape[axis].constant();
  if (!n.input(1) && !have)
    throw fail(E::unsupported_op, "the number of points, {}, is open", x->type.shape[axis].text()).hint(kGiveSizes);
  t.length = n.input(1) ? constant_integer(n.input(1), "number of points") : t.gives_reals() ? 2 * (*have - 1) : *have;
  check_table(n, t.length, static_cast<double>(t.length));
  Speller s(n);
  const std::vector<int64_t> turn = swapped(rank, axis, points);
  if (axis != points) x = s.transpose(x, turn);
  x = fitted(n, s, x, points, t.taken());
  Value* table = n.constant(table_of(n, t, parts, x->type.dtype));
  Value* y = s.op("matmul", {with_last(s, x, points, {t.taken() * parts}), table});
  y = with_last(s, y, points, {t.made(), t.parts()});
  return {axis == points ? y : s.transpose(y, turn)};
}

Results import_stft(NodeImport& n) {
  n.require_inputs(2, 4);
  Transform t;
  t.one_sided = n.integer("onesided", 1) != 0;
  Value *x = n.required(0), *window = n.input(2);
  Speller s(n);
  if (x->type.shape.ranked && x->type.shape.rank() == 2) x = s.unsqueeze(x, 2);  // as torch.stft is exported
  const int64_t parts = parts_of(x), step = constant_integer(n.required(1), "step of frames");
  if (x->type.shape.rank() != 3) throw fail(E::rank_mismatch, "the signal is {}", x->type.text());
  if (step <= 0) throw fail(E::bad_attribute, "the step of frames is {}", step);
  const auto have = window ? window->type.shape.elements().constant() : x->type.shape[1].constant();
  if (!n.input(3) && !have) throw fail(E::unsupported_op, "the length of frames is not known").hint(kGiveSizes);
  t.length = n.input(3) ? constant_integer(n.input(3), "length of frames") : *have;
  check_table(n, t.length, 2.0 * static_cast<double>(t.length * parts) * static_cast<double>(t.bins()));
  Tensor filters(x->type.dtype, {t.bins() * 2, parts, t.length});
  int64_t at = 0;
  for (int64_t k = 0; k < t.bins(); ++k)
    for (int to = 0; to < 2; ++to)
      for (int from = 0; from < parts; ++from)
        for (int64_t i = 0; i < t.length; ++i) filters.set_real(at++, factor(t, i, from, k, to));
  Value* weights = n.constant(std::move(filters));
  if (window) weights = s.op("mul", {weights, window});
  Value* y = s.op("conv", {s.transpose(x, {0, 2, 1}), weights}, {{"strides", std::vector<int64_t>{step}}});
  return {with_last(s, s.transpose(y, {0, 2, 1}), 2, {t.bins(), 2})};
}

namespace {

DType result_dtype_of(NodeImport& n) {
  const int64_t code = n.integer("output_datatype", 1);
  const DType dtype = dtype_of(code);
  if (dtype == DType::unknown || dtype == DType::string)
    throw fail(E::unsupported_dtype, "output_datatype asks for element type {}", onnx_type_name(code));
  return dtype;
}

/// a - b cos(2 pi n / N) + c cos(4 pi n / N)
Results cosine_window(NodeImport& n, double a, double b, double c) {
  n.require_inputs(1, 1);
  const int64_t size = constant_integer(n.required(0), "size of the window");
  if (size < 0) throw fail(E::bad_attribute, "a window of {} points", size);
  if (size > 0) check_table(n, size, static_cast<double>(size));
  const double period = static_cast<double>(n.integer("periodic", 1) != 0 ? size : size - 1);
  Tensor window(result_dtype_of(n), {size});
  for (int64_t i = 0; i < size; ++i) {
    const double at = kTurn * static_cast<double>(i) / period;
    window.set_real(i, a - b * std::cos(at) + c * std::cos(2 * at));
  }
  return {n.constant(std::move(window))};
}

}  // namespace

Results import_hann_window(NodeImport& n) { return cosine_window(n, 0.5, 0.5, 0); }
Results import_hamming_window(NodeImport& n) { return cosine_window(n, 25.0 / 46, 21.0 / 46, 0); }
Results import_blackman_window(NodeImport& n) { return cosine_window(n, 0.42, 0.5, 0.08); }

Results import_mel_weight_matrix(NodeImport& n) {
  n.require_inputs(5, 5);
  const int64_t bands = constant_integer(n.required(0), "number of bands");
  const int64_t points = constant_integer(n.required(1), "number of points");
  const int64_t rate = constant_integer(n.required(2), "sample rate");
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(constant_real(n.required(3), "lower edge"));
  const double high = mel(constant_real(n.required(4), "upper edge"));
  const int64_t bins = points / 2 + 1;
  if (bands <= 0 || points <= 0 || rate <= 0)
    throw fail(E::bad_attribute, "{} bands of {} points at {} Hz", bands, points, rate);
  check_table(n, points, static_cast<double>(bands) * static_cast<double>(bins));
  std::vector<int64_t> edge;
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double at = low + static_cast<double>(i) * (high - low) / static_cast<double>(bands + 2);
    const double hertz = 700 * (std::pow(10.0, at / 2595) - 1);
    edge.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(points + 1) * hertz / static_cast<double>(rate))));
  }
  Tensor y(result_dtype_of(n), {bins, bands});
  const auto put = [&](int64_t bin, int64_t band, int64_t part, int64_t whole) {
    if (bin >= 0 && bin < bins) y.set_real(bin * bands + band, static_cast<double>(part) / static_cast<double>(whole));
  };
  for (size_t band = 0; band < static_cast<size_t>(bands); ++band) {
    const int64_t left = edge[band], centre = edge[band + 1], right = edge[band + 2], b = static_cast<int64_t>(band);
    if (centre == left) put(centre, b, 1, 1);
    for (int64_t j = left; centre != left && j <= centre; ++j) put(j, b, j - left, centre - left);
    for (int64_t j = centre; j < right; ++j) put(j, b, right - j, right - centre);
  }
  return {n.constant(std::move(y))};
}

}  // namespace opfuse::onnx
