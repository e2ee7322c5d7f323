// What a target's file says besides the numbers of its processor: operators, what fuses around each, composite
// instructions, limits, Q/DQ; of devices without a generator their costs, and of accelerators the plug-in.
// Plain records with their places. Conditions and topologies are texts here; fusion/user/capability_rules.hpp parses
// them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "target/target.hpp"

namespace opfuse {

/// A text of a file and where it stands.
struct PlacedText {
  std::string text;
  std::string file;
  size_t line = 1, column = 1;
  std::string place() const;  ///< "npu.toml:12"
};

/// [[operator]]: what runs there at all. `where` are conditions in the language of patterns; the operator is `op`.
struct OperatorRow {
  PlacedText name;  ///< may be empty; of two rows of one name the later one counts
  std::vector<PlacedText> ops, where;
};

/// One place of a prologue or epilogue.
struct FusionSlot {
  PlacedText name;
  std::vector<PlacedText> ops, where;  ///< `where` knows `op` and `anchor`
  int64_t most = 1;                    ///< operators of it in a row
  PlacedText operand;                  ///< what else an operator may read: "none", "whole" (its result's shape), "any"
};

/// [[anchor]]: an operator that others join. Slots stand in the order in which the hardware applies them.
struct AnchorRow {
  PlacedText name;
  std::vector<PlacedText> ops, where;
  std::vector<FusionSlot> prologue, epilogue;
  int64_t most_prologue = 0, most_epilogue = 0;  ///< 0: as many as the slots take
};

/// The inner tile of a product, computed by a function that the file brings along:
/// sums[rows][columns] += data[rows][K] * weights[K][columns], K a multiple of `depth`, all dense f32.
struct Intrinsic {
  PlacedText source, symbol;                 ///< the file of the function ("tile.c", .ll, .o, .a), and its name in it
  int64_t rows = 0, columns = 0, depth = 1;  ///< of a tile
  std::string path;                          ///< of the source, seen from the target's file
  std::string bytes;                         ///< of the source
  bool given() const { return rows > 0; }
};

/// [[composite]]: an instruction that does what a whole pattern does.
struct CompositeRow {
  PlacedText name, module, about, topology, root;
  std::vector<PlacedText> where;  ///< what else the pattern asks
  std::vector<PlacedText> needs;  ///< preconditions of the instruction: where one fails the ledger says which
  std::vector<std::pair<PlacedText, PlacedText>> points;    ///< "INPUT" -> binding
  double multiply_adds_per_second = 0, launch_seconds = 0;  ///< 0: those of [device]
  Intrinsic intrinsic{};                                    ///< on processors: what replaces the generator's own tile
};

/// [quantize.leave]: groups that stay in floating point although their pattern has points.
struct LeaveRow {
  PlacedText name, topology, why;
  std::vector<PlacedText> where;
};

/// [quantize]: how a quantizer should place and choose Q/DQ pairs for the device.
struct QuantizePreferences {
  bool stated = false;
  std::string activations = "int8", weights = "int8";
  bool symmetric = true;            ///< zero points are 0
  bool per_channel = true;          ///< scales of weights
  bool depthwise_scales = false;    ///< data of depthwise convolutions may have a scale for each channel
  std::string bias = "float";       ///< or "int32": codes of the scale s_x s_w
  std::string arithmetic = "int8";  ///< or "float": it dequantises, and computes products in floating point
  /// Pairs behind convolutions, additions of quantised values and pools of them too: integer operators are made only of
  /// nodes with a DequantizeLinear in front and a QuantizeLinear behind.
  bool results = false;
  bool equalize_anywhere = false;        ///< a Mul of channels may stand in front of a pair
  double equalize_gain = 0;              ///< dB that such a Mul gains at least; 0: it costs nothing
  std::vector<PlacedText> keep_float{};  ///< kinds that stay in floating point: names of quantize/presets.hpp
  std::vector<PlacedText> points{};      ///< kinds of points that are used; none: all
  std::vector<LeaveRow> leave{};
};

/// [limits] of a group; 0: none.
struct GroupLimits {
  int64_t nodes = 0, operands = 0, rank = 0, elements = 0, scratch_bytes = 0;
  bool any() const { return nodes || operands || rank || elements || scratch_bytes; }
};

/// [device], [transfer]: what a device without a generator costs, for plans and placements.
struct DeviceCosts {
  double multiply_adds_per_second = 0;
  double bytes_per_second = 0;  ///< of its own memory
  double launch_seconds = 0;
  double transfer_bytes_per_second = 0;  ///< between the host's memory and its own
  double transfer_seconds = 0;           ///< of a transfer, whatever its size
};

struct Capabilities {
  std::vector<OperatorRow> operators;
  std::vector<AnchorRow> anchors;
  std::vector<CompositeRow> composites;
  GroupLimits limits;
  QuantizePreferences quantize;
  DeviceCosts device;
  PlacedText plugin;  ///< [plugin] library: what runs an accelerator's pieces
  bool any() const;   ///< about what it takes
};

/// What the file of a target says: those of opfuse, and files that this process has read, by the target's name.
const Capabilities& capabilities_of(const TargetInfo& target);
/// Whether opfuse makes the target's kernels; else its file alone says what fuses.
bool has_generator(const TargetInfo& target);

/// As a target's file has them: sections behind those of the fields.
std::string toml_of(const Capabilities& capabilities);
/// What kernels hold of the file besides: the functions of its intrinsics; "" where there are none.
std::string intrinsics_text(const Capabilities& capabilities);

}  // namespace opfuse
