// The list of shaping passes, in their order.
#include "shape/shaping_passes.hpp"

#include <algorithm>

#include "base/did_you_mean.hpp"
#include "base/fail.hpp"
#include "ir/body.hpp"

namespace opfuse {

const std::vector<ShapingPass>& shaping_passes() {
  static const std::vector<ShapingPass> kAll{
      widen_halves(),          // first: kernels compute in f32, and the others ask for kernels
      sum_codes(),             // before siblings: who reads codes is not a sibling of who reads what they stand for
      merge_siblings(),        // before movements: attention reads the columns of the product, as one of them
      codes_to_attention(),    // behind codes: products that make its operands store codes then
      absorb_movements(),      // before images: what is left between the groups decides how far a loop goes
      add_in_parts(),          // before images: its sum has no group afterwards
      loop_over_images(),      // before the joins, which are chosen for the maps of one image
      join_chains(),           //
      join_gates(),            //
      join_means(),            // behind chains: those make the maps too
      join_norms(),            //
      join_channel_factors(),  //
      narrow_maps(),           // of what holds most memory
      run_in_slices(),         // of what still does
      narrow_factors(),        // last: launches are what they will be, and so is what lies between them
      narrow_streams(),        // what is left of it in f32
      pack_codes(),            // of products whose data are floats
      narrow_weights()};       // of products whose data stay f32
  return kAll;
}

const std::vector<std::string>& passes_of_chains() {
  static const std::vector<std::string> kNames{"loop-over-images", "join-chains", "join-gates", "join-means",
                                               "join-channel-factors"};
  return kNames;
}

const std::vector<std::string>& passes_of_types() {
  static const std::vector<std::string> kNames{"widen-halves", "narrow-factors", "pack-codes", "narrow-weights"};
  return kNames;
}

const std::vector<std::string>& passes_of_launches() {
  static const std::vector<std::string> kNames{"merge-siblings", "absorb-movements", "join-norms", "narrow-factors",
                                               "narrow-streams"};
  return kNames;
}

const std::vector<std::string>& passes_of_gpus() {
  static const std::vector<std::string> kNames{"join-norms"};
  return kNames;
}

void check_shaping_names(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const ShapingPass& pass : shaping_passes()) known.push_back(pass.name);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw fail(E::unknown_name, "there is no shaping pass \"{}\"", name).hint(did_you_mean(name, known));
}

bool run_in_bodies(const ShapingPass& pass, Graph& graph, const ShapeContext& context,
                   std::vector<ShapeVerdict>& verdicts) {
  bool changed = false;
  if (!pass.whole)
    for (Node* node : std::vector<Node*>(graph.nodes()))
      if (node->body && !stands_for_body(*node) && run_in_bodies(pass, *node->body, context, verdicts)) {
        node->body->remove_dead_nodes();
        changed = true;
      }
  return pass.run(graph, context, verdicts) || changed;
}

Pass as_pass(const ShapingPass& pass, const ShapeContext& context, std::vector<ShapeVerdict>& verdicts) {
  const auto run = [pass, &context, &verdicts](Graph& graph, PassContext&) {
    return run_in_bodies(pass, graph, context, verdicts);
  };
  return {pass.name, pass.summary, run, {}};
}

std::vector<ShapeVerdict> ShapingPass::operator()(Graph& graph, const ShapeContext& context) const {
  std::vector<ShapeVerdict> verdicts;
  if (run_in_bodies(*this, graph, context, verdicts)) graph.remove_dead_nodes();
  return verdicts;
}

}  // namespace opfuse
