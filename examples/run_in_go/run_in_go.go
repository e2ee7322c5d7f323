// Loads a compiled model through the C API, runs it once on zeros and prints the largest value of its first output.
//
//	opfuse compile zoo:resnet18 -o resnet18.opf
//	go run run_in_go.go resnet18.opf
package main

// #cgo LDFLAGS: -lopfuse_runtime
// #include <opfuse/opfuse.h>
// #include <stdlib.h>
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

func check(status C.opfuse_status) {
	if status != C.OPFUSE_OK {
		fmt.Fprintln(os.Stderr, C.GoString(C.opfuse_last_error()))
		os.Exit(1)
	}
}

func elements(shape *C.int64_t, rank C.int32_t) int {
	count := 1
	for _, size := range unsafe.Slice(shape, int(rank)) {
		count *= int(size)
	}
	return count
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "run_in_go MODEL.opf")
		os.Exit(2)
	}
	runtime.LockOSThread() // opfuse_last_error is of the thread whose call failed
	check(C.opfuse_check_abi(C.OPFUSE_ABI))

	path := C.CString(os.Args[1])
	defer C.free(unsafe.Pointer(path))
	var model *C.opfuse_executable
	check(C.opfuse_load(path, &model))
	defer C.opfuse_free(model)
	var context *C.opfuse_context
	check(C.opfuse_context_create(model, nil, &context))
	defer C.opfuse_context_free(context)

	input := C.opfuse_tensor_info{size: C.sizeof_opfuse_tensor_info}
	check(C.opfuse_input_info(model, 0, &input))
	// The context keeps the pointer until opfuse_run returns: C memory, or Go memory that a runtime.Pinner holds (Go 1.21).
	zeros := C.calloc(C.size_t(elements(input.shape, input.rank)), C.sizeof_float)
	defer C.free(zeros)
	given := C.opfuse_array{size: C.sizeof_opfuse_array, _type: input._type, rank: input.rank, shape: input.shape, data: zeros}
	check(C.opfuse_bind(context, input.name, &given))
	check(C.opfuse_run(context))

	output := C.opfuse_tensor_info{size: C.sizeof_opfuse_tensor_info}
	check(C.opfuse_output_info(model, 0, &output))
	result := C.opfuse_array{size: C.sizeof_opfuse_array}
	check(C.opfuse_output(context, output.name, &result))
	values := unsafe.Slice((*float32)(result.data), elements(result.shape, result.rank))
	best := 0
	for i, value := range values {
		if value > values[best] {
			best = i
		}
	}
	fmt.Printf("%s: %d values, the largest is %g at %d\n", C.GoString(output.name), len(values), values[best], best)
}
