// The code generators: each answers the same questions about regions. A third one is a row here.
#pragma once

#include "kernel/spec.hpp"

namespace opfuse {

struct Generator {
  std::optional<std::string> (*cannot_generate)(const Region&, const TargetInfo&);
  LayoutWish (*wish_layouts)(const Region&, const TargetInfo&);
  Schedule (*choose_schedule)(const Region&, const std::vector<ParamLayout>&, const TargetInfo&);
  /// What a kernel's schedule could not avoid, for reports ("each row is read twice: ..."); empty: nothing.
  std::string (*limit_of)(const KernelSpec&, const TargetInfo&);
  LinkedCode (*generate)(const std::vector<KernelSpec>&, const TargetInfo&, const CodegenOptions&);
  /// Identifies the generator's build, so that cached kernels of another one are not taken.
  std::string (*fingerprint)();
  /// What tuning tries: the `most` fastest schedules of a kernel by predicted time, the chosen one first.
  std::vector<Schedule> (*candidates)(const Region&, const std::vector<ParamLayout>&, const TargetInfo&, size_t most);
  /// The spec without what its skeleton does not look at: one kernel does for all specs that agree in this.
  KernelSpec (*as_emitted)(const KernelSpec&);
  /// E::codegen_failed for a schedule that cannot be emitted.
  void (*verify)(const KernelSpec&, const TargetInfo&);
};

const Generator& generator_for(const TargetInfo& target);

}  // namespace opfuse
