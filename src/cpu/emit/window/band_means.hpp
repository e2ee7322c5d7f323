// Means of bands of rows (cpu/window/mean_view.hpp): a part has whole bands of some channel vectors, whose sums lie in
// scratch until the last row of the band is there.
#pragma once

#include "cpu/emit/window/window.hpp"
#include "cpu/window/mean_view.hpp"

namespace opfuse::cpu {

/// The output that only the means read, as a local of its stage; none without a view.
StageEmitter::Locals not_stored(const std::optional<MeanView>& view);

class BandMeans {
 public:
  /// Takes scratch for the sums of `vectors` channel vectors, behind the kernel's own. Does nothing without a view.
  BandMeans(Kernel& k, const std::optional<MeanView>& view, int64_t vectors);

  void clear();
  /// What `window` stores of channel vectors from `first` on is added.
  void attach(WindowEmitter& window, Value* first) const;
  /// The means of the band that row `row` of the map starts, of channel vectors [first, end).
  void store(const WindowEmitter& window, const Env& env, Value* first, Value* end, Value* row);

 private:
  Kernel& k_;
  std::optional<MeanView> view_;
  int64_t vectors_, lanes_;
  Value* sums_ = nullptr;
};

}  // namespace opfuse::cpu
