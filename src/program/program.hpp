// The program: regions in launch order over buffers with layouts. Plain data; prints and verifies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "program/schedule.hpp"
#include "region/region.hpp"
#include "region/step_operand.hpp"
#include "tensor/layout.hpp"

namespace opfuse {

enum class BufferKind {
  input,         ///< caller's memory, dense
  output,        ///< caller's memory, dense
  constant,      ///< packed when compiling; bytes live in the artifact
  intermediate,  ///< placed in the arena
};

/// Memory of a value. A view is a part of a larger buffer (operands of concat, results of split).
struct Buffer {
  BufferKind kind = BufferKind::intermediate;
  std::string name;  ///< source tensor name
  TensorType type;
  Layout layout;
  Tensor constant;         ///< kind constant: logical, dense row-major; pack(constant, layout) goes to the artifact
  bool quantised = false;  ///< kind constant: integers in the model, or made of them
  int view_of = -1;        ///< buffer index, or -1
  /// Logical coordinates of the view's origin in that buffer: a box of equal rank and layout. Empty: the
  /// same elements in the same memory order under another shape (a reshape of a densely stored buffer).
  std::vector<Dim> view_offset;
  Dim arena_offset = 0;  ///< bytes; intermediates that are not views, after planning
  /// Physical strides in elements (outer axes in layout order, then blocks): the parent's for views.
  std::vector<Dim> strides;
};

struct Launch {
  Region region;
  std::vector<int> buffers;          ///< one per region parameter
  std::string name;                  ///< readable: "FusedConvBNReLU__layer1_0_conv1"
  std::vector<std::string> sources;  ///< source node names
  std::string pattern;               ///< pattern or rule, "" for a single operator
  Schedule schedule;
  /// Run by the interpreter (--allow-reference): the region is empty, `buffers` are the operands of the
  /// node named first in `sources`, then its results; -1 stands for an absent operand.
  bool reference = false;
  std::vector<StepOperand> steps{};  ///< in a body: how each buffer follows it (a box at the first part or step)
};

enum class BodyKind {
  parts,  ///< of a batch: each by itself, so memory that only the body touches is free again behind its last launch
  steps,  ///< of a sequence: a step reads what the one before stored
};

/// Launches that run again and again, with pointers that move (program/body.hpp).
struct Body {
  BodyKind kind = BodyKind::parts;
  int first = 0, launches = 0;
  Dim times = 0;
  std::string of = "step";  ///< what one of them is called
  std::string symbol{};     ///< parts of an open batch: the batch, which is 1 in the body
  int64_t from = 0;         ///< of an open batch: the smallest that runs so
  bool backwards = false;   ///< steps: boxes move from the end of their first axis to its start
};

struct AlgorithmCost {
  std::string name;
  double cost = 0;            ///< predicted cycles, or measured nanoseconds
  int64_t weight_growth = 0;  ///< bytes beyond the direct weights
};

/// How a convolution, or a product of codes in pairs, is computed, and why.
struct Algorithm {
  int launch = -1;
  std::string name;  ///< "direct", "f2", "f4x2", "f4", "pairs"
  std::string reason;
  double error = 0, error_of_sum = 0;  ///< probed with the layer's weights: of the largest result, of sum|w||x|
  double predicted = 1;                ///< time / time of direct, predicted or measured
  int64_t weight_growth = 0;           ///< bytes beyond the direct weights
  bool bounded = false;                ///< a bound on memory kept a faster one out
  bool inexact = false;                ///< the probed error of a faster one kept it out
  std::vector<AlgorithmCost> costs{};  ///< of all that fit the layer, direct first
};

struct Program {
  std::vector<std::string> symbols;  ///< dimension symbols, in kernel argument order
  std::vector<Buffer> buffers;
  std::vector<Launch> launches;
  std::vector<int> inputs, outputs;     ///< buffer indices in model order
  Dim arena_bytes = 0;                  ///< after planning
  Dim intermediate_bytes = 0;           ///< sum of all intermediates, for the report
  std::vector<Algorithm> algorithms{};  ///< of convolutions, by launch
  std::vector<Body> bodies{};           ///< in launch order, apart from each other
  std::vector<std::string> notes;       ///< splits, refusals, limits that bound: shown by every report
};

std::string print(const Program& program);
void verify(const Program& program);

/// Assigns arena offsets (64-byte aligned, best fit over lifetimes) and fills arena_bytes.
/// `most_comparisons` of buffers (Limits::arena_comparisons): where they keep better plans out, a note says so.
void plan_memory(Program& program, int64_t most_comparisons = Limits{}.arena_comparisons);
/// Fills Buffer::strides from layouts and views.
void assign_strides(Program& program);
/// The buffer that owns the memory of a view (itself when it is none).
int root_of(const Program& program, int buffer);
std::vector<int> roots_of(const Program& program);  ///< of all buffers, in one walk
/// Where a view starts in its root's memory, in elements.
Dim origin_in_root(const Program& program, int buffer);
/// Bytes of a root buffer, padding lanes included.
Dim bytes_of(const Buffer& buffer);

/// Runs the whole program in the region interpreter (doubles): the oracle for code generators.
std::vector<Tensor> interpret(const Program& program, const std::vector<Tensor>& inputs,
                              Precision precision = Precision::exact);

}  // namespace opfuse
