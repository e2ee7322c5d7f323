// Element types of tensors.
#pragma once

namespace opfuse {

/// From f8e4m3fn on: types that values are stored in, not computed in. Each element takes a byte of memory, those of
/// four and two bits too.
enum class DType {
  f32,
  f64,
  f16,
  bf16,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  boolean,
  string,
  f8e4m3fn,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  f4e2m1,
  i4,
  u4,
  i2,
  u2,
  unknown
};

}  // namespace opfuse
