#include "onnx/problems.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"

namespace opfuse::onnx {

void Problems::add(const Error& error) {
  all_.push_back(error.diagnostic());
  if (!first_) {
    first_ = error;
    return;
  }
  const Diagnostic& d = error.diagnostic();
  const std::string place = d.node.empty() ? "" : fmt::format(" at node \"{}\" ({})", d.node, d.op);
  first_->operand(fmt::format("also{}: [{}] {}: {}", place, d.code, d.name, d.message));
}

void Problems::report(std::vector<Diagnostic>* each) const {
  if (!first_) return;
  if (each != nullptr) *each = all_;
  Error error = *first_;
  if (full())
    error.operand(
        fmt::format("reading stopped at {} problems, opfuse check lists all; {}", most_, how_to_raise("problems")));
  throw error;
}

}  // namespace opfuse::onnx
