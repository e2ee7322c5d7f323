// The list of operators: three parts, each a readable list in catalogue order, then what the IR provides.
#include "base/fail.hpp"
#include "ops/lists.hpp"
#include "ops/registry.hpp"

namespace opfuse {

const OpRegistry& ops() {
  static const OpRegistry registry = [] {
    OpRegistry list;
    register_elementwise(list);
    register_shape(list);
    register_structured(list);
    list.add(*fused_op());
    list.add(*composite_op());
    list.add(*opaque_op());
    return list;
  }();
  return registry;
}

const OpInfo* op_named(std::string_view name) {
  if (const OpInfo* info = ops().find(name)) return info;
  std::string close;
  for (const OpInfo* info : ops().all())
    if (info->name.find(name) != std::string::npos || name.find(info->name) != std::string_view::npos)
      close += (close.empty() ? "" : ", ") + info->name;
  throw fail(E::unknown_name, "there is no operator \"{}\"", name)
      .hint(close.empty() ? "`opfuse ops` lists them" : "did you mean: " + close + "?");
}

}  // namespace opfuse
