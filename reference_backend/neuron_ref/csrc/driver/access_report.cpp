#include "driver/access_report.h"

#include "driver/fork_guard.h"
#include "driver/memory.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <sys/types.h>
#include <ucontext.h>
#include <unistd.h>

namespace neuron_ref::driver {
namespace {

struct sigaction previous_action;
DescribeBlock find_block = nullptr;
std::atomic<bool> reported{false};

// A line builder that is safe in a signal handler.
class Line {
 public:
  Line& text(const char* words) {
    while (*words != '\0' && used_ < sizeof(buffer_)) {
      buffer_[used_++] = *words++;
    }
    return *this;
  }

  Line& hex(std::uintptr_t value) {
    text("0x");
    int shift = 60;
    while (shift > 0 && (value >> shift) == 0) {
      shift -= 4;
    }
    for (; shift >= 0; shift -= 4) {
      character("0123456789abcdef"[(value >> shift) & 0xf]);
    }
    return *this;
  }

  Line& number(std::size_t value) {
    char digits[24];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) {
      character(digits[--count]);
    }
    return *this;
  }

  void send() {
    const char* start = buffer_;
    while (used_ > 0) {
      const ssize_t written = write(STDERR_FILENO, start, used_);
      if (written <= 0) {
        return;
      }
      start += written;
      used_ -= static_cast<std::size_t>(written);
    }
  }

 private:
  void character(char value) {
    if (used_ < sizeof(buffer_)) {
      buffer_[used_++] = value;
    }
  }

  char buffer_[1024];
  std::size_t used_ = 0;
};

// The address that faulted. A handler that chains with raise() (faulthandler does) loses it from siginfo, but the
// machine context of every signal still holds the thread's last faulting address.
std::uintptr_t fault_address(const siginfo_t* info, const void* context) {
  if (info->si_code > 0) {
    return reinterpret_cast<std::uintptr_t>(info->si_addr);
  }
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(machine->gregs[REG_CR2]);
#elif defined(__aarch64__)
  return static_cast<std::uintptr_t>(machine->fault_address);
#else
  return 0;
#endif
}

void report(std::uintptr_t address) {
  const void* pointer = reinterpret_cast<const void*>(address);
  Line line;
  line.text("\nneuron: host code accessed device memory at ").hex(address).text("\n  device: neuron:");
  line.number(static_cast<std::size_t>(device_of_address(pointer))).text("\n  block: ");
  BlockDescription block;
  if (find_block != nullptr && find_block(pointer, &block)) {
    line.text("start ").hex(block.start).text(", size ").number(block.bytes).text(" bytes, offset ");
    line.number(address - block.start).text(block.allocated ? "" : " (not allocated: already freed)");
  } else {
    line.text("none, this address was never given to a tensor");
  }
  if (in_forked_child()) {
    line.text("\n  this process was forked after the device was initialised; start it with spawn");
  }
  line.text(
      "\n  The address that data_ptr() returns for a tensor on the device means nothing to the host. Copy the tensor"
      "\n  with .cpu() first, or register a kernel for the PrivateUse1 key that works on the device.\n");
  line.send();
}

void handle(int signal, siginfo_t* info, void* context) {
  const std::uintptr_t address = fault_address(info, context);
  if (is_device_address(reinterpret_cast<const void*>(address)) && !reported.exchange(true)) {
    report(address);
  }
  if ((previous_action.sa_flags & SA_SIGINFO) != 0 && previous_action.sa_sigaction != nullptr) {
    previous_action.sa_sigaction(signal, info, context);
    return;
  }
  if (previous_action.sa_handler == SIG_IGN && info->si_code <= 0) {
    return;
  }
  if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
    return;
  }
  struct sigaction fatal {};
  fatal.sa_handler = SIG_DFL;
  sigemptyset(&fatal.sa_mask);
  sigaction(SIGSEGV, &fatal, nullptr);
  if (info->si_code <= 0) {
    raise(SIGSEGV); // it was sent, not caused: returning would not bring it back
  }
}

} // namespace

void install_access_report(DescribeBlock describe_block) noexcept {
  if (find_block != nullptr) {
    return;
  }
  find_block = describe_block;
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_action);
}

} // namespace neuron_ref::driver
