// What is wrong with a file whatever its operators mean: checks that need no types of values.
#pragma once

#include "onnx/problems.hpp"
#include "onnx/wire.hpp"

namespace opfuse::onnx {

/// Versions, operator sets, initializers beside inputs of their name, operators and attributes of all nodes and
/// functions. Each problem is recorded by itself.
void check_file(const ModelProto& model, Problems& problems);

/// Operators and attributes of the nodes of one graph; `in_function`: attributes may refer to those of a call.
void check_nodes(const std::vector<NodeProto>& nodes, bool in_function, Problems& problems);

/// "FLOAT", "INTS" ...: as ONNX names the types of attributes.
const char* attribute_type_name(AttributeType type);

}  // namespace opfuse::onnx
