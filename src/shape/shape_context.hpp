// What shaping passes know of the target. The driver answers (driver/shape_for_target.cpp): what is legal asks lowering
// and the generator, what is a gain asks the costs of kernels, and neither is seen from here.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "fusion/plan.hpp"
#include "program/image_traffic.hpp"

namespace opfuse {

struct ShapeContext {
  /// Why a node is not a kernel of the target; null: every node is one.
  Legality legal{};
  /// By name of a pass, why a node it joined is slower than what it was made of; a pass without an entry always gains.
  std::map<std::string, Legality> gains{};
  /// Both products of an attention are sums of bytes; null: not known.
  std::function<bool(const Node& group)> multiplies_codes{};
  /// Into how many bands the rows of a group's result are cut, a divisor of them; null: one.
  std::function<int64_t(const Node& group)> bands{};
  ImageCaches caches{};       ///< what maps of one image should fit into
  int64_t channel_block = 1;  ///< channels that a layout keeps together
  /// The skeleton of the kernel that a node becomes; empty: it becomes none. Null: not known.
  std::function<std::string(const Node& node)> skeleton{};
  std::set<std::string> off{};  ///< names of passes that are switched off
  std::map<std::string, std::string>
      precisions{};  ///< by source name of a product or label of a group, where it is not f32
  bool multiplies_bf16 = true,
       multiplies_f16 = true;     ///< the target has such products; else f16 is for storing weights
  bool multiplies_bytes = false;  ///< the target sums products of bytes as they lie
  bool least_memory = false;      ///< weights that lose nothing by it lie in 16 bits, slices are small
  NodePairs apart{};              ///< nodes that share no launch

  /// The plan asks for products of 16-bit factors in this node, and the target has such products.
  bool multiplies_narrow(const Node& node) const;
  /// A refusal with the code "disabled" where the pass is switched off.
  std::optional<Decline> switched_off(const std::string& pass) const;
  /// Why what a pass joined is not a gain.
  std::optional<Decline> loses(const std::string& pass, const Node& joined) const;
  /// Why what a pass joined must not be one kernel: nodes of it are to stay apart, or it is not legal.
  std::optional<Decline> forbids(const Node& joined) const;
  /// Why it should not be one: that, or no gain.
  std::optional<Decline> refuses(const std::string& pass, const Node& joined) const;
};

}  // namespace opfuse
