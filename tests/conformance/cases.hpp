// The cases of ONNX's backend test suite as Debian packages it (libonnx-testdata), or as mint_cases.py writes them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/graph.hpp"

namespace opfuse::conformance {

struct Case {
  std::string name;                 ///< "node/test_relu"
  std::string folder;               ///< holds model.onnx and test_data_set_*
  double rtol = 1e-3, atol = 1e-7;  ///< file `tolerance`, else the defaults of onnx/backend/test/runner
};

struct DataSet {
  std::string name;
  std::vector<Tensor> inputs, outputs;
};

/// Folder of the data: environment OPFUSE_ONNX_TESTDATA, else where Debian puts it; "" when there is none.
std::string data_root();

/// Every case, sorted by name.
std::vector<Case> all_cases();

/// Operators of the case's model that are not declared ("Scan", "com.example.Op"); empty: the case must pass or be
/// refused.
std::vector<std::string> undeclared_operators(const Case& c);

/// Version of the default operator set.
int64_t opset_of(const Case& c);

/// Names of the model's graph inputs, as the data numbers them.
std::vector<std::string> input_names(const Case& c);

/// Inputs and expected outputs. Throws E::bad_file for values that are not tensors of numbers.
std::vector<DataSet> data_sets(const Case& c);

/// Names in refused.txt, with the reason in front of them as a comment line.
std::set<std::string> listed_refusals();

}  // namespace opfuse::conformance
