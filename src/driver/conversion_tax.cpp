// A map of one operand whose type is another than its result's: codes to real numbers and back, halves to f32.
#include "driver/conversion_tax.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "driver/predict_launches.hpp"
#include "region/single_stage.hpp"

namespace opfuse {
namespace {

constexpr size_t kNamed = 3;

bool converts(const Expr& value) {
  bool only = true;
  value.visit([&](const Expr& e) {
    switch (e.op()) {
      case ExprOp::constant:
      case ExprOp::read:
      case ExprOp::cast:
      case ExprOp::add:
      case ExprOp::sub:
      case ExprOp::mul:
      case ExprOp::div:
      case ExprOp::min:
      case ExprOp::max:
      case ExprOp::round_even:
        return;
      default:
        only = false;
    }
  });
  return only;
}

}  // namespace

bool only_converts(const Region& region) {
  if (!is_single_stage(region) || !region.stages[0].reductions.empty()) return false;
  const Stage& stage = region.stages[0];
  std::set<int> operands;
  for (const Read& read : stage.reads)
    if (read.stage < 0 && region.params[static_cast<size_t>(read.index)].role != ParamRole::constant)
      operands.insert(read.index);
  if (operands.size() != 1 || stage.outputs.size() != 1 || stage.outputs[0].param < 0) return false;
  const DType from = region.params[static_cast<size_t>(*operands.begin())].type.dtype;
  return from != region.params[static_cast<size_t>(stage.outputs[0].param)].type.dtype &&
         converts(stage.outputs[0].value);
}

ConversionTax conversion_tax(const Program& program, const TargetInfo& target) {
  ConversionTax tax;
  const std::vector<LaunchPrediction> times = predict_launches(program, target);
  for (size_t i = 0; i < times.size(); ++i) {
    const Launch& launch = program.launches[i];
    tax.all += times[i].microseconds;
    if (launch.reference || !only_converts(launch.region)) continue;
    tax.launches.push_back(launch.name);
    tax.microseconds += times[i].microseconds;
    tax.bytes += times[i].bytes;
  }
  return tax;
}

std::string ConversionTax::text() const {
  if (launches.empty()) return {};
  const size_t shown = std::min(launches.size(), kNamed);
  return fmt::format("{} launch{} only convert{}, {:.1f} of {:.1f} us predicted: {}{}", launches.size(),
                     launches.size() == 1 ? "" : "es", launches.size() == 1 ? "s" : "", microseconds, all,
                     fmt::join(launches.begin(), launches.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                     launches.size() > shown ? fmt::format(" and {} more", launches.size() - shown) : "");
}

}  // namespace opfuse
