// Element types of tensors.
#pragma once

namespace opfuse {

enum class DType { f32, f64, f16, bf16, i8, u8, i16, u16, i32, u32, i64, u64, boolean, string, unknown };

}  // namespace opfuse
