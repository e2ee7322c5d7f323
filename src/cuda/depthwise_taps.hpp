// The sums of a depthwise convolution: a thread has eight channels of kColumns neighbouring results.
#pragma once

#include "cuda/depthwise_view.hpp"

namespace opfuse::cuda {

class DepthwiseTaps {
 public:
  DepthwiseTaps(StageText& s, const DepthwiseView& view, int64_t columns);

  /// Declares sum[kColumns][kVector] and adds all taps. `point`: channel and column are the first of the thread's.
  /// kColumns and kVector are the kernel's.
  void sum(const StageText::Point& point);

 private:
  Kernel& k_;
  StageText& s_;
  const DepthwiseView& view_;
  int64_t columns_;

  const Read& data() const { return s_.stage.reads[static_cast<size_t>(view_.data)]; }
  const Read& weights() const { return s_.stage.reads[static_cast<size_t>(view_.weights)]; }
  Dim coordinate(const IndexMap& map, size_t d, const Env& env) const;
  std::string rows_inside(const Env& env);
  void load_eight(const Read& read, const IndexMap& map, const StageText::Point& point, const std::string& to);
  void load_weights(StageText::Point point);
  void slide(StageText::Point point);
};

}  // namespace opfuse::cuda
