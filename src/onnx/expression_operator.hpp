// Operators of users, given as expressions: functions of the model they are read with.
//
//     swish(x, b) = x * sigmoid(b * x)           a call in any domain of the model's own
//     com.acme::leaky(x, alpha = 0.1) = where(x > 0, x, alpha * x)     alpha is an attribute
#pragma once

#include <string>
#include <vector>

#include "onnx/wire.hpp"

namespace opfuse::onnx {

/// `given`: definitions, or paths of files with one definition a line and comments behind #. Returns an encoded
/// ModelProto that has a function for each definition and each domain it is called in by `model`. E::bad_file with
/// place for what does not parse, E::file_not_found, E::duplicate_name where two, or the model, define the same.
std::string expression_operators(const std::vector<std::string>& given, const ModelProto& model);

}  // namespace opfuse::onnx
