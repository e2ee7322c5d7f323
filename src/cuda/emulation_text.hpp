// The text of emulation.h, part of the program (made by CMake).
#pragma once

namespace opfuse::cuda {
extern const char* const kEmulationText;
}
