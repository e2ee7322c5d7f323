// The functions a cell may have, with ONNX's names and defaults.
#include "ops/recurrent_cell.hpp"

#include <algorithm>
#include <cctype>

#include "base/fail.hpp"

namespace opfuse {
namespace {

struct LawRow {
  const char* onnx;
  CellLaw law;
  bool has_alpha = false, has_beta = false;  ///< ScaledTanh's have no defaults
  double alpha = 0, beta = 0;
};

constexpr LawRow kLaws[] = {
    {"Affine", CellLaw::affine, true, true, 1, 0},
    {"Elu", CellLaw::elu, true, false, 1},
    {"HardSigmoid", CellLaw::hard_sigmoid, true, true, 0.2, 0.5},
    {"LeakyRelu", CellLaw::leaky_relu, true, false, 0.01},
    {"Relu", CellLaw::relu},
    {"ScaledTanh", CellLaw::scaled_tanh, true, true},
    {"Sigmoid", CellLaw::sigmoid},
    {"Softplus", CellLaw::softplus},
    {"Softsign", CellLaw::softsign},
    {"Tanh", CellLaw::tanh},
    {"ThresholdedRelu", CellLaw::thresholded_relu, true, false, 1},
};

bool same_name(const std::string& a, const std::string& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

const LawRow& row_of(const std::string& name) {
  for (const LawRow& row : kLaws)
    if (same_name(name, row.onnx)) return row;
  std::string known;
  for (const LawRow& row : kLaws) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.onnx);
  throw fail(E::bad_attribute, "activation \"{}\" is none of {}", name, known);
}

const LawRow& row_of(CellLaw law) {
  return *std::find_if(std::begin(kLaws), std::end(kLaws), [&](const LawRow& row) { return row.law == law; });
}

std::vector<std::string> own_functions(CellKind kind, size_t directions) {
  std::vector<std::string> names;
  for (size_t d = 0; d < directions; ++d) {
    if (kind != CellKind::rnn) names.push_back("Sigmoid");
    names.push_back("Tanh");
    if (kind == CellKind::lstm) names.push_back("Tanh");
  }
  return names;
}

}  // namespace

std::vector<CellFunction> cell_functions(CellKind kind, size_t directions, const std::vector<std::string>& names,
                                         const std::vector<double>& alphas, const std::vector<double>& betas) {
  const size_t wanted = functions_of(kind) * directions;
  if (!names.empty() && names.size() != wanted)
    throw fail(E::bad_attribute, "{} activations, {} are expected: {} for each of {} directions", names.size(), wanted,
               functions_of(kind), directions);
  std::vector<CellFunction> functions;
  size_t alpha = 0, beta = 0;
  for (const std::string& name : names.empty() ? own_functions(kind, directions) : names) {
    const LawRow& row = row_of(name);
    if (row.law == CellLaw::scaled_tanh && (alpha >= alphas.size() || beta >= betas.size()))
      throw fail(E::bad_attribute, "activation ScaledTanh has no activation_alpha and activation_beta");
    CellFunction f{row.law, row.alpha, row.beta};
    if (row.has_alpha && alpha < alphas.size()) f.alpha = alphas[alpha++];
    if (row.has_beta && beta < betas.size()) f.beta = betas[beta++];
    functions.push_back(f);
  }
  return functions;
}

std::string name_of(CellLaw law) { return row_of(law).onnx; }
bool has_alpha(CellLaw law) { return row_of(law).has_alpha; }
bool has_beta(CellLaw law) { return row_of(law).has_beta; }

}  // namespace opfuse
