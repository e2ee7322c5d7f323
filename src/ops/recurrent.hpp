// Recurrent layers, one or two directions over a sequence; the cells are in ops/recurrent_cell.hpp.
//     x [time, batch, in], w [directions, gates * hidden, in], r [directions, gates * hidden, hidden],
//     b [directions, 2 * gates * hidden] (of w, then of r), sequence_lens [batch], states [directions, batch, hidden]
//     y [time, directions, batch, hidden], y_h and y_c [directions, batch, hidden]
// Layout 1 has the batch first in x, y and states. Behind the end of its sequence y is 0; a backward direction starts
// there, and y_h, y_c are the states where a direction ends.
#pragma once

#include "ops/declare.hpp"
#include "ops/recurrent_cell.hpp"

namespace opfuse {

/// The attributes of all three.
struct RecurrentAttrs {
  std::vector<std::string> activations;
  std::vector<double> activation_alpha, activation_beta;
  double clip = 0;  ///< 0: none
  std::string direction = "forward";
  int64_t hidden_size = 0;  ///< 0: as the weights say
  int64_t layout = 0;
  bool input_forget = false, linear_before_reset = false;
  static void common(auto& s, auto&& field) {
    field("activation_alpha", s.activation_alpha);
    field("activation_beta", s.activation_beta);
    field("activations", s.activations);
    field("clip", s.clip);
    field("direction", s.direction);
    field("hidden_size", s.hidden_size);
    field("layout", s.layout);
  }
  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  bool batch_first() const { return layout != 0; }
  /// Direction `d` goes back in time.
  bool reverse(int64_t d) const { return direction == "reverse" || d == 1; }
  Cell cell(CellKind kind, int64_t direction) const;  ///< E::bad_attribute
};

/// Operands of all three; the last two are the LSTM's.
enum RecurrentInput : size_t { kSequence, kInputWeights, kStateWeights, kBias, kLengths, kH0, kC0, kPeepholes };

std::vector<TensorType> infer_recurrent(CellKind kind, const RecurrentAttrs& attrs, const Inference& in);
std::vector<Tensor> run_recurrent(CellKind kind, const RecurrentAttrs& attrs, Tensors in);
Cost recurrent_cost(std::span<const TensorType> in, std::span<const TensorType> out);

/// Inputs x, w, r, b (optional), sequence_lens (optional), initial_h (optional). Outputs y, y_h.
struct Rnn {
  struct Attrs : RecurrentAttrs {
    static void each(auto& s, auto&& field) { common(s, field); }
  };
  static constexpr CellKind kKind = CellKind::rnn;
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& a, const Inference& in) { return infer_recurrent(kKind, a, in); }
  static std::vector<Tensor> reference(const Attrs& a, Tensors in, Precision) { return run_recurrent(kKind, a, in); }
  static Cost cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
    return recurrent_cost(in, out);
  }
};

/// The same. Gates z, r, n.
struct Gru {
  struct Attrs : RecurrentAttrs {
    static void each(auto& s, auto&& field) {
      common(s, field);
      field("linear_before_reset", s.linear_before_reset);
    }
  };
  static constexpr CellKind kKind = CellKind::gru;
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& a, const Inference& in) { return infer_recurrent(kKind, a, in); }
  static std::vector<Tensor> reference(const Attrs& a, Tensors in, Precision) { return run_recurrent(kKind, a, in); }
  static Cost cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
    return recurrent_cost(in, out);
  }
};

/// The same and initial_c, p (optional). Outputs y, y_h, y_c. Gates i, o, f, c; p [directions, 3 * hidden] of i, o, f.
struct Lstm {
  struct Attrs : RecurrentAttrs {
    static void each(auto& s, auto&& field) {
      common(s, field);
      field("input_forget", s.input_forget);
    }
  };
  static constexpr CellKind kKind = CellKind::lstm;
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& a, const Inference& in) { return infer_recurrent(kKind, a, in); }
  static std::vector<Tensor> reference(const Attrs& a, Tensors in, Precision) { return run_recurrent(kKind, a, in); }
  static Cost cost(const Attrs&, std::span<const TensorType> in, std::span<const TensorType> out) {
    return recurrent_cost(in, out);
  }
};

}  // namespace opfuse
