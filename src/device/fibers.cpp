// Switching saves the registers that a call must keep and exchanges stack pointers. AddressSanitizer is told of every
// switch where it is on. ThreadSanitizer counts calls and returns of all fibers on one stack of its own, so functions
// that are entered on one side of a switch and left on the other, or never, are hidden from it.
#include "device/fibers.hpp"

#include <sys/mman.h>

#include "base/fail.hpp"
#include "base/sanitizers.hpp"

#if defined(OPFUSE_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(OPFUSE_TSAN) && defined(__clang__)
#define OPFUSE_SWITCHES __attribute__((noinline, disable_sanitizer_instrumentation))
#elif defined(OPFUSE_TSAN)
#define OPFUSE_SWITCHES __attribute__((noinline, no_sanitize("thread")))
#else
#define OPFUSE_SWITCHES
#endif

#if !defined(__x86_64__)
#error "fibers are written for x86-64"
#endif

// void opfuse_switch_stack(void** save, void* load)
asm(R"(
.text
.globl opfuse_switch_stack
.hidden opfuse_switch_stack
.type opfuse_switch_stack, @function
opfuse_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size opfuse_switch_stack, .-opfuse_switch_stack
.globl opfuse_fiber_entry
.hidden opfuse_fiber_entry
.type opfuse_fiber_entry, @function
opfuse_fiber_entry:
  movq %rbx, %rdi
  callq *%rbp
  ud2
.size opfuse_fiber_entry, .-opfuse_fiber_entry
.section .note.GNU-stack,"",@progbits
.text
)");
extern "C" void opfuse_switch_stack(void** save, void* load);
extern "C" void opfuse_fiber_entry();

namespace opfuse::cuda {

Fibers::Fibers() = default;

Fibers::~Fibers() {
  for (Stack& s : stacks_) munmap(s.memory, kStackBytes);
}

void Fibers::start(size_t count, Entry entry, void* context) {
  entry_ = entry;
  context_ = context;
  while (stacks_.size() < count) {
    void* memory =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw fail(E::out_of_memory, "no memory for the stacks of {} emulated threads", count);
    stacks_.push_back({static_cast<char*>(memory)});
  }
  for (size_t i = 0; i < count; ++i) {
    Stack& s = stacks_[i];
    // what opfuse_switch_stack pops: r15 r14 r13 r12 rbx rbp, then the address it returns to
    auto** top = reinterpret_cast<void**>(s.memory + kStackBytes - 64);
    *--top = nullptr;
    *--top = nullptr;  // calls find the stack aligned to 16 bytes
    *--top = reinterpret_cast<void*>(&opfuse_fiber_entry);
    *--top = reinterpret_cast<void*>(&Fibers::begin);  // rbp
    *--top = this;                                     // rbx
    for (int r = 0; r < 4; ++r) *--top = nullptr;
    s.pointer = static_cast<void*>(top);
    s.fake_stack = nullptr;
    s.ended = false;
#if defined(OPFUSE_ASAN)
    __asan_unpoison_memory_region(s.memory, kStackBytes);  // a thread that faulted left its frames marked
#endif
  }
}

OPFUSE_SWITCHES void Fibers::begin(Fibers* self) {
#if defined(OPFUSE_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, &self->host_stack_, &self->host_stack_bytes_);
#endif
  self->entry_(self->context_);
  self->stacks_[self->current_].ended = true;
  self->leave(true);
}

OPFUSE_SWITCHES void Fibers::leave(bool ending) {
  Stack& s = stacks_[current_];
#if defined(OPFUSE_ASAN)
  __sanitizer_start_switch_fiber(ending ? nullptr : &s.fake_stack, host_stack_, host_stack_bytes_);
#else
  static_cast<void>(ending);
#endif
  opfuse_switch_stack(&s.pointer, host_pointer_);
#if defined(OPFUSE_ASAN)
  __sanitizer_finish_switch_fiber(s.fake_stack, &host_stack_, &host_stack_bytes_);
#endif
}

OPFUSE_SWITCHES void Fibers::yield() { leave(false); }

OPFUSE_SWITCHES bool Fibers::resume(size_t index) {
  current_ = index;
  Stack& s = stacks_[index];
#if defined(OPFUSE_ASAN)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, s.memory, kStackBytes);
#endif
  opfuse_switch_stack(&host_pointer_, s.pointer);
#if defined(OPFUSE_ASAN)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
  return s.ended;
}

}  // namespace opfuse::cuda
