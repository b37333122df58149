#include "fuselab/jit/clang_frontend.h"

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/FileManager.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Basic/TargetInfo.h>
#include <clang/CodeGen/ModuleBuilder.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/TextDiagnosticPrinter.h>
#include <clang/Lex/Preprocessor.h>
#include <clang/Parse/ParseAST.h>
#include <clang/Sema/Sema.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/TargetParser/Host.h>

#include <map>
#include <mutex>

#include "fuselab/core/error.h"

namespace fuselab::jit {
namespace {

std::vector<std::string> arguments(const Target& target) {
  std::vector<std::string> args = {"-triple",
                                   llvm::sys::getProcessTriple(),
                                   "-x",
                                   "c++",
                                   "-std=c++20",
                                   "-O2",
                                   "-emit-obj",
                                   "-mrelocation-model",
                                   "pic",
                                   "-pic-level",
                                   "2",
                                   "-nostdsysteminc",
                                   "-nobuiltininc",
                                   "-fno-rtti",
                                   "-fgnuc-version=4.2.1",
                                   "-w",
                                   "-ferror-limit",
                                   "5",
                                   "-ffp-contract=off",  // fma only where the text says fma
                                   "-fwrapv",            // integers wrap as PyTorch's do
                                   "-relaxed-aliasing",  // kernels reinterpret buffers
                                   "-discard-value-names",
                                   "-mframe-pointer=none"};
  if (target.isa == "avx512") {
    // x86-64-v4 prefers 256-bit registers unless told otherwise.
    args.insert(args.end(), {"-target-cpu", "x86-64-v4", "-mprefer-vector-width=512"});
  } else if (target.isa == "avx2") {
    args.insert(args.end(), {"-target-cpu", "x86-64-v3"});
  } else if (llvm::sys::getProcessTriple().starts_with("x86_64")) {
    args.insert(args.end(), {"-target-cpu", "x86-64"});
  }
  return args;
}

// Parsing the arguments costs about as much as parsing a kernel, so each target's result is kept and copied.
std::shared_ptr<clang::CompilerInvocation> invocation(const Target& target) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<clang::CompilerInvocation>> known;
  std::lock_guard<std::mutex> lock(mutex);
  auto& entry = known[target.isa];
  if (!entry) {
    std::vector<std::string> args = arguments(target);
    std::vector<const char*> pointers;
    for (const std::string& a : args) pointers.push_back(a.c_str());
    clang::DiagnosticsEngine diagnostics(new clang::DiagnosticIDs, new clang::DiagnosticOptions, new clang::IgnoringDiagConsumer);
    auto made = std::make_shared<clang::CompilerInvocation>();
    if (!clang::CompilerInvocation::CreateFromArgs(*made, pointers, diagnostics)) {
      fail("jit.internal", "the compiler does not know its own arguments for target {}", target.isa);
    }
    entry = std::move(made);
  }
  return std::make_shared<clang::CompilerInvocation>(*entry);
}

}  // namespace

std::unique_ptr<llvm::Module> to_module(const std::string& text, const std::string& file_name, const Target& target,
                                        llvm::LLVMContext& context) {
  std::string messages;
  llvm::raw_string_ostream stream(messages);

  clang::CompilerInstance compiler;
  compiler.setInvocation(invocation(target));
  compiler.getFrontendOpts().Inputs = {clang::FrontendInputFile(file_name, clang::Language::CXX)};
  compiler.createDiagnostics(new clang::TextDiagnosticPrinter(stream, &compiler.getDiagnosticOpts()), /*ShouldOwnClient=*/true);
  compiler.createFileManager(new llvm::vfs::InMemoryFileSystem);
  compiler.createSourceManager(compiler.getFileManager());
  if (!compiler.createTarget()) fail("jit.compile", "{}: the compiler has no target {}: {}", file_name, target.isa, messages);

  clang::SourceManager& sources = compiler.getSourceManager();
  sources.setMainFileID(sources.createFileID(llvm::MemoryBuffer::getMemBufferCopy(text, file_name)));
  compiler.createPreprocessor(clang::TU_Complete);
  compiler.getPreprocessor().getBuiltinInfo().initializeBuiltins(compiler.getPreprocessor().getIdentifierTable(),
                                                                 compiler.getLangOpts());
  compiler.createASTContext();
  auto* generator = clang::CreateLLVMCodeGen(compiler.getDiagnostics(), file_name, &compiler.getVirtualFileSystem(),
                                             compiler.getHeaderSearchOpts(), compiler.getPreprocessorOpts(),
                                             compiler.getCodeGenOpts(), context);
  compiler.setASTConsumer(std::unique_ptr<clang::ASTConsumer>(generator));
  compiler.createSema(clang::TU_Complete, nullptr);
  compiler.getDiagnosticClient().BeginSourceFile(compiler.getLangOpts(), &compiler.getPreprocessor());
  clang::ParseAST(compiler.getSema());
  compiler.getDiagnosticClient().EndSourceFile();

  std::unique_ptr<llvm::Module> module(generator->ReleaseModule());
  if (compiler.getDiagnostics().hasErrorOccurred() || !module) {
    fail("jit.compile", "the kernel text does not compile for {}:\n{}", target.isa, messages);
  }
  return module;
}

}  // namespace fuselab::jit
