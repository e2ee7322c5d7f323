// The summary of an optimized model: candidates, then proof, time and memory, a line each.
#include <fmt/ranges.h>

#include "opfuse/optimize.hpp"

namespace opfuse {
namespace {

std::string megabytes(double bytes) { return fmt::format("{:.2f} MB", bytes * 1e-6); }

std::string milliseconds(double ms) { return fmt::format("{:.{}f}", ms, ms >= 10 ? 1 : ms >= 1 ? 2 : 3); }

std::string candidate_line(const OptimizeCandidate& c, bool chosen) {
  std::string line =
      fmt::format("  {} {:<20} {:<28}", chosen ? '*' : ' ', c.name, c.flags.empty() ? "(no flags)" : c.flags);
  if (!c.skipped.empty()) return line + " " + c.skipped + "\n";
  return line + fmt::format(" {:>9} {:>5} launches {:>12}\n", c.ms > 0 ? milliseconds(c.ms) + " ms" : "-", c.launches,
                            megabytes(static_cast<double>(c.arena + c.constants)));
}

std::string proof_line(const Optimized& o) {
  if (o.groups == 0) return "  proof     left out\n";
  if (o.failures.empty())
    return fmt::format(
        "  proof     {} groups, worst {:.2g} of its bound; outputs within {:.1e} of their largest value\n", o.groups,
        o.worst_of_bound, o.output_error);
  return fmt::format(
      "  proof     FAILED for {} of {} groups and outputs: {}\n", o.failures.size(), o.groups,
      fmt::join(o.failures.begin(),
                o.failures.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(3, o.failures.size())), "; "));
}

std::string time_line(const Optimized& o) {
  if (o.time.estimate <= 0) return "  time      not measured\n";
  const char* verdict = o.slower() ? "SLOWER" : o.time.high < 1 ? "faster" : "no difference beyond noise";
  return fmt::format("  time      {} ms, unfused {} ms: {:.2f}x [{:.2f}, {:.2f}], {}\n", milliseconds(o.fused.ms),
                     milliseconds(o.unfused.ms), 1 / o.time.estimate, 1 / o.time.high, 1 / o.time.low, verdict);
}

}  // namespace

std::string Optimized::text() const {
  std::string sizes;
  for (const auto& [name, size] : dims) sizes += fmt::format("   {}={}", name, size);
  std::string text = fmt::format("{}   {} thread{}{}\n", target, threads, threads == 1 ? "" : "s", sizes);
  for (size_t i = 0; i < candidates.size(); ++i) text += candidate_line(candidates[i], i == chosen);
  text += proof_line(*this) + time_line(*this);
  text += fmt::format("  memory    {} = {} intermediate + {} weights, unfused {} = {} + {}: {}\n",
                      megabytes(double(fused.memory())), megabytes(double(fused.arena)),
                      megabytes(double(fused.constants)), megabytes(double(unfused.memory())),
                      megabytes(double(unfused.arena)), megabytes(double(unfused.constants)),
                      larger()                            ? "LARGER"
                      : fused.memory() < unfused.memory() ? "smaller"
                                                          : "equal");
  text += fmt::format("  launches  {}, unfused {}; moved {}, unfused {}\n", fused.launches, unfused.launches,
                      megabytes(fused.bytes), megabytes(unfused.bytes));
  return text + (!ok() ? "FAILED\n" : interrupted ? "INTERRUPTED\n" : "PASSED\n");
}

}  // namespace opfuse
