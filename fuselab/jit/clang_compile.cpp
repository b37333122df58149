#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/ErrorHandling.h>
#include <pthread.h>

#include <chrono>
#include <exception>
#include <functional>
#include <mutex>

#include "fuselab/core/error.h"
#include "fuselab/jit/clang_backend.h"
#include "fuselab/jit/clang_frontend.h"
#include "fuselab/jit/compile.h"

namespace fuselab::jit {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) { return std::chrono::duration<double, std::milli>(Clock::now() - begin).count(); }

// LLVM's last resort is to end the process; ours is an Error like any other.
void on_fatal_error(void*, const char* reason, bool) {
  fail("jit.compile", "the kernel text cannot be turned into machine code: {}", reason);
}

// Errors of the back end (inline assembly, stack frames): by default LLVM prints them and ends the process.
void on_diagnostic(const llvm::DiagnosticInfo* info, void* messages) {
  if (info->getSeverity() != llvm::DS_Error) return;
  llvm::raw_string_ostream stream(*static_cast<std::string*>(messages));
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
  stream << '\n';
}

Object compile_here(const std::string& text, const std::string& file_name, const Target& target) {
  static std::once_flag once;
  std::call_once(once, [] { llvm::install_fatal_error_handler(on_fatal_error); });
  Object object;
  Clock::time_point begin = Clock::now();
  std::string messages;
  llvm::LLVMContext context;
  context.setDiagnosticHandlerCallBack(on_diagnostic, &messages);
  std::unique_ptr<llvm::Module> module = to_module(text, file_name, target, context);
  object.front_ms = ms_since(begin);
  begin = Clock::now();
  object.bytes = to_object(*module, target);
  object.back_ms = ms_since(begin);
  if (!messages.empty())
    fail("jit.compile", "{} cannot be turned into machine code for {}:\n{}", file_name, target.isa, messages);
  return object;
}

struct Job {
  std::function<void()> work;
  std::exception_ptr error;
};

extern "C" void* fuselab_run_job(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  try {
    job.work();
  } catch (...) {
    job.error = std::current_exception();
  }
  return nullptr;
}

// clang recurses with the nesting of the text, and callers may run on small stacks (OpenMP workers, Python threads).
void on_deep_stack(std::function<void()> work) {
  constexpr size_t kStack = 64 << 20;  // address space only; pages come when touched
  Job job{std::move(work), nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread;
  const int rc = pthread_create(&thread, &attributes, fuselab_run_job, &job);
  pthread_attr_destroy(&attributes);
  if (rc != 0)
    fail("jit.no_thread", "the system gives no thread to compile on (error {}): free memory or threads and try again", rc);
  pthread_join(thread, nullptr);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace

Object compile(const std::string& text, const std::string& file_name, const Target& target) {
  Object object;
  on_deep_stack([&] { object = compile_here(text, file_name, target); });
  return object;
}

std::vector<char> compile_object(const std::string& text, const std::string& file_name, const Target& target) {
  return compile(text, file_name, target).bytes;
}

}  // namespace fuselab::jit
