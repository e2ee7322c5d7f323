// Emission state of one CUDA kernel: its text, names, arguments and helpers. Statements are written one per line,
// indented by the blocks that are open; everything else in this folder works through a Kernel.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/spec.hpp"

namespace opfuse::cuda {

/// A tensor in memory: a region parameter as the kernel sees it.
struct Operand {
  std::string name;  ///< of the pointer argument
  DType dtype = DType::f32;
  Shape shape;
  std::vector<Dim> strides;  ///< by logical dimension
};

class Kernel {
 public:
  Kernel(const Region& region, const std::vector<ParamLayout>& layouts, const KernelSpec& spec, std::string symbol);

  const Region& region;
  const KernelSpec& spec;
  std::string symbol;
  Dim grid = 1;
  int block = 256;
  int resident = 0;  ///< blocks that a multiprocessor should have at once; registers are given out for so many. 0: any
  Dim launch_shared = 0;           ///< bytes of shared memory that the launch gives
  int64_t launch_shared_most = 0;  ///< the most it may be
  /// Tensor maps that the launch gives, by their names.
  std::vector<std::pair<std::string, TensorMap>> maps;

  // Statements.
  void line(std::string_view text);
  void open(std::string_view head);                             ///< "head {"
  void close(std::string_view tail = "");                       ///< "}" and what follows it
  void finish();                                                ///< ends the body
  void constant(std::string_view name, int64_t value);          ///< "constexpr int kTileM = 64;" before the kernel
  void declare_type(std::string_view text) { types_ += text; }  ///< before the kernel, behind its constants
  /// A __shared__ array "TYPE NAME[...]"; the name is the whole kernel's.
  std::string shared(const std::string& type, const std::string& prefix, const std::string& extents);
  /// Arrays of `bytes` in the shared memory that the launch gives, unless those are more than `most`: none then.
  void hold(const Dim& bytes, int64_t most);
  void use(std::string_view helper);  ///< the helper's text stands before the kernel

  // Names and values.
  std::string fresh(const std::string& prefix);  ///< prefix, prefix_2, ...: no name that an open block has
  /// "const TYPE NAME = VALUE;", the name. Vanishes when its block ends without a use of it.
  std::string declare(std::string_view type, const std::string& prefix, const std::string& value);
  Dim declare_index(const std::string& prefix, const std::string& value);
  std::string text_of(const Dim& dim);  ///< as C++; locals by their name, symbols as arguments
  static Dim local(const std::string& name);
  bool wide() const { return wide_; }  ///< offsets need 64 bits
  std::string index_type() const { return wide_ ? "long long" : "int"; }
  Operand operand(int param) const;
  const std::vector<ParamLayout>& layouts() const { return layouts_; }

  std::string body() const { return body_; }
  std::string constants() const { return constants_ + (types_.empty() ? "" : "\n" + types_); }
  std::string arrays() const { return arrays_; }
  const std::set<std::string>& helpers() const { return helpers_; }
  /// "extern "C" __global__ ... NAME(const float* x0, ..., long long dim_n)"
  std::string signature() const;
  /// Type and name of each argument.
  std::vector<std::pair<std::string, std::string>> arguments() const;

 private:
  const std::vector<ParamLayout>& layouts_;
  bool wide_ = false;
  int depth_ = 1;
  std::string body_, constants_, types_, arrays_;
  std::set<std::string> helpers_, constant_names_;
  struct Scope {
    std::vector<std::string> names;
    struct Declared {
      std::string name;
      size_t begin, end;  ///< of its line in the body
    };
    std::vector<Declared> declared;
  };
  std::vector<Scope> scopes_ = {Scope{}};
  std::set<std::string> names_;  ///< of all open scopes
  void end_scope();
};

/// "float", "unsigned short" (the bits of f16 and bf16), ...
std::string memory_type(DType dtype);
/// What expressions compute in: f16 and bf16 as float, booleans as bool.
std::string value_type(DType dtype);
/// A dimension symbol as an argument's name.
std::string argument_name(const std::string& symbol);

}  // namespace opfuse::cuda
