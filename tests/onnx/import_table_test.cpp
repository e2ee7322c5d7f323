// The table of operators and the registry must name the same things.
#include "onnx/import_table.hpp"

#include <gtest/gtest.h>

#include <set>

#include "ops/registry.hpp"

namespace opfuse::test {
namespace {

TEST(ImportTable, EveryOperatorHasARow) {
  std::set<std::string> with_row;
  for (const auto& [onnx, op] : onnx::operator_names()) with_row.insert(op);
  for (const OpInfo* op : ops().all()) {
    if (op->has_body || op->kind == OpKind::opaque) continue;
    EXPECT_TRUE(with_row.contains(op->name)) << op->name << " cannot be read from ONNX nor written to it";
    EXPECT_GT(onnx::first_opset(op->name), 0) << op->name;
  }
}

TEST(ImportTable, NamesThereAndBackAgree) {
  for (const auto& [name, op] : onnx::operator_names()) {
    const int64_t opset = onnx::first_opset(op);
    EXPECT_FALSE(onnx::onnx_name(op, opset, name).empty()) << op;
    EXPECT_TRUE(onnx::onnx_name(op, opset - 1, name).empty() || opset == 7) << op;
  }
}

}  // namespace
}  // namespace opfuse::test
