// The catalogue of named patterns: a table of contents. One topology per file in patterns/.
#pragma once

#include <string>
#include <vector>

#include "match/matcher.hpp"

namespace opfuse {

/// Where quantisation puts a Q/DQ pair.
struct PointRule {
  std::string point;    ///< "INPUT", "RESIDUAL_INPUT", "KEY_INPUT", "VALUE_INPUT", "OUTPUT"
  std::string binding;  ///< operand 0 of that node, or that value; empty: the group's result
  /// Which operand of that node instead of the first; may be empty.
  std::function<const Value*(const Node&)> operand = {};
};

struct FusionPattern {
  std::string name;    ///< "ConvBNReLU"
  std::string module;  ///< "FusedConvBNReLU"
  std::string doc;
  Pattern topology;
  std::vector<MatchPredicate> where;
  std::vector<MatchPredicate> needs;  ///< of an instruction: what matches and lacks one is declined, and kept
  std::string root;                   ///< binding of the operator that names an instance
  std::vector<PointRule> points;
  int priority = 0;  ///< higher ones claim nodes first, whatever their size
  /// A module even where it is more than one kernel: lowering divides it, and the plan says so.
  bool divisible = false;
  bool closed = false;  ///< an instruction of an accelerator: groups of it do not grow
};

FusionPattern stem_conv_bn_relu_max_pool();    ///< Conv 7x7 of 3 channels -> [BN] -> Act -> MaxPool
FusionPattern conv_bn_add_relu();              ///< Conv -> [BN] -> Add residual -> Act
FusionPattern conv_bn_relu();                  ///< Conv -> [BN] -> Act
FusionPattern conv_bn();                       ///< Conv -> [BN]
FusionPattern layer_norm();                    ///< LayerNorm
FusionPattern mha_in_projection();             ///< the Linear of q, k and v
FusionPattern scaled_dot_product_attention();  ///< softmax(q k * s + mask) v
FusionPattern adaptive_avg_pool();             ///< the mean of every whole plane
FusionPattern linear_relu();                   ///< Linear -> Act
FusionPattern linear();                        ///< Gemm or MatMul [-> Add] with constant weights

/// In list order: of two matches with equally many nodes at one anchor the earlier pattern wins.
const std::vector<FusionPattern>& fusion_patterns();

/// Parts that several patterns share.
Pattern conv_block();    ///< conv:conv [bn:batch_norm]
Pattern linear_block();  ///< linear:gemm, or linear:matmul [bias:add]
MatchPredicate one_float_dtype(std::vector<std::string> bindings);
MatchPredicate bias_along_last_axis();

}  // namespace opfuse
