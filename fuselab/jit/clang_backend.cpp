#include "fuselab/jit/clang_backend.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <map>
#include <mutex>

#include "fuselab/core/error.h"

namespace fuselab::jit {
namespace {

// The helpers are cleaned before they are inlined, once each instead of at every use: that halves the time of what follows.
// Against the standard O2 list without vectorisers the kernels measured run within 1 %, for a third of its time.
constexpr const char* kPasses =
    "function(sroa<modify-cfg>,early-cse),"
    "always-inline,globaldce,"
    "function(sroa<modify-cfg>,early-cse,simplifycfg,instcombine<no-verify-fixpoint;max-iterations=1>,"
    "loop-mssa(loop-rotate,licm),simplifycfg,adce)";

class Machines {
 public:
  static Machines& get() {
    static Machines* machines = new Machines;  // never destroyed: threads may compile while the process ends
    return *machines;
  }
  std::unique_ptr<llvm::TargetMachine> take(const Target& target, const llvm::Module& module) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto& free = free_[target.isa];
      if (!free.empty()) {
        auto machine = std::move(free.back());
        free.pop_back();
        return machine;
      }
    }
    std::string error;
    const llvm::Target* registered = llvm::TargetRegistry::lookupTarget(module.getTargetTriple(), error);
    if (!registered) fail("jit.internal", "this build cannot make code for {}: {}", module.getTargetTriple(), error);
    // CPU and features are attributes of every function, set by the front end.
    llvm::TargetOptions options;
    return std::unique_ptr<llvm::TargetMachine>(registered->createTargetMachine(
        module.getTargetTriple(), "", "", options, llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  }
  void give_back(const Target& target, std::unique_ptr<llvm::TargetMachine> machine) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_[target.isa].push_back(std::move(machine));
  }

 private:
  Machines() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  }
  std::mutex mutex_;
  std::map<std::string, std::vector<std::unique_ptr<llvm::TargetMachine>>> free_;
};

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, kPasses)) {
    fail("jit.internal", "the pass list is wrong: {}", llvm::toString(std::move(error)));
  }
  passes.run(module, modules);
}

}  // namespace

std::vector<char> to_object(llvm::Module& module, const Target& target) {
  Machines& machines = Machines::get();
  std::unique_ptr<llvm::TargetMachine> machine = machines.take(target, module);
  module.setDataLayout(machine->createDataLayout());
  optimise(module, *machine);

  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager emit;
  emit.add(llvm::createTargetTransformInfoWrapperPass(machine->getTargetIRAnalysis()));
  if (machine->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::ObjectFile, /*DisableVerify=*/true)) {
    fail("jit.internal", "this build cannot write object files for {}", module.getTargetTriple());
  }
  emit.run(module);
  machines.give_back(target, std::move(machine));
  return {bytes.begin(), bytes.end()};
}

}  // namespace fuselab::jit
