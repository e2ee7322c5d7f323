// The code generators: each answers the same four questions about regions. A third one is a row here.
#pragma once

#include "codegen/codegen.hpp"

namespace opfuse {

struct Generator {
  std::optional<std::string> (*cannot_generate)(const Region&, const TargetInfo&);
  LayoutWish (*wish_layouts)(const Region&, const TargetInfo&);
  Schedule (*choose_schedule)(const Region&, const std::vector<ParamLayout>&, const TargetInfo&);
  LinkedCode (*generate)(const std::vector<KernelSpec>&, const TargetInfo&, const CodegenOptions&);
  /// Identifies the generator's build, so that cached kernels of another one are not taken.
  std::string (*fingerprint)();
  bool blocked_layouts;  ///< activations with their channels in blocks of a vector
};

const Generator& generator_for(const TargetInfo& target);

}  // namespace opfuse
