// The Python module _core: what the Python side reaches of the C++ library.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "fuselab/core/version.h"

namespace nb = nanobind;

NB_MODULE(_core, m) { m.attr("__version__") = std::string(fuselab::version()); }
