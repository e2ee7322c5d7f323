// One step of a recurrent cell, for numbers and for expressions. Sums are those of the input and of the state, biases
// included; f, g, k are the cell's functions in ONNX's order, applied to sums within [-clip, clip].
//   RNN    h' = f(s)
//   GRU    z = f(s_z)  r = f(s_r)  n = g(s_n)                  h' = (1 - z) n + z h
//          s_n = x_n + r (R_n h + b_n)  linear before reset,   s_n = x_n + R_n (r h) + b_n  otherwise
//   LSTM   i = f(s_i + p_i c)  u = f(s_f + p_f c)  n = g(s_c)  c' = u c + i n     input_forget: u = 1 - i
//          o = f(s_o + p_o c')                                 h' = o k(c')
#pragma once

#include <string>
#include <vector>

#include "ops/elu.hpp"
#include "ops/hard_sigmoid.hpp"
#include "ops/leaky_relu.hpp"
#include "ops/relu.hpp"
#include "ops/sigmoid.hpp"
#include "ops/softplus.hpp"
#include "ops/softsign.hpp"
#include "ops/tanh.hpp"
#include "ops/thresholded_relu.hpp"

namespace opfuse {

enum class CellKind { rnn, gru, lstm };
template <>
inline constexpr auto enum_names<CellKind> = std::array{"rnn", "gru", "lstm"};

/// Gates of a cell: rows of weights per hidden unit.
constexpr int64_t gates_of(CellKind kind) { return kind == CellKind::lstm ? 4 : kind == CellKind::gru ? 3 : 1; }
/// Functions of a cell: f; f, g; f, g, k.
constexpr size_t functions_of(CellKind kind) { return static_cast<size_t>(kind) + 1; }

enum class CellLaw {
  affine,
  elu,
  hard_sigmoid,
  leaky_relu,
  relu,
  scaled_tanh,
  sigmoid,
  softplus,
  softsign,
  tanh,
  thresholded_relu
};

struct CellFunction {
  CellLaw law = CellLaw::tanh;
  double alpha = 0, beta = 0;
};

/// Functions by ONNX's names, in any case. Alphas and betas go to those that have one, in order; what is left has its
/// default. No names: the cell's own functions, `directions` times. E::bad_attribute.
std::vector<CellFunction> cell_functions(CellKind kind, size_t directions, const std::vector<std::string>& names,
                                         const std::vector<double>& alphas, const std::vector<double>& betas);
/// ONNX's name.
std::string name_of(CellLaw law);
bool has_alpha(CellLaw law);
bool has_beta(CellLaw law);

/// What a step computes, but for its operands.
struct Cell {
  CellKind kind = CellKind::rnn;
  std::vector<CellFunction> functions;  ///< of one direction
  double clip = 0;                      ///< 0: none
  bool input_forget = false, linear_before_reset = false;
};

template <class S>
S apply_function(const CellFunction& f, S x) {
  switch (f.law) {
    case CellLaw::affine:
      return S(f.alpha) * x + S(f.beta);
    case CellLaw::elu:
      return Elu::eval<S>({f.alpha}, x);
    case CellLaw::hard_sigmoid:
      return HardSigmoid::eval<S>({f.alpha, f.beta}, x);
    case CellLaw::leaky_relu:
      return LeakyRelu::eval<S>({f.alpha}, x);
    case CellLaw::relu:
      return Relu::eval<S>({}, x);
    case CellLaw::scaled_tanh:
      return S(f.alpha) * tanh(S(f.beta) * x);
    case CellLaw::sigmoid:
      return Sigmoid::eval<S>({}, x);
    case CellLaw::softplus:
      return Softplus::eval<S>({}, x);
    case CellLaw::softsign:
      return Softsign::eval<S>({}, x);
    case CellLaw::tanh:
      return Tanh::eval<S>({}, x);
    case CellLaw::thresholded_relu:
      return ThresholdedRelu::eval<S>({f.alpha}, x);
  }
  return x;
}

/// Function `index` of a sum.
template <class S>
S activated(const Cell& cell, size_t index, S sum) {
  if (cell.clip > 0) sum = maximum(S(-cell.clip), minimum(S(cell.clip), sum));
  return apply_function(cell.functions[index], sum);
}

template <class S>
S gru_state(const Cell& cell, S z, S sum, S h) {
  return (S(1) - z) * activated(cell, 1, sum) + z * h;
}

template <class S>
struct LstmSums {
  S i, o, f, c;
};
template <class S>
struct LstmState {
  S h, c;
};
/// `peepholes`: p_i, p_o, p_f, or null.
template <class S>
LstmState<S> lstm_state(const Cell& cell, const LstmSums<S>& sums, S c, const S* peepholes) {
  const auto peeped = [&](const S& sum, int which, const S& state) {
    return peepholes ? sum + peepholes[which] * state : sum;
  };
  const S i = activated(cell, 0, peeped(sums.i, 0, c));
  const S u = cell.input_forget ? S(1) - i : activated(cell, 0, peeped(sums.f, 2, c));
  const S next = u * c + i * activated(cell, 1, sums.c);
  const S o = activated(cell, 0, peeped(sums.o, 1, next));
  return {o * apply_function(cell.functions[2], next), next};
}

}  // namespace opfuse
