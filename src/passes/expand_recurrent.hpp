// Recurrent layers as a program runs them:
//     x W^T + b   of all steps and directions, one product
//     recurrent_steps   of each direction (ops/recurrent_steps.hpp)
//     what y, y_h and y_c take of the states
#pragma once

#include "ir/graph.hpp"

namespace opfuse {

/// Replaces rnn, gru and lstm nodes; what they computed keeps its names. Whether there were any. Lowering does this,
/// and proofs do it to the graph they compare with, so plans and written models keep the layers.
bool expand_recurrent(Graph& graph);

}  // namespace opfuse
