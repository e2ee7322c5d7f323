// All that is wrong with a file in one error: who exports a model wants to mend it once.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "opfuse/error.hpp"

namespace opfuse::onnx {

class Problems {
 public:
  /// Reading stops at `most` (Limits::problems).
  explicit Problems(int64_t most) : most_(static_cast<size_t>(most)) {}

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
  /// Throws the first problem with a line for each of the others; nothing when there is none. `each` receives them.
  void report(std::vector<Diagnostic>* each) const;
  bool none() const { return all_.empty(); }
  bool full() const { return all_.size() >= most_; }

 private:
  size_t most_;
  void add(const Error& error);
  std::optional<Error> first_;
  std::vector<Diagnostic> all_;
};

}  // namespace opfuse::onnx
