// Loads a compiled model through the C API, runs it once on zeros and prints the largest value of its first output.
//
//   opfuse compile zoo:resnet18 -o resnet18.opf
//   rustc -O run_in_rust.rs -l opfuse_runtime && ./run_in_rust resnet18.opf
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::{env, mem, process, ptr, slice};

#[repr(C)]
struct Array { size: usize, kind: i32, rank: i32, shape: *const i64, data: *mut c_void }
#[repr(C)]
struct TensorInfo { size: usize, name: *const c_char, kind: i32, rank: i32, shape: *const i64 }
enum Executable {}
enum Context {}

extern "C" {
    fn opfuse_check_abi(abi: u32) -> c_int;
    fn opfuse_last_error() -> *const c_char;
    fn opfuse_load(path: *const c_char, executable: *mut *mut Executable) -> c_int;
    fn opfuse_free(executable: *mut Executable);
    fn opfuse_input_info(executable: *const Executable, index: usize, info: *mut TensorInfo) -> c_int;
    fn opfuse_output_info(executable: *const Executable, index: usize, info: *mut TensorInfo) -> c_int;
    fn opfuse_context_create(executable: *const Executable, options: *const c_void, context: *mut *mut Context) -> c_int;
    fn opfuse_context_free(context: *mut Context);
    fn opfuse_bind(context: *mut Context, name: *const c_char, array: *const Array) -> c_int;
    fn opfuse_run(context: *mut Context) -> c_int;
    fn opfuse_output(context: *mut Context, name: *const c_char, array: *mut Array) -> c_int;
}

fn check(status: c_int) {
    if status != 0 {
        eprintln!("{}", unsafe { CStr::from_ptr(opfuse_last_error()) }.to_string_lossy());
        process::exit(1);
    }
}

fn main() {
    let path = CString::new(env::args().nth(1).expect("run_in_rust MODEL.opf")).unwrap();
    unsafe {
        check(opfuse_check_abi(1));
        let (mut model, mut context) = (ptr::null_mut(), ptr::null_mut());
        check(opfuse_load(path.as_ptr(), &mut model));
        check(opfuse_context_create(model, ptr::null(), &mut context));
        let mut input = TensorInfo { size: mem::size_of::<TensorInfo>(), name: ptr::null(), kind: 0, rank: 0, shape: ptr::null() };
        check(opfuse_input_info(model, 0, &mut input));
        let count: i64 = slice::from_raw_parts(input.shape, input.rank as usize).iter().product();
        let mut zeros = vec![0f32; count as usize];
        let given = Array { size: mem::size_of::<Array>(), kind: input.kind, rank: input.rank, shape: input.shape, data: zeros.as_mut_ptr().cast() };
        check(opfuse_bind(context, input.name, &given));
        check(opfuse_run(context));
        let mut output = TensorInfo { size: mem::size_of::<TensorInfo>(), name: ptr::null(), kind: 0, rank: 0, shape: ptr::null() };
        check(opfuse_output_info(model, 0, &mut output));
        let mut result = Array { size: mem::size_of::<Array>(), kind: 0, rank: 0, shape: ptr::null(), data: ptr::null_mut() };
        check(opfuse_output(context, output.name, &mut result));
        let count: i64 = slice::from_raw_parts(result.shape, result.rank as usize).iter().product();
        let values = slice::from_raw_parts(result.data as *const f32, count as usize);
        let best = (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap();
        println!("{}: {} values, the largest is {} at {}", CStr::from_ptr(output.name).to_string_lossy(), count, values[best], best);
        opfuse_context_free(context);
        opfuse_free(model);
    }
}
