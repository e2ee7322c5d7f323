// opfuse._core: the C++ API for Python, name by name. What Python adds to it is in opfuse/__init__.py.
#include "module.hpp"

#include <nanobind/stl/string.h>

#include <opfuse/opfuse.hpp>

#include "errors.hpp"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  m.doc() = "The C++ API of opfuse. Import opfuse, not this.";
  opfuse::python::translate_errors();
  opfuse::python::bind_models(m);
  opfuse::python::bind_plans(m);
  opfuse::python::bind_running(m);
  opfuse::python::bind_quantizing(m);
  opfuse::python::bind_networks(m);
  m.def("version", &opfuse::version, "The version of the library.");
  m.def("default_threads", &opfuse::default_threads, "Threads this process may use: affinity mask and CPU quota.");
}
