// The canonical text of a kernel's specification and the name that follows from it.
#include "kernel/spec.hpp"

namespace opfuse {
namespace {

std::string structure(const Region& region) {
  std::string name;
  for (const Stage& stage : region.stages) {
    if (!name.empty()) name += "_";
    switch (stage.anchor) {
      case Anchor::map:
        name += "map";
        break;
      case Anchor::row:
        name += "row";
        break;
      case Anchor::contraction:
        name += stage.reduce.size() > 1 ? "conv" : "gemm";
        break;
      case Anchor::window:
        name += "window";
        break;
      case Anchor::attention:
        name += "attention";
        break;
      case Anchor::scatter:
        name += "scatter";
        break;
    }
  }
  return name;
}

}  // namespace

KernelSpec kernel_spec(const Program& program, const Launch& launch) {
  KernelSpec spec{launch.region, {}, program.symbols, launch.schedule};
  for (int b : launch.buffers) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(b)];
    spec.layouts.push_back({buffer.layout, buffer.strides});
  }
  return spec;
}

std::string KernelSpec::text() const {
  std::string text = print(region);
  for (const ParamLayout& l : layouts) {
    text += "layout " + l.layout.text() + " strides";
    for (const Dim& d : l.strides) text += " " + d.text();
    text += "\n";
  }
  text += "symbols";
  for (const std::string& s : symbols) text += " " + s;
  return text + "\nschedule " + schedule.text() + "\n";
}

std::string kernel_symbol(const KernelSpec& spec) {
  return structure(spec.region) + "_" + hash_text(spec.text()).hex().substr(0, 16);
}

}  // namespace opfuse
