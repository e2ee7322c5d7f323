// Making a view value by value: edges follow from who computes and who reads a value.
#pragma once

#include <map>

#include "report/view.hpp"

namespace opfuse::report {

class ViewBuilder {
 public:
  int add_value(ViewValue value);
  void add_input(int value);
  void add_node(ViewNode node);  ///< after what computes its operands, or before: edges are made at the end
  void add_output(int value);
  View finish();

 private:
  View view_;
};

/// Each launch belongs to the unit of its first source that has one.
void give_launches(std::vector<Unit>& units, const std::map<std::string, int>& unit_of, const ArtifactProgram& program);

}  // namespace opfuse::report
