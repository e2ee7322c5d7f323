// Building a model in code. Every call checks types and shapes at once, and says which node does not fit.
//
//   opfuse::Network net("block");
//   auto x = net.input("x", {"batch", 64, 56, 56});
//   auto y = net.op("relu", {net.batch_norm(net.conv(x, {.out = 64, .kernel = 3}))});
//   y = net.batch_norm(net.conv(y, {.out = 64, .kernel = 3}));
//   net.output("y", net.op("relu", {net.add(y, x)}));
//   opfuse::Model model = net.model();  // model.save("block.onnx"), opfuse::fuse, opfuse::compile ...
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "opfuse/opfuse.hpp"

namespace opfuse {

struct Value;

/// A size of an input: a number, or the name of an open dimension.
struct Size {
  Size(int number) : text(std::to_string(number)) {}
  Size(int64_t number) : text(std::to_string(number)) {}
  Size(const char* symbol) : text(symbol) {}
  Size(std::string symbol) : text(std::move(symbol)) {}
  std::string text;
};

/// A tensor of a network; a handle that is valid as long as the network is. Default: an operand that is left out.
class OPFUSE_API NetworkValue {
 public:
  NetworkValue() = default;
  TensorInfo info() const;  ///< name, type and shape as inference knows them

 private:
  explicit NetworkValue(Value* value) : value_(value) {}
  Value* value_ = nullptr;
  friend class Network;
};

using Attribute = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, std::vector<double>>;
using Attributes = std::vector<std::pair<std::string, Attribute>>;

/// A convolution of any number of spatial axes. Arrays are copied.
struct ConvSpec {
  int64_t out = 0;  ///< channels of the result; `weights` may say it instead
  int64_t kernel = 1, stride = 1;
  int64_t pad = -1;  ///< -1: (kernel - 1) / 2 * dilation
  int64_t dilation = 1, group = 1;
  ArrayView weights{};  ///< [out, in / group, kernel ...]; none: drawn, of a size that keeps the scale of activations
  ArrayView bias{};     ///< [out]; none: no bias
  std::string name{};   ///< of the node; none: "/Conv", "/Conv_1" ...
};

/// Arrays of one number for each channel; those that are left out are 1 (scale, variance) or 0.
struct BatchNormSpec {
  ArrayView scale{}, bias{}, mean{}, variance{};
  double epsilon = 1e-5;
  std::string name{};
};

class OPFUSE_API Network {
 public:
  explicit Network(const std::string& name = "network");
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  NetworkValue input(const std::string& name, const std::vector<Size>& shape, DType dtype = DType::f32);
  NetworkValue constant(const ArrayView& array, const std::string& name = "");  ///< copied
  NetworkValue conv(NetworkValue x, const ConvSpec& spec);
  NetworkValue batch_norm(NetworkValue x, const BatchNormSpec& spec = {});
  NetworkValue add(NetworkValue a, NetworkValue b, const std::string& name = "");
  /// Any operator of `opfuse ops`, with its attributes: op("softmax", {x}, {{"axis", int64_t{-1}}}). Throws
  /// unknown_name, bad_attribute, and what does not fit of types and shapes.
  NetworkValue op(const std::string& op, const std::vector<NetworkValue>& inputs, const Attributes& attributes = {},
                  const std::string& name = "");
  /// The same for operators with several results.
  std::vector<NetworkValue> op_results(const std::string& op, const std::vector<NetworkValue>& inputs, size_t results,
                                       const Attributes& attributes = {}, const std::string& name = "");
  void output(const std::string& name, NetworkValue value);

  /// A copy of what was built so far. Throws bad_option without outputs.
  Model model() const;
  void save(const std::string& path) const { model().save(path); }  ///< ONNX

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace opfuse
