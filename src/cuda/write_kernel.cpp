// KernelSpec -> text: simplifies the iteration space, runs the skeleton the schedule names, puts the file together.
#include <fmt/format.h>

#include <sstream>

#include "cuda/emitters.hpp"
#include "cuda/generator.hpp"
#include "cuda/helpers.hpp"
#include "cuda/row_reads.hpp"
#include "cuda/skeletons.hpp"

namespace opfuse::cuda {

std::string limit_of(const KernelSpec& spec, const TargetInfo& target) {
  const Collapsed c = kGrouped.under(spec.region, spec.layouts);
  const RowReading reading = row_reading(c.region, c.layouts, spec.schedule, target);
  return reading.more_than_once ? reading.text : "";
}

KernelText write_kernel(const KernelSpec& spec, const TargetInfo& target) {
  verify(skeletons(), spec, target);
  const Collapsed c = kGrouped.under(spec.region, spec.layouts);
  Kernel k(c.region, c.layouts, spec, kernel_symbol(spec));
  emit_kernel(k);
  k.finish();
  KernelText text;
  text.symbol = k.symbol;
  text.constants = k.constants();
  for (const Helper& helper : all_helpers())
    if (k.helpers().count(helper.name)) text.helpers.push_back(helper.name);
  text.function = k.signature() + " {\n" + k.arrays() + k.body() + "}\n";
  text.arguments = k.arguments();
  text.grid = k.grid;
  text.block = k.block;
  text.launch_shared = k.launch_shared;
  text.launch_shared_most = k.launch_shared_most;
  for (const auto& [name, map] : k.maps) text.maps.push_back(map);
  text.reading = row_reading(c.region, c.layouts, spec.schedule, target).text;
  return text;
}

std::string describe(const KernelSpec& spec, const KernelText& kernel) {
  std::ostringstream out;
  out << "kernel    " << kernel.symbol << "\n";
  for (size_t p = 0; p < spec.region.params.size(); ++p) {
    const Param& param = spec.region.params[p];
    out << fmt::format("{:<9} {} {} layout {}\n", kernel.arguments[p].second,
                       param.role == ParamRole::input      ? "input"
                       : param.role == ParamRole::constant ? "constant"
                                                           : "output",
                       param.type.text(), spec.layouts[p].layout.text());
  }
  bool open = false;
  for (const Param& param : spec.region.params) open |= !param.type.shape.is_static();
  if (!open) {
    const RegionCost cost = cost_of(spec.region);
    out << fmt::format("bytes     {:.0f} read, {:.0f} written; {:.0f} FLOP\n", cost.bytes_read, cost.bytes_written,
                       cost.flops);
  }
  out << "schedule  " << spec.schedule.text() << "\n";
  if (!kernel.reading.empty()) out << "rows      " << kernel.reading << "\n";
  out << "launch    grid " << kernel.grid.text() << ", block " << kernel.block;
  if (kernel.launch_shared_most > 0) out << ", " << kernel.launch_shared.text() << " bytes of shared memory";
  out << "\n\n";
  out << print(spec.region);
  return out.str();
}

std::string file_text(const KernelText& kernel, const KernelSpec& spec, const std::string& comment) {
  std::string out;
  std::istringstream lines(comment + describe(spec, kernel));
  for (std::string line; std::getline(lines, line);) out += line.empty() ? "//\n" : "// " + line + "\n";
  out += "\n" + kernel.constants + "\n";
  for (const std::string& name : kernel.helpers) out += find_helper(name).text + "\n";
  return out + kernel.function;
}

}  // namespace opfuse::cuda
