// Arrays that a caller binds: whether they lie where they say, and where a run can use them.
#pragma once

#include <string>

#include "opfuse/array_view.hpp"
#include "runtime/device.hpp"

namespace opfuse {

/// Vectors of 16 bytes and tensor maps start there.
inline constexpr size_t kArrayAlignment = 16;

/// Throws E::bad_binding for an array that a run of `program` cannot read or write in place: of another device, of the
/// host although it says otherwise (or the other way round), misaligned, or longer than the allocation it lies in.
void check_place(const DeviceProgram& program, const std::string& name, const ArrayView& array);

/// The same for a program of the CPU: all arrays are the host's.
void check_host_place(const std::string& name, const ArrayView& array);

}  // namespace opfuse
