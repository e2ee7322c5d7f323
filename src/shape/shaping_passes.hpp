// The table of contents of shaping: what a fused graph becomes for a target before it is lowered. One line and one
// sentence each; docs/fusion.md has the pictures. Plan, groups and their counts do not change.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "passes/pass_manager.hpp"
#include "shape/shape_context.hpp"
#include "shape/verdict.hpp"

namespace opfuse {

struct ShapingPass {
  std::string name;     ///< dash form of the factory, "join-chains"
  std::string summary;  ///< one sentence
  /// Returns whether it changed the graph; tells what it looked at.
  std::function<bool(Graph&, const ShapeContext&, std::vector<ShapeVerdict>&)> run;
  bool whole = false;  ///< looks into bodies of loops itself; others run on each of them
  /// The pass and what the manager does behind it, without the manager's checks: for tests of one rewrite.
  std::vector<ShapeVerdict> operator()(Graph& graph, const ShapeContext& context = {}) const;
};

/// Values of 16 bits are computed and kept in f32.
ShapingPass widen_halves();
/// Products of quantised operands become sums of their codes.
ShapingPass sum_codes();
/// Linears of one value become one product.
ShapingPass merge_siblings();
/// Operands of attention that are rounded to one step are stored and read as codes.
ShapingPass codes_to_attention();
/// Movements of elements around attention and rotary embeddings become part of their loads and stores.
ShapingPass absorb_movements();
/// Tables added to concatenated tokens are added where the tokens are made.
ShapingPass add_in_parts();
/// The first groups of a batch run image by image, where the maps of all images leave the caches.
ShapingPass loop_over_images();
/// A convolution and the depthwise one behind it become one launch.
ShapingPass join_chains();
/// The two products of a gated MLP become one.
ShapingPass join_gates();
/// Means of planes are summed by the kernel that makes the map.
ShapingPass join_means();
/// A depthwise convolution and the LayerNorm of its channels become one launch.
ShapingPass join_norms();
/// Factors of channels become factors of the next convolution's weights.
ShapingPass join_channel_factors();
/// With the least memory, images of an f16 model that hold most of it lie in f16.
ShapingPass narrow_maps();
/// Pairs of groups that hold most memory run slice by slice.
ShapingPass run_in_slices();

/// Products for which the plan says bf16 or f16 read factors of that type, which their producers store.
ShapingPass narrow_factors();
ShapingPass narrow_streams();
/// Weights that are stored as codes stay codes, and kernels decode them.
ShapingPass pack_codes();
/// Weights of products lie in 16 bits, and kernels widen them in registers.
ShapingPass narrow_weights();

/// All of them in their order.
const std::vector<ShapingPass>& shaping_passes();
/// What --no-chains stands for: the joins and the loop over images.
const std::vector<std::string>& passes_of_chains();
/// Those that a graph without groups needs too: what they do is not about fusion.
const std::vector<std::string>& passes_of_types();
/// Those that save launches on GPUs, where maps do not stay in caches.
const std::vector<std::string>& passes_of_launches();
/// Those for GPUs alone: on CPUs they would lose.
const std::vector<std::string>& passes_of_gpus();
/// E::unknown_name, with a did-you-mean, for a name that is not a shaping pass.
void check_shaping_names(const std::vector<std::string>& names);

/// The pass on a graph and on the bodies of its loops, in the order of their nodes.
bool run_in_bodies(const ShapingPass& pass, Graph& graph, const ShapeContext& context,
                   std::vector<ShapeVerdict>& verdicts);
/// For the manager (passes/pass_manager.hpp). `context` and `verdicts` outlive what is returned.
Pass as_pass(const ShapingPass& pass, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts);

}  // namespace opfuse
