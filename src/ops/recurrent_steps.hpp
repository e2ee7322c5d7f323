// The steps of one direction of a recurrent layer, whose products with the input are made already. Passes write it
// (passes/expand_recurrent.hpp); a program runs it as a loop over launches of one step.
//     for t in time, or back:   h[t], c[t] = cell(x[t], h[t - 1], c[t - 1])
// Where `alive` is false a step leaves the state as it was. It is in graphs that are about to be lowered and in no
// registry.
#pragma once

#include "ops/declare.hpp"
#include "ops/recurrent_cell.hpp"

namespace opfuse {

/// Inputs x [time, batch, gates * hidden], r [gates * hidden, hidden], h0 [1, batch, hidden]; optional: c0 (LSTM), the
/// bias b [hidden] of a GRU's product before the reset, peepholes p [3 * hidden], alive [time, batch] of booleans.
/// Results h [time, batch, hidden]; of an LSTM c; of a GRU whose reset comes before its product r * h and z.
struct RecurrentSteps {
  struct Attrs {
    CellKind cell = CellKind::rnn;
    bool reverse = false;
    std::vector<std::string> activations;
    std::vector<double> activation_alpha, activation_beta;
    double clip = 0;
    bool input_forget = false;
    bool linear_before_reset = false;
    static void each(auto& s, auto&& field) {
      field("cell", s.cell);
      field("reverse", s.reverse);
      field("activations", s.activations);
      field("activation_alpha", s.activation_alpha);
      field("activation_beta", s.activation_beta);
      field("clip", s.clip);
      field("input_forget", s.input_forget);
      field("linear_before_reset", s.linear_before_reset);
    }
    Cell as_cell() const;
  };
  enum Input : size_t { kX, kR, kH0, kC0, kB, kP, kAlive };
  static OpSpec spec();
  static std::vector<TensorType> infer(const Attrs& attrs, const Inference& in);
  static std::vector<Tensor> reference(const Attrs& attrs, Tensors in, Precision precision);
  static Cost cost(const Attrs& attrs, std::span<const TensorType> in, std::span<const TensorType> out);
};

const OpInfo* recurrent_steps_op();

/// One direction in doubles; null: absent. `alive` by [time, batch].
struct StepsInDoubles {
  Cell cell;
  bool reverse = false;
  int64_t time = 0, batch = 0, hidden = 0;
  const double *x = nullptr, *r = nullptr, *h0 = nullptr, *c0 = nullptr, *b = nullptr, *p = nullptr;
  std::vector<char> alive{};
  struct Results {
    std::vector<double> h, second, third;  ///< [time, batch, hidden]; c, or r * h and z
  };
  Results run() const;
};

}  // namespace opfuse
