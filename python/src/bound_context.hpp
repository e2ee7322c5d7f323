// A context and the arrays that are bound to it.
#pragma once

#include <map>
#include <opfuse/opfuse.hpp>
#include <set>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "errors.hpp"

namespace opfuse::python {

/// A stream as DLPack names it: 1 is CUDA's default stream, which CUDA names 0; at -1 nobody waits.
inline constexpr int64_t kDefaultStream = 1, kNobodyWaits = -1;

/// An int, or an object of torch or cupy that has one; none: the default stream.
int64_t stream_of(nanobind::handle stream);

std::string names_of(const std::vector<TensorInfo>& tensors);

class BoundContext {
 public:
  BoundContext(Executable exe, ContextOptions options)
      : exe_(std::move(exe)),
        device_results_(options.device_results),
        context_(exe_.create_context(std::move(options))) {}

  /// `use` alone with the context, without the interpreter's lock.
  template <class Use>
  auto with_context(Use use) -> decltype(use(std::declval<Context&>())) {
    if (busy_) throw bad_binding("the context is used by another thread", "one context per thread, or Executable.run");
    const Busy mark(busy_);
    nanobind::gil_scoped_release release;
    return use(context_);
  }

  /// `stream` waits for what the producer of an array of a GPU has under way.
  void bind(const std::string& name, nanobind::handle object, int64_t stream);
  /// On a GPU with arrays in its memory, on the default stream; with `stream` there, and without waiting.
  void run(nanobind::handle stream);
  nanobind::object output(const std::string& name) const;
  int device() const { return context_.device(); }
  /// Forgets all arrays, which callers of `run` on an executable own.
  void release() { bound_.clear(), own_.clear(); }

 private:
  struct Busy {
    bool& flag;
    explicit Busy(bool& busy) : flag(busy) { flag = true; }
    ~Busy() { flag = false; }
  };
  bool is_output(const std::string& name) const;
  bool resident() const;
  void check_resident() const;
  void give_memory(const TensorInfo& output);
  void take_found();
  HeldArray new_device_array(const TensorInfo& output, const std::vector<int64_t>& shape);

  Executable exe_;
  bool device_results_;
  Context context_;
  bool busy_ = false;
  std::map<std::string, HeldArray> bound_;
  std::map<std::string, bool> own_;  ///< outputs whose array was made here
  std::set<std::string> found_;      ///< outputs whose sizes the run finds
};

}  // namespace opfuse::python
