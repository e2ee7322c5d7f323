// ONNX files written by hand, field by field, so that tests can write wrong ones too.
#pragma once

#include <cctype>
#include <string>
#include <vector>

#include "onnx/wire.hpp"

namespace opfuse::test {

using onnx::Encoder;
using Strings = std::vector<std::string>;

inline std::string attribute(const std::string& name, int64_t value) {
  Encoder a;
  a.bytes(1, name), a.integer(3, value), a.integer(20, 2);
  return a.text();
}
inline std::string attribute(const std::string& name, const std::vector<int64_t>& values) {
  Encoder a;
  a.bytes(1, name), a.integers(8, values), a.integer(20, 7);
  return a.text();
}
inline std::string real_attribute(const std::string& name, float value) {
  Encoder a;
  a.bytes(1, name), a.real(2, value), a.integer(20, 1);
  return a.text();
}
inline std::string text_attribute(const std::string& name, const std::string& value) {
  Encoder a;
  a.bytes(1, name), a.bytes(4, value), a.integer(20, 3);
  return a.text();
}
inline std::string tensor_attribute(const std::string& name, const std::string& tensor) {
  Encoder a;
  a.bytes(1, name), a.bytes(5, tensor), a.integer(20, 4);
  return a.text();
}
inline std::string graph_attribute(const std::string& name, const std::string& graph) {
  Encoder a;
  a.bytes(1, name), a.bytes(6, graph), a.integer(20, 5);
  return a.text();
}
/// An attribute of a function body that takes the value of the function's attribute `from`.
inline std::string reference_attribute(const std::string& name, const std::string& from, int64_t type) {
  Encoder a;
  a.bytes(1, name), a.bytes(21, from), a.integer(20, type);
  return a.text();
}

inline std::string tensor(const std::string& name, int64_t type, const std::vector<int64_t>& dims,
                          const std::string& raw) {
  Encoder t;
  t.integers(1, dims), t.integer(2, type), t.bytes(8, name), t.bytes(9, raw);
  return t.text();
}
inline std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
inline std::string integers(const std::vector<int64_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t)};
}

/// A tensor whose data lies in another file.
inline std::string external_tensor(const std::string& name, const std::vector<int64_t>& dims,
                                   const std::vector<std::pair<std::string, std::string>>& entries) {
  Encoder t;
  t.integers(1, dims), t.integer(2, 1), t.bytes(8, name);
  for (const auto& [key, value] : entries) {
    Encoder entry;
    entry.bytes(1, key), entry.bytes(2, value);
    t.message(13, entry);
  }
  t.integer(14, 1);
  return t.text();
}

/// Dimensions: a number, a name, or "" for an unnamed one.
inline std::string value_info(const std::string& name, int64_t type, const Strings& dims) {
  Encoder shape, tensor_type, proto, info;
  for (const std::string& dim : dims) {
    Encoder one;
    if (!dim.empty() && (std::isdigit(static_cast<unsigned char>(dim[0])) || dim[0] == '-'))
      one.integer(1, std::stoll(dim));
    else if (!dim.empty())
      one.bytes(2, dim);
    shape.message(1, one);
  }
  tensor_type.integer(1, type), tensor_type.message(2, shape);
  proto.message(1, tensor_type);
  info.bytes(1, name), info.message(2, proto);
  return info.text();
}

inline std::string node(const std::string& op, const Strings& inputs, const Strings& outputs,
                        const Strings& attributes = {}, const std::string& name = {}, const std::string& domain = {}) {
  Encoder n;
  for (const std::string& input : inputs) n.bytes(1, input);
  for (const std::string& output : outputs) n.bytes(2, output);
  if (!name.empty()) n.bytes(3, name);
  n.bytes(4, op);
  for (const std::string& a : attributes) n.bytes(5, a);
  if (!domain.empty()) n.bytes(7, domain);
  return n.text();
}

struct GraphBytes {
  Strings nodes = {}, initializers = {}, inputs = {}, outputs = {}, values = {};
  std::string extra = {};  ///< encoded fields
  std::string text() const {
    Encoder g;
    for (const std::string& n : nodes) g.bytes(1, n);
    g.bytes(2, "test");
    for (const std::string& t : initializers) g.bytes(5, t);
    for (const std::string& v : inputs) g.bytes(11, v);
    for (const std::string& v : outputs) g.bytes(12, v);
    for (const std::string& v : values) g.bytes(13, v);
    g.raw(extra);
    return g.text();
  }
};

inline std::string operator_set(const std::string& domain, int64_t version) {
  Encoder set;
  set.bytes(1, domain), set.integer(2, version);
  return set.text();
}

struct ModelBytes {
  GraphBytes graph = {};
  int64_t ir = 8, opset = 17;
  Strings functions = {};
  Strings domains = {};    ///< imported with version 1
  std::string extra = {};  ///< encoded fields
  std::string text() const {
    Encoder m;
    m.integer(1, ir);
    m.bytes(8, operator_set("", opset));
    for (const std::string& domain : domains) m.bytes(8, operator_set(domain, 1));
    m.bytes(7, graph.text());
    for (const std::string& f : functions) m.bytes(25, f);
    m.raw(extra);
    return m.text();
  }
};

inline std::string function(const std::string& domain, const std::string& name, const Strings& inputs,
                            const Strings& outputs, const Strings& attributes, const Strings& nodes,
                            const Strings& domains = {}) {
  Encoder f;
  f.bytes(1, name);
  for (const std::string& input : inputs) f.bytes(4, input);
  for (const std::string& output : outputs) f.bytes(5, output);
  for (const std::string& a : attributes) f.bytes(6, a);
  for (const std::string& n : nodes) f.bytes(7, n);
  f.bytes(9, operator_set("", 17));
  for (const std::string& d : domains) f.bytes(9, operator_set(d, 1));
  f.bytes(10, domain);
  return f.text();
}

constexpr int64_t kFloat = 1, kInt64 = 7;

/// x[1,2,4,4] -> conv(w[3,2,1,1]) -> relu -> y
inline ModelBytes conv_relu() {
  return {.graph = {.nodes = {node("Conv", {"x", "w"}, {"c"}, {attribute("kernel_shape", std::vector<int64_t>{1, 1})},
                                   "conv"),
                              node("Relu", {"c"}, {"y"}, {}, "relu")},
                    .initializers = {tensor("w", kFloat, {3, 2, 1, 1}, floats({1, 2, 3, 4, 5, 6}))},
                    .inputs = {value_info("x", kFloat, {"1", "2", "4", "4"})},
                    .outputs = {value_info("y", kFloat, {"1", "3", "4", "4"})}}};
}

}  // namespace opfuse::test
