// Operators that no row of the import table has: the reader takes them apart itself (branches.cpp, loops.cpp,
// sequences.cpp), each under a condition on what is known when a model is read.
#include <array>

#include "onnx/import_table.hpp"

namespace opfuse::onnx {

std::span<const StructuralOperator> structural_operators() {
  static constexpr const char* kSequence = "where the sequence and its positions are known: the tensors themselves";
  static constexpr const char* kOptional = "where it is known whether there is a value: that value";
  static constexpr const char* kSteps = "where the number of steps is known: its steps, one after the other";
  static constexpr std::array kOperators = {
      StructuralOperator{"ConcatFromSequence", "", 11, kSequence},
      StructuralOperator{"Constant", "", 1, "a constant"},
      StructuralOperator{"FlexAttention", "ai.onnx.preview", 1, "attention, with the bodies that change its scores"},
      StructuralOperator{"If", "", 1,
                         "as the branch that a constant condition takes; where the run decides as both, and a choice"},
      StructuralOperator{"Loop", "", 1, kSteps},
      StructuralOperator{"Optional", "", 15, kOptional},
      StructuralOperator{"OptionalGetElement", "", 15, kOptional},
      StructuralOperator{"OptionalHasElement", "", 15, kOptional},
      StructuralOperator{"Scan", "", 9, kSteps},
      StructuralOperator{"SequenceAt", "", 11, kSequence},
      StructuralOperator{"SequenceConstruct", "", 11, kSequence},
      StructuralOperator{"SequenceEmpty", "", 11, kSequence},
      StructuralOperator{"SequenceErase", "", 11, kSequence},
      StructuralOperator{"SequenceInsert", "", 11, kSequence},
      StructuralOperator{"SequenceLength", "", 11, kSequence},
      StructuralOperator{"SplitToSequence", "", 11, kSequence},
  };
  return kOperators;
}

}  // namespace opfuse::onnx
