#include "onnx/refused_operators.hpp"

namespace opfuse::onnx {
namespace {

constexpr std::string_view kStrings = "works on strings, and kernels compute with numbers alone";
constexpr std::string_view kDrawn = "draws random numbers, so no two runs of the model agree";
constexpr std::string_view kTrees =
    "evaluates trees or kernels of classical learning, which no kernel is generated for";
constexpr std::string_view kMaps = "works on maps, and kernels compute with tensors alone";
constexpr std::string_view kSequences = "works on sequences whose lengths the run decides";
constexpr std::string_view kTraining = "asks for derivatives, which inference has none of";

struct Refused {
  std::string_view op, why;
};

constexpr Refused kRefused[] = {
    {"StringConcat", kStrings},
    {"StringNormalizer", kStrings},
    {"StringSplit", kStrings},
    {"RegexFullMatch", kStrings},
    {"TfIdfVectorizer", "counts n-grams of text or of codes, and no kernel is generated for that"},
    {"LabelEncoder", "looks keys up in a table of strings or numbers, and no kernel is generated for that"},
    {"CategoryMapper", kStrings},
    {"ImageDecoder", "decodes files of images, and kernels read tensors alone"},
    {"Bernoulli", kDrawn},
    {"Multinomial", kDrawn},
    {"RandomNormal", kDrawn},
    {"RandomNormalLike", kDrawn},
    {"RandomUniform", kDrawn},
    {"RandomUniformLike", kDrawn},
    {"Gradient", kTraining},
    {"TreeEnsemble", kTrees},
    {"TreeEnsembleClassifier", kTrees},
    {"TreeEnsembleRegressor", kTrees},
    {"SVMClassifier", kTrees},
    {"SVMRegressor", kTrees},
    {"CastMap", kMaps},
    {"DictVectorizer", kMaps},
    {"ZipMap", kMaps},
    {"SequenceMap", kSequences},
};

}  // namespace

std::string_view why_refused(std::string_view onnx_op) {
  for (const Refused& row : kRefused)
    if (row.op == onnx_op) return row.why;
  return {};
}

}  // namespace opfuse::onnx
