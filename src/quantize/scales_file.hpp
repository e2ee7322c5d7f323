// What calibration found, in a file: taken up again after an interruption, or instead of calibrating again.
#pragma once

#include <string>

#include "quantize/calibrate.hpp"

namespace opfuse::quantization {

/// Appears complete or not at all. E::file_write_failed.
void write_scales(const std::string& path, const Calibration& calibration);

/// Adds what the file has to `calibration`, which says what it must be of; nothing where there is no file. E::bad_file:
/// it is damaged, of another model, of other samples or tensors.
void take_up(const std::string& path, Calibration& calibration);

}  // namespace opfuse::quantization
