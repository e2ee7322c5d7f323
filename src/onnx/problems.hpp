// All that is wrong with a file in one error: who exports a model wants to mend it once.
#pragma once

#include <optional>
#include <utility>

#include "opfuse/error.hpp"

namespace opfuse::onnx {

class Problems {
 public:
  static constexpr int kMost = 20;  ///< reading stops there

  /// Runs `step`; what it throws is kept. False when it threw. Internal errors pass: they are opfuse's, not the file's.
  template <class Step>
  bool attempt(Step&& step) {
    try {
      step();
      return true;
    } catch (const Error& error) {
      if (error.diagnostic().name == "internal") throw;
      add(error);
      return false;
    }
  }
  /// Throws the first problem with a line for each of the others; nothing when there is none.
  void report() const;
  bool full() const { return count_ >= kMost; }

 private:
  void add(const Error& error);
  std::optional<Error> first_;
  int count_ = 0;
};

}  // namespace opfuse::onnx
