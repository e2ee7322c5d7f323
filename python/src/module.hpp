// The parts of the module opfuse._core.
#pragma once

#include <nanobind/nanobind.h>

namespace opfuse::python {

void bind_models(nanobind::module_& m);      ///< TensorInfo, Model, Target
void bind_plans(nanobind::module_& m);       ///< PatternSpec, Plan, Fused, Remark, and the functions that make them
void bind_running(nanobind::module_& m);     ///< compile, optimize, Executable, Context, LaunchInfo
void bind_quantizing(nanobind::module_& m);  ///< quantize, QuantizeRequest
void bind_networks(nanobind::module_& m);    ///< Network, models from and into memory

}  // namespace opfuse::python
