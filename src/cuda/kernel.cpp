// Text, names and arguments of a kernel. Index arithmetic is done on Dims whose symbols are the kernel's own
// variables (marked by a character no model can use), so that sums fold and sort before they are printed.
#include "cuda/kernel.hpp"

#include <fmt/format.h>

#include <cctype>

#include "base/fail.hpp"
#include "cuda/helpers.hpp"
#include "tensor/tf32.hpp"

namespace opfuse::cuda {
namespace {

constexpr char kLocal = '\1';
constexpr int64_t kNarrow = int64_t{1} << 31;
constexpr int64_t kBeyondTheLast = int64_t{1} << 16;  ///< indices of threads and tiles that have nothing to do

bool is_local(const Dim& d) { return d.op() == DimOp::symbol && d.symbol_name()[0] == kLocal; }

/// Never negative: a local variable, a size, or sums and products of such.
bool natural(const Dim& d) {
  if (d.is_constant()) return d.value() >= 0;
  if (d.op() == DimOp::symbol) return true;
  for (const Dim& arg : d.args())
    if (!natural(arg)) return false;
  return true;
}

bool mentioned(std::string_view text, const std::string& name) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

std::string number(int64_t value) {
  return value < kNarrow && value >= -kNarrow ? fmt::format("{}", value) : fmt::format("{}LL", value);
}

/// Elements an operand may span; nullopt when that depends on symbols.
std::optional<int64_t> span_of(const Shape& shape, const std::vector<Dim>& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (!shape[d].is_constant() || !strides[d].is_constant()) return std::nullopt;
    last += std::max<int64_t>(shape[d].value() - 1, 0) * strides[d].value();
  }
  return last + 1;
}

/// The larger number of results and of terms of one sum, which are counted apart: no index runs over both. nullopt when
/// symbolic.
std::optional<int64_t> longest_count(const Stage& stage) {
  int64_t longest = 0;
  for (const auto* axes : {&stage.domain, &stage.reduce}) {
    int64_t points = 1;
    for (const Dim& d : *axes) {
      if (!d.is_constant()) return std::nullopt;
      points = std::min(kNarrow, points * std::max<int64_t>(d.value(), 1));
    }
    longest = std::max(longest, points);
  }
  return longest;
}

}  // namespace

std::string memory_type(DType dtype) {
  if (byte_size(dtype) == 1) return is_integer(dtype) && is_signed(dtype) ? "signed char" : "unsigned char";
  if (dtype == kTf32) return "float";
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return "unsigned short";
    case DType::i16:
      return "short";
    case DType::i32:
      return "int";
    case DType::u32:
      return "unsigned int";
    case DType::i64:
      return "long long";
    case DType::u64:
      return "unsigned long long";
    default:
      throw fail(E::codegen_failed, "no CUDA type for elements of type {}", name_of(dtype));
  }
}

std::string value_type(DType dtype) {
  if (dtype == DType::boolean) return "bool";
  if (is_small_float(dtype)) return "float";
  return memory_type(dtype);
}

std::string argument_name(const std::string& symbol) {
  std::string name = "dim_";
  for (char c : symbol) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

Kernel::Kernel(const Region& r, const std::vector<ParamLayout>& layouts, const KernelSpec& s, std::string name)
    : region(r), spec(s), symbol(std::move(name)), layouts_(layouts) {
  for (size_t p = 0; p < region.params.size(); ++p) {
    const Operand o = operand(static_cast<int>(p));
    wide_ |= span_of(o.shape, o.strides).value_or(kNarrow) >= kNarrow;
    names_.insert(o.name);
  }
  for (const Stage& stage : region.stages) wide_ |= longest_count(stage).value_or(kNarrow) >= kNarrow - kBeyondTheLast;
  for (const std::string& sym : spec.symbols) names_.insert(argument_name(sym));
}

Operand Kernel::operand(int param) const {
  const auto p = static_cast<size_t>(param);
  const Param& info = region.params[p];
  const ParamLayout& l = layouts_[p];
  if (!l.layout.blocks.empty())
    throw fail(E::codegen_failed, "parameter {} is stored in blocks ({}), which CUDA kernels do not read", param,
               l.layout.text());
  const char* prefix = info.role == ParamRole::input ? "x" : info.role == ParamRole::constant ? "w" : "y";
  Operand o{prefix + std::to_string(param), info.type.dtype, info.type.shape, {}};
  o.strides.resize(info.type.shape.rank());
  for (size_t i = 0; i < l.layout.order.size(); ++i) o.strides[static_cast<size_t>(l.layout.order[i])] = l.strides[i];
  return o;
}

void Kernel::line(std::string_view text) {
  body_.append(static_cast<size_t>(text.empty() ? 0 : 2 * depth_), ' ');
  body_ += text;
  body_ += '\n';
}

void Kernel::open(std::string_view head) {
  line(head.empty() ? "{" : std::string(head) + " {");
  ++depth_;
  scopes_.emplace_back();
}

void Kernel::close(std::string_view tail) {
  end_scope();
  --depth_;
  line("}" + std::string(tail));
}

void Kernel::finish() { end_scope(); }

/// Declarations that nothing after them uses go, the last first: what only they used goes with them.
void Kernel::end_scope() {
  const Scope& scope = scopes_.back();
  for (size_t i = scope.declared.size(); i-- > 0;) {
    const Scope::Declared& d = scope.declared[i];
    if (!mentioned(std::string_view(body_).substr(d.end), d.name)) body_.erase(d.begin, d.end - d.begin);
  }
  for (const std::string& name : scope.names) names_.erase(name);
  scopes_.pop_back();
}

void Kernel::constant(std::string_view name, int64_t value) {
  if (constant_names_.insert(std::string(name)).second)
    constants_ += fmt::format("constexpr int {} = {};\n", name, value);
}

std::string Kernel::shared(const std::string& type, const std::string& prefix, const std::string& extents) {
  std::string name = prefix;
  for (int count = 2; !names_.insert(name).second; ++count) name = fmt::format("{}_{}", prefix, count);
  arrays_ += fmt::format("  __shared__ {} {}{};\n", type, name, extents);
  return name;
}

void Kernel::hold(const Dim& bytes, int64_t most) {
  launch_shared = bytes.is_constant() ? bytes : bytes * max(0, min(1, Dim(most + 1) - bytes));
  launch_shared_most = most;
}

void Kernel::use(std::string_view helper) {
  if (!helpers_.insert(std::string(helper)).second) return;
  for (const std::string& needed : find_helper(helper).needs) use(needed);
}

std::string Kernel::fresh(const std::string& prefix) {
  std::string name = prefix;
  for (int count = 2; !names_.insert(name).second; ++count) name = fmt::format("{}_{}", prefix, count);
  scopes_.back().names.push_back(name);
  return name;
}

std::string Kernel::declare(std::string_view type, const std::string& prefix, const std::string& value) {
  const std::string name = fresh(prefix);
  const size_t begin = body_.size();
  line(fmt::format("const {} {} = {};", type, name, value));
  scopes_.back().declared.push_back({name, begin, body_.size()});
  return name;
}

Dim Kernel::declare_index(const std::string& prefix, const std::string& value) {
  return local(declare(index_type(), prefix, value));
}

Dim Kernel::local(const std::string& name) { return Dim::symbol(kLocal + name); }

std::string Kernel::text_of(const Dim& d) {
  const auto factor = [&](const Dim& x) {
    const std::string t = text_of(x);
    const bool atom =
        x.op() == DimOp::symbol || (x.is_constant() && x.value() >= 0) || x.op() == DimOp::min || x.op() == DimOp::max;
    return atom ? t : "(" + t + ")";
  };
  switch (d.op()) {
    case DimOp::constant:
      return number(d.value());
    case DimOp::symbol:
      return is_local(d) ? d.symbol_name().substr(1) : argument_name(d.symbol_name());
    case DimOp::add: {
      std::string out, constant;
      for (const Dim& arg : d.args()) {
        const std::string term = text_of(arg);
        std::string& into = arg.is_constant() ? constant : out;
        into += into.empty() && !arg.is_constant() ? term : term[0] == '-' ? " - " + term.substr(1) : " + " + term;
      }
      return out + constant;
    }
    case DimOp::mul: {
      std::string out, scale;
      for (const Dim& arg : d.args()) {
        if (arg.is_constant())
          scale = arg == Dim(-1) ? "-" : " * " + number(arg.value());
        else
          out += (out.empty() ? "" : " * ") + factor(arg);
      }
      if (scale == "-") return "-" + out;
      if (scale.starts_with(" * -")) return "-" + out + " * " + scale.substr(4);
      return out + scale;
    }
    case DimOp::floor_div:
    case DimOp::mod: {
      const bool plain = natural(d.args()[0]) && natural(d.args()[1]);
      const char* op = d.op() == DimOp::mod ? "%" : "/";
      if (plain) return fmt::format("{} {} {}", factor(d.args()[0]), op, factor(d.args()[1]));
      use("floor_div");
      std::string quotient = fmt::format("floor_div({}, {})", text_of(d.args()[0]), text_of(d.args()[1]));
      if (d.op() == DimOp::floor_div) return quotient;
      return fmt::format("{} - {} * {}", factor(d.args()[0]), quotient, factor(d.args()[1]));
    }
    case DimOp::min:
    case DimOp::max: {
      use(d.op() == DimOp::min ? "min_index" : "max_index");
      std::string out = text_of(d.args()[0]);
      for (size_t i = 1; i < d.args().size(); ++i)
        out = fmt::format("{}({}, {})", d.op() == DimOp::min ? "min_index" : "max_index", out, text_of(d.args()[i]));
      return out;
    }
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> Kernel::arguments() const {
  std::vector<std::pair<std::string, std::string>> list;
  for (size_t p = 0; p < region.params.size(); ++p) {
    const Operand o = operand(static_cast<int>(p));
    const bool constant = region.params[p].role == ParamRole::constant;
    const std::string type = memory_type(o.dtype);
    list.emplace_back(region.params[p].role == ParamRole::output ? type + "*"
                      : constant                                 ? "const " + type + "* __restrict__"
                                                                 : "const " + type + "*",
                      o.name);
  }
  for (const std::string& s : spec.symbols) list.emplace_back("long long", argument_name(s));
  for (const auto& [name, map] : maps) list.emplace_back("const __grid_constant__ TensorMap", name);
  return list;
}

std::string Kernel::signature() const {
  std::string out = fmt::format("extern \"C\" __global__ void __launch_bounds__(kBlock{})\n{}(",
                                resident > 0 ? ", kResident" : "", symbol);
  const auto list = arguments();
  for (size_t i = 0; i < list.size(); ++i) out += fmt::format("{}{} {}", i ? ", " : "", list[i].first, list[i].second);
  return out + ")";
}

}  // namespace opfuse::cuda
