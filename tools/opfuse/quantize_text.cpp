// Short unless asked for all: what a user decides by comes first.
#include "quantize_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "console.hpp"
#include "quantize/multiply_adds.hpp"
#include "report.hpp"

namespace opfuse::cli {
namespace {

using quantization::QuantizedModel;

void print_float(const QuantizedModel& made, bool all) {
  std::map<std::pair<bool, std::string>, std::vector<std::string>> by_reason;  ///< products outside of modules last
  for (const quantization::LeftModule& left : made.placement.left)
    by_reason[{left.module.empty(), left.reason.message}].push_back(left.id);
  for (const auto& [what, names] : by_reason)
    fmt::print("  in float   {} {}{}: {} ({})\n", names.size(), what.first ? "product" : "module",
               names.size() == 1 ? "" : "s", what.second, listed(names, all ? names.size() : 2));
}

std::string origin_of(const quantization::PlacedTensor& placed, size_t most) {
  if (placed.shared) return "for a concat of codes";
  return placed.result ? "for the compiler" : listed(placed.modules, most);
}

void print_shared(const QuantizedModel& made, bool all) {
  for (const quantization::SharedScale& group : made.shared) {
    const auto worst = static_cast<size_t>(std::max_element(group.cost.begin(), group.cost.end()) - group.cost.begin());
    std::vector<std::string> names;
    for (size_t i : group.tensors) names.push_back(made.placement.tensors[i].tensor);
    fmt::print("  shared     {} tensors have one scale{}: {}", names.size(), group.adds ? " across additions" : "",
               listed(names, all ? names.size() : 3));
    if (!made.codes.empty()) fmt::print("; costs {:.1f} dB at most ('{}')", group.most(), names[worst]);
    fmt::print("\n");
  }
}

void print_equalized(const QuantizedModel& made, const std::string& compiler, bool all) {
  const auto folded =
      std::count_if(made.equalized.begin(), made.equalized.end(), [](const auto& e) { return e.folded; });
  if (made.equalized.empty())
    fmt::print(
        "no tensor's channels were equalised: too little to gain, or factors don't fold and {} takes no Mul for them\n",
        compiler);
  else
    fmt::print("channels equalised of {} tensors, {} of them without a Mul\n", made.equalized.size(), folded);
  for (size_t i = 0; all && i < made.equalized.size(); ++i)
    fmt::print("  {:<40} alpha {:g}, {:.1f} dB less expected noise{}\n", made.equalized[i].tensor,
               made.equalized[i].alpha, made.equalized[i].gain, made.equalized[i].folded ? "" : ", by a Mul");
}

void print_moved(const QuantizedModel& made) {
  int64_t moved = 0, cut = 0;
  for (const quantization::QuantizedProduct& product : made.products)
    moved += product.moved_codes, cut += product.cut_codes;
  if (cut > 0)
    fmt::print(
        "weights  {} codes cut, so that pairs of products fit 16 bits on CPUs without VNNI (--pair-sums int32: none)\n",
        cut);
  if (moved > 0)
    fmt::print(
        "weights  {} codes moved to the other neighbour, so that sums of windows keep (--weight-rounding nearest: "
        "none)\n",
        moved);
}

void print_tensors(const QuantizedModel& made) {
  Table table({"tensor", "codes", ">scale", ">zero", ">low", ">high", "groups"});
  for (size_t i = 0; i < made.codes.size(); ++i) {
    const auto& placed = made.placement.tensors[i];
    const auto& s = made.calibration.tensors[i];
    const auto& codes = made.codes[i];
    table.row({placed.tensor, std::string(name_of(codes.dtype)), fmt::format("{:.4g}", codes.scale),
               std::to_string(codes.zero), fmt::format("{:.3g}", s.low), fmt::format("{:.3g}", s.high),
               origin_of(placed, 2)});
  }
  fmt::print("{}", table.text());
}

}  // namespace

void print_placement(const QuantizedModel& made, const quantization::QuantizeOptions& options, bool all) {
  const quantization::Placement& placement = made.placement;
  fmt::print("for {}: {} points of {} modules on {} tensors, {} products with codes as weights, {} of multiply-adds\n",
             options.compiler, placement.points, made.plan.applied().size(), placement.tensors.size(),
             placement.products.size(),
             percent(quantization::multiply_adds_in_codes(made.reference, placement).share(), 1));
  if (all && made.codes.empty())
    for (const auto& placed : placement.tensors) fmt::print("  {:<40} {}\n", placed.tensor, origin_of(placed, 3));
  if (!placement.given.empty())
    fmt::print("  given      {} modules bring their pairs, whose scales stay\n", placement.given.size());
  print_float(made, all);
  print_shared(made, all);
}

void print_agreement(const quantization::Agreement& agreement, double lost_below, bool all) {
  if (all) {
    Table table({"tensor", ">SQNR dB", ">lost here", ">saturated", ">worst", "sample"});
    for (const auto& layer : agreement.layers)
      table.row({layer.tensor, fmt::format("{:.1f}", layer.noise.sqnr()),
                 layer.before < quantization::kMostSqnr ? fmt::format("{:.1f}", layer.drop()) : "",
                 percent(layer.elements > 0 ? double(layer.saturated) / double(layer.elements) : 0, 3),
                 fmt::format("{:.1f}", layer.worst_sqnr), agreement.names[layer.worst_sample]});
    fmt::print("{}", table.text());
  }
  for (const auto& o : agreement.outputs) {
    fmt::print("output   {}: SQNR {:.1f} dB, cosine {:.5f}", o.output, o.noise.sqnr(), o.cosine);
    if (o.rows > 0) fmt::print(", same top-1 in {} of {} rows", o.same_top, o.rows);
    if (!o.worst.empty()) fmt::print("; worst {:.1f} dB at {}", o.worst[0].first, agreement.names[o.worst[0].second]);
    fmt::print("\n");
  }
  if (const auto* lost = agreement.first_below(lost_below))
    fmt::print("lost     first below {:g} dB: '{}' ({:.1f} dB, made from {:.1f} dB)\n", lost_below, lost->tensor,
               lost->noise.sqnr(), lost->before);
  if (const auto* drop = agreement.largest_drop(); drop && drop->drop() > 0)
    fmt::print("         most at '{}': {:.1f} dB of {:.1f}\n", drop->tensor, drop->drop(), drop->before);
}

void print_quantized(const QuantizedModel& made, const quantization::QuantizeOptions& options,
                     const std::optional<quantization::Agreement>& agreement, const QuantizeFlags& flags) {
  print_placement(made, options, flags.verbose);
  if (flags.equalize != "off") print_equalized(made, flags.compiler, flags.verbose);
  if (flags.verbose) print_tensors(made);
  fmt::print("ranges by {} from {} samples{}\n", options.method.text(), made.calibration.samples,
             options.bias_correction ? ", biases corrected" : "");
  print_moved(made);
  for (const std::string& text : made.warnings) warn(text);
  if (!agreement) return;
  fmt::print("agreement with the float model, {} samples{}\n", agreement->samples,
             flags.evaluate.empty() ? " of calibration" : "");
  print_agreement(*agreement, kLostBelow, flags.verbose);
}

void print_search(const quantization::Search& search, const std::string& metric) {
  Table table({">left in float", ">multiply-adds in codes", ">predicted ms", ">" + metric, ">drop", ""});
  for (size_t i = 0; i < search.frontier.size(); ++i) {
    const quantization::FrontierPoint& p = search.frontier[i];
    table.row({std::to_string(p.left), percent(p.share, 1), milliseconds(p.predicted), fmt::format("{:.5g}", p.metric),
               percent(p.drop, 2), i == search.chosen ? "chosen" : ""});
  }
  fmt::print("frontier, on samples of calibration; times as opfuse would run on one core here, float {} ms\n{}",
             milliseconds(search.predicted_float), table.text());
  for (const quantization::Returned& r : search.returned)
    fmt::print("  again    {} in codes: drop {}, {}\n", r.module, percent(r.drop, 2),
               r.held ? "kept in codes" : "stays in float");
  for (const quantization::Sensitivity& s : search.left)
    fmt::print("  left     {}: {:.1f} dB alone\n", s.module, s.sqnr);
}

}  // namespace opfuse::cli
