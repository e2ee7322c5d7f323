// The register-tiled contraction, as an object so that a fused kernel can emit it into a row band.
#pragma once

#include "cpu/emit/contraction/plan.hpp"
#include "cpu/emit/parts.hpp"

namespace opfuse::cpu {

class ContractionEmitter {
 public:
  /// Of a band of its pixels, where one is given: then `items` of emit() are all of its tiles, whatever they say.
  /// `bias`: ContractionPlan::bias.
  ContractionEmitter(Kernel& k, StageEmitter& stage, const ContractionView& view, std::optional<PixelBand> band = {},
                     int bias = -1);

  int64_t blocks() const { return plan_.blocks(); }  ///< of output channels
  Dim items() const { return plan_.items(); }        ///< rows, or tiles
  const std::vector<int>& batch_axes() const { return plan_.batch_axes; }
  /// All of `blocks` and `items` at the batch coordinates in `env`.
  void emit(const Env& env, PartRange blocks, PartRange items) const;

 private:
  const ContractionPlan plan_;
  const std::optional<ContractionPlan> few_rows_;  ///< the same for few of an open number of rows
  const std::optional<ContractionPlan> one_row_;   ///< for one of them, as digits

  void emit_blocks(const Env& env, PartRange blocks, PartRange items) const;
};

}  // namespace opfuse::cpu
